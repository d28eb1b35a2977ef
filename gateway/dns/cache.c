/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c - a bounded TTL cache with least-recently-used eviction */

#include "gateway/dns/cache.h"

#include <stdlib.h>

#include "src/base/err.h"
#include "src/wire/host.h"

struct cache_entry {
	struct list use;
	struct host host;
	uint64_t expires_ms;
	struct name_answer answer; /* .addrs points to the array below */
	struct addr addrs[];
};

void cache_init(struct cache *c, unsigned max)
{
	map_init(&c->map);
	list_init(&c->uses);
	c->max = max;
}

static void cache_drop(struct cache *c, struct cache_entry *e)
{
	(void)map_take(&c->map, host_span(&e->host));
	list_remove(&e->use);
	free(e);
}

void cache_clear(struct cache *c)
{
	list_for_each(it, &c->uses)
		cache_drop(c, container_of(it, struct cache_entry, use));
	map_fini(&c->map);
}

void cache_put(struct cache *c, struct span host,
	       const struct name_answer *answer, uint64_t now_ms)
{
	size_t bytes = answer->count * sizeof(*answer->addrs);
	struct cache_entry *old, *e;

	must(host.len <= HOST_MAX && answer->count <= NAME_ADDRS_MAX);
	old = map_find(&c->map, host);
	if (!old && map_count(&c->map) >= c->max)
		old = list_last(&c->uses, struct cache_entry, use);

	e = must_alloc(sizeof(*e) + bytes);
	memcpy(e->host.text, host.ptr, host.len);
	e->host.len = (uint8_t)host.len;
	e->expires_ms = now_ms + answer->ttl_s * 1000ull;
	e->answer = *answer;
	e->answer.addrs = e->addrs;
	if (bytes)
		memcpy(e->addrs, answer->addrs, bytes);

	/* only now: host or answer may have pointed into it */
	if (old)
		cache_drop(c, old);
	(void)map_set(&c->map, host_span(&e->host), e);
	list_init(&e->use);
	list_push_front(&c->uses, &e->use);
}

bool cache_find(struct cache *c, struct span host, uint64_t now_ms,
		struct name_answer *ret)
{
	struct cache_entry *e = map_find(&c->map, host);
	uint64_t left_ms;

	if (!e)
		return false;
	if (e->expires_ms <= now_ms) {
		cache_drop(c, e);
		return false;
	}
	list_remove(&e->use);
	list_push_front(&c->uses, &e->use);
	left_ms = e->expires_ms - now_ms;
	*ret = e->answer;
	ret->ttl_s = (uint32_t)((left_ms + 999) / 1000);
	return true;
}
