/* SPDX-License-Identifier: Apache-2.0 */
/* map.c - open addressing with linear probing and tombstones
 *
 * How it works: size is a power of two, at most 3/4 of it live or dead. A slot
 * is empty (key NULL), live (key and value) or dead (key is the tombstone).
 * SipHash is the family of Aumasson and Bernstein, "SipHash: a fast short-input
 * PRF" (2012). One round for each word and three at the end are enough for
 * tables, whose hashes nobody sees.
 */

#include "src/base/map.h"

#include <pthread.h>
#include <sys/random.h>

#include "src/base/err.h"

struct map_slot {
	char *key;
	size_t len;
	uint64_t hash;
	void *value;
};

static char tombstone;
static uint64_t sip_key[2];
static pthread_once_t sip_once = PTHREAD_ONCE_INIT;

static void sip_draw_key(void)
{
	must(getrandom(sip_key, sizeof(sip_key), 0) == sizeof(sip_key));
}

static inline uint64_t rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

/* In place, so that the state stays in registers. */
static inline __attribute__((always_inline)) void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

/* Up to seven bytes, the first of them lowest. */
static inline uint64_t sip_tail(struct span rest)
{
	uint64_t tail = 0;
	size_t i;

	for (i = 0; i < rest.len; i++)
		tail |= (uint64_t)(unsigned char)rest.ptr[i] << (8 * i);
	return tail;
}

uint64_t map_hash(struct span key)
{
	uint64_t v[4], word, tail = (uint64_t)key.len << 56;
	size_t i;

	pthread_once(&sip_once, sip_draw_key);
	v[0] = sip_key[0] ^ 0x736f6d6570736575;
	v[1] = sip_key[1] ^ 0x646f72616e646f6d;
	v[2] = sip_key[0] ^ 0x6c7967656e657261;
	v[3] = sip_key[1] ^ 0x7465646279746573;

	for (i = 0; i + 8 <= key.len; i += 8) {
		memcpy(&word, key.ptr + i, 8);
		v[3] ^= word;
		sip_round(v);
		v[0] ^= word;
	}
	tail |= sip_tail(span_from(key, i));
	v[3] ^= tail;
	sip_round(v);
	v[0] ^= tail;
	v[2] ^= 0xff;
	for (i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void map_init(struct map *m)
{
	*m = (struct map){ 0 };
}

static bool slot_is_live(const struct map_slot *slot)
{
	return slot->key && slot->key != &tombstone;
}

void map_fini(struct map *m)
{
	size_t i;

	for (i = 0; i < m->size; i++)
		if (slot_is_live(&m->slots[i]))
			free(m->slots[i].key);
	free(m->slots);
	map_init(m);
}

static struct map_slot *map_lookup(const struct map *m, struct span key,
				   uint64_t hash)
{
	struct map_slot *slot;
	size_t i;

	if (!m->size)
		return NULL;
	for (i = hash & (m->size - 1);; i = (i + 1) & (m->size - 1)) {
		slot = &m->slots[i];
		if (!slot->key)
			return NULL;
		if (slot->key != &tombstone && slot->hash == hash &&
		    span_eq(span_of(slot->key, slot->len), key))
			return slot;
	}
}

static struct map_slot *map_free_slot(struct map *m, uint64_t hash)
{
	size_t i = hash & (m->size - 1);

	while (slot_is_live(&m->slots[i]))
		i = (i + 1) & (m->size - 1);
	return &m->slots[i];
}

static void map_rehash(struct map *m)
{
	struct map old = *m;
	size_t i;

	m->size = 8;
	while (m->size * 3 / 4 <= old.used * 3 / 2 + 1)
		m->size *= 2;
	m->slots = must_alloc(m->size * sizeof(*m->slots));
	m->dead = 0;
	for (i = 0; i < old.size; i++)
		if (slot_is_live(&old.slots[i]))
			*map_free_slot(m, old.slots[i].hash) = old.slots[i];
	free(old.slots);
}

void *map_find(const struct map *m, struct span key)
{
	struct map_slot *slot = map_lookup(m, key, map_hash(key));

	return slot ? slot->value : NULL;
}

void *map_set(struct map *m, struct span key, void *value)
{
	uint64_t hash = map_hash(key);
	struct map_slot *slot = map_lookup(m, key, hash);
	void *old;

	must(value != NULL);
	if (slot) {
		old = slot->value;
		slot->value = value;
		return old;
	}
	if ((m->used + m->dead + 1) * 4 > m->size * 3)
		map_rehash(m);
	slot = map_free_slot(m, hash);
	if (slot->key == &tombstone)
		m->dead--;
	slot->key = must_alloc(key.len + 1);
	if (key.len)
		memcpy(slot->key, key.ptr, key.len);
	slot->len = key.len;
	slot->hash = hash;
	slot->value = value;
	m->used++;
	return NULL;
}

void *map_take(struct map *m, struct span key)
{
	struct map_slot *slot = map_lookup(m, key, map_hash(key));
	void *value;

	if (!slot)
		return NULL;
	value = slot->value;
	free(slot->key);
	*slot = (struct map_slot){ .key = &tombstone };
	m->used--;
	m->dead++;
	return value;
}

void *map_next(const struct map *m, size_t *cursor, struct span *ret_key)
{
	const struct map_slot *slot;

	while (*cursor < m->size) {
		slot = &m->slots[(*cursor)++];
		if (!slot_is_live(slot))
			continue;
		if (ret_key)
			*ret_key = span_of(slot->key, slot->len);
		return slot->value;
	}
	return NULL;
}
