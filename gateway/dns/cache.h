/* SPDX-License-Identifier: Apache-2.0 */
/* cache.h - answers of upstream servers until their TTL ends, oldest use out
 *
 * Keeps every status: a name that does not exist or could not be resolved is
 * remembered too, as briefly as its TTL says.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/dns/names.h"
#include "src/base/list.h"
#include "src/base/map.h"
#include "src/base/span.h"

struct cache {
	struct map map;	  /* host -> entry */
	struct list uses; /* entries, last used first */
	unsigned max;
};

void cache_init(struct cache *c, unsigned max);
/* Empties it; usable again. */
void cache_clear(struct cache *c);

/* Keeps a copy of answer for answer->ttl_s seconds. */
void cache_put(struct cache *c, struct span host,
	       const struct name_answer *answer, uint64_t now_ms);
/* False: nothing fresh, *ret untouched. ret->ttl_s is what is left, at least
 * 1; ret->addrs lives until the next call on the cache. */
bool cache_find(struct cache *c, struct span host, uint64_t now_ms,
		struct name_answer *ret);
