/* SPDX-License-Identifier: Apache-2.0 */
/* learned.c - which names our DNS gave a sandbox for an address, until when
 *
 * How it works: a sandbox is a struct pupil in the shard that its id hashes
 * to; a shard is a map and the lock around all that hangs in it. A pupil knows
 * lessons, pairs of name and address. Each lesson is in two lists: that of its
 * address (what a question walks) and that of its pupil (whose last is the
 * next to give way). Both are in the order of use. What is over is dropped
 * when it is met; nothing else needs a clock.
 */

#include "gateway/registry/learned.h"

#include <pthread.h>
#include <stdlib.h>

#include "src/base/err.h"
#include "src/base/list.h"
#include "src/base/map.h"
#include "src/wire/host.h"

enum { SHARDS = 16 };

struct shard {
	pthread_mutex_t lock;
	struct map pupils; /* id -> pupil */
};

struct learned {
	uint64_t hold_ms;
	struct shard shards[SHARDS];
};

struct pupil {
	struct map places; /* 16 bytes of address -> place */
	struct list uses;  /* all lessons, last used first */
	unsigned count;
};

/* An address that a pupil knows names for; never empty between calls. */
struct place {
	uint8_t ip[16];
	struct list lessons; /* last used first */
	unsigned count;
};

struct lesson {
	struct list of_place, of_pupil;
	struct place *place;
	uint64_t expires_ms;
	size_t len;
	char host[];
};

static struct shard *shard_lock(struct learned *l, struct span id)
{
	struct shard *s = &l->shards[map_hash(id) % SHARDS];

	must(pthread_mutex_lock(&s->lock) == 0);
	return s;
}

static void shard_unlock(struct shard *s)
{
	must(pthread_mutex_unlock(&s->lock) == 0);
}

static struct span place_key(const uint8_t ip[16])
{
	return span_of(ip, 16);
}

/* Frees the lesson, and its place with the last one. */
static void lesson_drop(struct pupil *p, struct lesson *n)
{
	struct place *place = n->place;

	list_remove(&n->of_place);
	list_remove(&n->of_pupil);
	free(n);
	p->count--;
	if (--place->count)
		return;
	(void)map_take(&p->places, place_key(place->ip));
	free(place);
}

static void lesson_touch(struct pupil *p, struct lesson *n)
{
	list_remove(&n->of_place);
	list_push_front(&n->place->lessons, &n->of_place);
	list_remove(&n->of_pupil);
	list_push_front(&p->uses, &n->of_pupil);
}

static void lesson_hold(struct lesson *n, uint64_t until_ms)
{
	n->expires_ms = MAX(n->expires_ms, until_ms);
}

static void pupil_free(struct pupil *p)
{
	list_for_each(it, &p->uses)
		lesson_drop(p, container_of(it, struct lesson, of_pupil));
	map_fini(&p->places);
	free(p);
}

static struct pupil *pupil_at(struct shard *s, struct span id)
{
	struct pupil *p = map_find(&s->pupils, id);

	if (p)
		return p;
	p = must_alloc(sizeof(*p));
	map_init(&p->places);
	list_init(&p->uses);
	(void)map_set(&s->pupils, id, p);
	return p;
}

/* Drops the last of the pupil while there is no room or its time is over. */
static void pupil_make_room(struct pupil *p, uint64_t now_ms)
{
	struct lesson *last;

	while ((last = list_last(&p->uses, struct lesson, of_pupil)) &&
	       (p->count >= LEARNED_MAX || last->expires_ms <= now_ms))
		lesson_drop(p, last);
}

static struct lesson *lesson_find(const struct place *place, struct span host)
{
	struct lesson *n;

	list_for_each(it, &place->lessons)
	{
		n = container_of(it, struct lesson, of_place);
		if (span_eq(span_of(n->host, n->len), host))
			return n;
	}
	return NULL;
}

static struct place *place_at(struct pupil *p, const struct addr *address)
{
	struct place *place = map_find(&p->places, place_key(address->ip));

	if (place)
		return place;
	place = must_alloc(sizeof(*place));
	memcpy(place->ip, address->ip, sizeof(place->ip));
	list_init(&place->lessons);
	(void)map_set(&p->places, place_key(place->ip), place);
	return place;
}

static struct lesson *lesson_new(struct pupil *p, const struct addr *address,
				 struct span host)
{
	struct lesson *n = must_alloc(sizeof(*n) + host.len);

