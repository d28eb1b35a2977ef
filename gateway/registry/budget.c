/* SPDX-License-Identifier: Apache-2.0 */
/* budget.c - how many new names of a zone a sandbox may have looked up */

#include "gateway/registry/budget.h"

#include <pthread.h>
#include <stdlib.h>

#include "src/base/err.h"
#include "src/base/list.h"
#include "src/base/map.h"

enum { MINUTE_MS = 60 * 1000, ZONE_LABELS_MIN = 2 };

struct budget {
	unsigned names_per_minute;
	pthread_mutex_t lock; /* of all below */
	struct map purses;    /* id -> purse */
};

/* A token bucket; full when new. */
struct bucket {
	uint64_t spent;	   /* in names * MINUTE_MS */
	uint64_t since_ms; /* spent was right then */
};

/* What one sandbox has. */
struct purse {
	struct map zones; /* name -> zone */
	struct list uses; /* zones, last used first */
	struct bucket new_zones;
};

struct zone {
	struct list use;
	struct bucket new_names, repeats;
	unsigned known_count, known_next;
	uint64_t known[BUDGET_KNOWN_MAX]; /* hashes, the oldest overwritten */
	size_t len;
	char name[];
};

bool budget_form_fits(const struct budget_form *form, struct span host)
{
	unsigned labels = 0;

	if (host.len > form->name_bytes)
		return false;
	for (; host.len; labels++)
		if (span_cut(&host, '.').len > form->label_bytes)
			return false;
	return labels <= form->labels;
}

/* One name's worth; a bucket holds a minute's. */
static bool bucket_take(struct bucket *k, unsigned per_minute, uint64_t now_ms)
{
	uint64_t back = (now_ms - k->since_ms) * per_minute;

	k->spent -= MIN(k->spent, back);
	k->since_ms = now_ms;
	if (k->spent + MINUTE_MS > (uint64_t)per_minute * MINUTE_MS)
		return false;
	k->spent += MINUTE_MS;
	return true;
}

/* The last labels of host. */
static struct span zone_name(struct span host, unsigned labels)
{
	size_t at = host.len;

	for (labels = MAX(labels, (unsigned)ZONE_LABELS_MIN); at; at--)
		if (host.ptr[at - 1] == '.' && !--labels)
			break;
	return span_from(host, at);
}

static void zone_drop(struct purse *p, struct zone *z)
{
	(void)map_take(&p->zones, span_of(z->name, z->len));
	list_remove(&z->use);
	free(z);
}

static void purse_free(struct purse *p)
{
	list_for_each(it, &p->uses)
		zone_drop(p, container_of(it, struct zone, use));
	map_fini(&p->zones);
	free(p);
}

static struct purse *purse_at(struct budget *b, struct span id)
{
	struct purse *p = map_find(&b->purses, id);

	if (p)
		return p;
	p = must_alloc(sizeof(*p));
	map_init(&p->zones);
	list_init(&p->uses);
	(void)map_set(&b->purses, id, p);
	return p;
}

/* NULL: too many new zones. */
static struct zone *zone_at(struct budget *b, struct purse *p, struct span name,
			    uint64_t now_ms)
{
	struct zone *z = map_find(&p->zones, name);

	if (z) {
		list_remove(&z->use);
		list_push_front(&p->uses, &z->use);
		return z;
	}
	if (!bucket_take(&p->new_zones, b->names_per_minute, now_ms))
		return NULL;
	if (map_count(&p->zones) >= BUDGET_ZONES_MAX)
		zone_drop(p, list_last(&p->uses, struct zone, use));
	z = must_alloc(sizeof(*z) + name.len);
	z->len = name.len;
	memcpy(z->name, name.ptr, name.len);
	list_init(&z->use);
	list_push_front(&p->uses, &z->use);
	(void)map_set(&p->zones, name, z);
	return z;
}

static bool zone_knows(const struct zone *z, uint64_t hash)
{
	unsigned i;

	for (i = 0; i < z->known_count; i++)
		if (z->known[i] == hash)
			return true;
	return false;
}

static void zone_learn(struct zone *z, uint64_t hash)
{
	z->known[z->known_next] = hash;
	z->known_next = (z->known_next + 1) % BUDGET_KNOWN_MAX;
	z->known_count = MIN(z->known_count + 1, (unsigned)BUDGET_KNOWN_MAX);
}

static bool take(struct budget *b, struct span id, struct span host,
		 struct span zone, uint64_t now_ms)
{
	struct zone *z = zone_at(b, purse_at(b, id), zone, now_ms);
	uint64_t hash = map_hash(host);

	if (!z)
		return false;
	if (zone_knows(z, hash))
		return bucket_take(&z->repeats,
				   BUDGET_REPEATS * b->names_per_minute,
				   now_ms);
	if (!bucket_take(&z->new_names, b->names_per_minute, now_ms))
		return false;
	zone_learn(z, hash);
	return true;
}

bool budget_take(struct budget *b, struct span id, struct span host,
		 unsigned zone_labels, uint64_t now_ms)
{
	bool paid;

	if (!b->names_per_minute)
		return true;
	must(pthread_mutex_lock(&b->lock) == 0);
	paid = take(b, id, host, zone_name(host, zone_labels), now_ms);
	must(pthread_mutex_unlock(&b->lock) == 0);
	return paid;
}

void budget_forget(struct budget *b, struct span id)
{
	struct purse *p;

	must(pthread_mutex_lock(&b->lock) == 0);
	p = map_take(&b->purses, id);
	if (p)
		purse_free(p);
	must(pthread_mutex_unlock(&b->lock) == 0);
}

size_t budget_zones(struct budget *b)
{
	size_t count = 0, cursor = 0;
	struct purse *p;

	must(pthread_mutex_lock(&b->lock) == 0);
	while ((p = map_next(&b->purses, &cursor, NULL)))
		count += map_count(&p->zones);
	must(pthread_mutex_unlock(&b->lock) == 0);
	return count;
}

struct budget *budget_new(unsigned names_per_minute)
{
	struct budget *b = must_alloc(sizeof(*b));

	b->names_per_minute = names_per_minute;
	must(pthread_mutex_init(&b->lock, NULL) == 0);
	map_init(&b->purses);
	return b;
}

struct budget *budget_free(struct budget *b)
{
	size_t cursor = 0;
	struct purse *p;

	if (!b)
		return NULL;
	while ((p = map_next(&b->purses, &cursor, NULL)))
		purse_free(p);
	map_fini(&b->purses);
	(void)pthread_mutex_destroy(&b->lock);
	free(b);
	return NULL;
}
