/* SPDX-License-Identifier: Apache-2.0 */
/* recent.c - a place for each hash, and until when it is quiet */

#include "src/base/recent.h"

#include "src/base/map.h"

bool recent_was_said(struct recent *r, struct span key, uint64_t now_ms,
		     uint64_t quiet_ms)
{
	uint64_t hash = map_hash(key);
	unsigned at = (unsigned)(hash % RECENT_PLACES);

	if (r->places[at].hash == hash && now_ms < r->places[at].until_ms)
		return true;
	r->places[at].hash = hash;
	r->places[at].until_ms = now_ms + quiet_ms;
	return false;
}
