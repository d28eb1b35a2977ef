/* SPDX-License-Identifier: Apache-2.0 */
/* leaf_cache.c - a map of leaves with two LRU lists through each
 *
 * How it works: every leaf hangs in the list of the whole cache and in the
 * list of the sandbox it is charged to; both have the most recently used
 * first. Who may evict what is put_evict(): at its share a sandbox loses its
 * own oldest leaf, below it the oldest of all. Owners without leaves are
 * freed, so memory follows the capacity and not the number of sandboxes ever
 * seen. One mutex: a critical section is a hash look-up and some pointers.
 */

#include "certs/leaf_cache.h"

#include <pthread.h>
#include <time.h>

#include "certs/ossl.h"
#include "src/base/err.h"
#include "src/base/list.h"
#include "src/base/map.h"

struct owner {
	struct list leaves; /* of this sandbox, most recently used first */
	unsigned count;
	size_t id_len;
	char id[];
};

struct leaf {
	struct list in_cache;
	struct list in_owner;
	struct owner *owner;
	X509 *cert;
	uint64_t until_ms; /* wall clock; not given out from here on */
	size_t name_len;
	char name[];
};

struct leaf_cache {
	pthread_mutex_t lock;
	struct map leaves; /* name -> struct leaf */
	struct map owners; /* sandbox -> struct owner */
	struct list recent;
	unsigned capacity, share;
	uint64_t margin_ms;
};

struct leaf_cache *leaf_cache_new(unsigned capacity, unsigned share,
				  uint64_t margin_ms)
{
	struct leaf_cache *cache = must_alloc(sizeof(*cache));

	must(capacity && share);
	must(pthread_mutex_init(&cache->lock, NULL) == 0);
	map_init(&cache->leaves);
	map_init(&cache->owners);
	list_init(&cache->recent);
	cache->capacity = capacity;
	cache->share = share;
	cache->margin_ms = margin_ms;
	return cache;
}

static struct owner *owner_at(struct leaf_cache *cache, struct span sandbox)
{
	struct owner *owner = map_find(&cache->owners, sandbox);

	if (owner)
		return owner;
	owner = must_alloc(sizeof(*owner) + sandbox.len);
	list_init(&owner->leaves);
	owner->id_len = sandbox.len;
	if (sandbox.len)
		memcpy(owner->id, sandbox.ptr, sandbox.len);
	(void)map_set(&cache->owners, sandbox, owner);
	return owner;
}

static void owner_drop_if_empty(struct leaf_cache *cache, struct owner *owner)
{
	if (owner->count)
		return;
	(void)map_take(&cache->owners, span_of(owner->id, owner->id_len));
	free(owner);
}

/* Takes the leaf out; its owner stays, maybe empty. */
static void leaf_drop(struct leaf_cache *cache, struct leaf *leaf)
{
	(void)map_take(&cache->leaves, span_of(leaf->name, leaf->name_len));
	list_remove(&leaf->in_cache);
	list_remove(&leaf->in_owner);
	leaf->owner->count--;
	X509_free(leaf->cert);
	free(leaf);
}

static void leaf_forget(struct leaf_cache *cache, struct leaf *leaf)
{
	struct owner *owner = leaf->owner;

	leaf_drop(cache, leaf);
	owner_drop_if_empty(cache, owner);
}

static void forget_all(struct leaf_cache *cache)
{
	struct leaf *leaf;

	while ((leaf = list_first(&cache->recent, struct leaf, in_cache)))
		leaf_forget(cache, leaf);
}

struct leaf_cache *leaf_cache_free(struct leaf_cache *cache)
{
	if (!cache)
		return NULL;
	forget_all(cache);
	map_fini(&cache->leaves);
	map_fini(&cache->owners);
	(void)pthread_mutex_destroy(&cache->lock);
	free(cache);
	return NULL;
}

static void leaf_touch(struct leaf_cache *cache, struct leaf *leaf)
{
	list_remove(&leaf->in_cache);
	list_push_front(&cache->recent, &leaf->in_cache);
	list_remove(&leaf->in_owner);
	list_push_front(&leaf->owner->leaves, &leaf->in_owner);
}

struct x509_st *leaf_cache_get(struct leaf_cache *cache, struct span name,
			       uint64_t now_ms)
{
	X509 *cert = NULL;
	struct leaf *leaf;

	pthread_mutex_lock(&cache->lock);
	leaf = map_find(&cache->leaves, name);
	if (leaf && leaf->until_ms <= now_ms) {
		leaf_forget(cache, leaf);
	} else if (leaf) {
		leaf_touch(cache, leaf);
		must(X509_up_ref(leaf->cert));
		cert = leaf->cert;
	}
	pthread_mutex_unlock(&cache->lock);
	return cert;
}

/* Until when the leaf may be given out; 0: never. */
static uint64_t until_ms(const X509 *cert, uint64_t margin_ms)
{
	struct tm tm;
	time_t end;

	if (!ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm))
		return 0;
	end = timegm(&tm);
	if (end <= 0 || (uint64_t)end * 1000 <= margin_ms)
		return 0;
	return (uint64_t)end * 1000 - margin_ms;
}

/* Makes room for one more leaf of this owner. */
static void put_evict(struct leaf_cache *cache, struct owner *owner)
{
	struct leaf *oldest;

	if (owner->count >= cache->share) {
		oldest = list_last(&owner->leaves, struct leaf, in_owner);
		leaf_drop(cache, oldest); /* the owner is about to get one */
	} else if (map_count(&cache->leaves) >= cache->capacity) {
		oldest = list_last(&cache->recent, struct leaf, in_cache);
		if (oldest->owner == owner)
			leaf_drop(cache, oldest);
		else
			leaf_forget(cache, oldest);
	}
}

static void put_locked(struct leaf_cache *cache, struct span sandbox,
		       struct leaf *leaf)
{
	struct span name = span_of(leaf->name, leaf->name_len);
	struct leaf *old = map_find(&cache->leaves, name);
	struct owner *owner;

	if (old)
		leaf_forget(cache, old);
	owner = owner_at(cache, sandbox);
	put_evict(cache, owner);

	leaf->owner = owner;
	owner->count++;
	list_init(&leaf->in_cache);
	list_init(&leaf->in_owner);
	list_push_front(&cache->recent, &leaf->in_cache);
	list_push_front(&owner->leaves, &leaf->in_owner);
	(void)map_set(&cache->leaves, name, leaf);
}

void leaf_cache_put(struct leaf_cache *cache, struct span sandbox,
		    struct span name, struct x509_st *cert, uint64_t now_ms)
{
	uint64_t until = until_ms(cert, cache->margin_ms);
	struct leaf *leaf;

	if (until <= now_ms)
		return;
	leaf = must_alloc(sizeof(*leaf) + name.len);
	leaf->until_ms = until;
	leaf->name_len = name.len;
	if (name.len)
		memcpy(leaf->name, name.ptr, name.len);
	must(X509_up_ref(cert));
	leaf->cert = cert;

	pthread_mutex_lock(&cache->lock);
	put_locked(cache, sandbox, leaf);
	pthread_mutex_unlock(&cache->lock);
}

unsigned leaf_cache_count(struct leaf_cache *cache)
{
	unsigned count;

	pthread_mutex_lock(&cache->lock);
	count = (unsigned)map_count(&cache->leaves);
	pthread_mutex_unlock(&cache->lock);
	return count;
}

void leaf_cache_clear(struct leaf_cache *cache)
{
	pthread_mutex_lock(&cache->lock);
	forget_all(cache);
	pthread_mutex_unlock(&cache->lock);
}
