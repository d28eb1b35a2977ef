/* SPDX-License-Identifier: Apache-2.0 */
/* recent.h - was this said a moment ago?
 *
 * A table of fixed size that forgets: of two keys in one place the later one
 * stays, so what was said may be said again too early, never held back too
 * long.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/span.h"

enum { RECENT_PLACES = 4096 };

struct recent {
	struct {
		uint64_t hash, until_ms;
	} places[RECENT_PLACES];
};

/* True: the key was noted less than quiet_ms ago. Else it is noted now. Keys
 * are told apart by map_hash(). Zeroed memory is an empty table. */
bool recent_was_said(struct recent *r, struct span key, uint64_t now_ms,
		     uint64_t quiet_ms);