	n->len = host.len;
	memcpy(n->host, host.ptr, host.len);
	n->place = place_at(p, address);
	n->place->count++;
	p->count++;
	list_init(&n->of_place);
	list_init(&n->of_pupil);
	return n;
}

void learned_add(struct learned *l, struct span id, struct span host,
		 const struct addr *address, uint32_t ttl_s, uint64_t now_ms)
{
	struct shard *s = shard_lock(l, id);
	struct pupil *p = pupil_at(s, id);
	struct place *place;
	struct lesson *n;

	must(host.len && host.len <= HOST_MAX);
	pupil_make_room(p, now_ms);
	place = map_find(&p->places, place_key(address->ip));
	n = place ? lesson_find(place, host) : NULL;
	if (!n && place && place->count >= LEARNED_NAMES_MAX)
		lesson_drop(
			p, list_last(&place->lessons, struct lesson, of_place));
	if (!n)
		n = lesson_new(p, address, host);
	lesson_touch(p, n);
	lesson_hold(n, now_ms + ttl_s * 1000ull + l->hold_ms);
	shard_unlock(s);
}

/* The address, without lessons that are over; NULL: nothing is left. */
static struct place *pupil_recall(struct pupil *p, const struct addr *address,
				  uint64_t now_ms)
{
	struct place *place = map_find(&p->places, place_key(address->ip));
	struct lesson *n;

	if (!place)
		return NULL;
	list_for_each(it, &place->lessons)
	{
		n = container_of(it, struct lesson, of_place);
		if (n->expires_ms > now_ms)
			continue;
		if (place->count == 1) {
			lesson_drop(p, n);
			return NULL; /* the place went with it */
		}
		lesson_drop(p, n);
	}
	return place;
}

bool learned_each(struct learned *l, struct span id, const struct addr *address,
		  uint64_t now_ms, bool (*fn)(void *ctx, struct span host),
		  void *ctx)
{
	struct shard *s = shard_lock(l, id);
	struct pupil *p = map_find(&s->pupils, id);
	struct place *place = p ? pupil_recall(p, address, now_ms) : NULL;
	struct lesson *n;
	bool found = false;

	if (place)
		list_for_each(it, &place->lessons)
		{
			n = container_of(it, struct lesson, of_place);
			found = fn(ctx, span_of(n->host, n->len));
			if (found)
				break;
		}
	shard_unlock(s);
	return found;
}

void learned_use(struct learned *l, struct span id, const struct addr *address,
		 uint64_t now_ms)
{
	struct shard *s = shard_lock(l, id);
	struct pupil *p = map_find(&s->pupils, id);
	struct place *place = p ? pupil_recall(p, address, now_ms) : NULL;
	struct lesson *n;

	if (place)
		list_for_each(it, &place->lessons)
		{
			n = container_of(it, struct lesson, of_place);
			lesson_hold(n, now_ms + l->hold_ms);
			/* within its place the order is kept */
			list_remove(&n->of_pupil);
			list_push_front(&p->uses, &n->of_pupil);
		}
	shard_unlock(s);
}

void learned_forget(struct learned *l, struct span id)
{
	struct shard *s = shard_lock(l, id);
	struct pupil *p = map_take(&s->pupils, id);

	if (p)
		pupil_free(p);
	shard_unlock(s);
}

size_t learned_count(struct learned *l)
{
	struct shard *s;
	struct pupil *p;
	size_t count = 0, cursor;

	for (s = l->shards; s < l->shards + SHARDS; s++) {
		must(pthread_mutex_lock(&s->lock) == 0);
		for (cursor = 0; (p = map_next(&s->pupils, &cursor, NULL));)
			count += p->count;
		shard_unlock(s);
	}
	return count;
}

struct learned *learned_new(uint32_t hold_s)
{
	struct learned *l = must_alloc(sizeof(*l));
	struct shard *s;

	l->hold_ms = hold_s * 1000ull;
	for (s = l->shards; s < l->shards + SHARDS; s++) {
		must(pthread_mutex_init(&s->lock, NULL) == 0);
		map_init(&s->pupils);
	}
	return l;
}

struct learned *learned_free(struct learned *l)
{
	struct shard *s;
	struct pupil *p;
	size_t cursor;

	if (!l)
		return NULL;
	for (s = l->shards; s < l->shards + SHARDS; s++) {
		for (cursor = 0; (p = map_next(&s->pupils, &cursor, NULL));)
			pupil_free(p);
		map_fini(&s->pupils);
		(void)pthread_mutex_destroy(&s->lock);
	}
	free(l);
	return NULL;
}
