/* SPDX-License-Identifier: Apache-2.0 */
/* map.h - hash map from byte strings to pointers, safe against chosen keys
 *
 * SipHash-1-3 with a key drawn once per process, so that a sandbox cannot
 * choose names that collide. Keys are copied, values are borrowed.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/span.h"

struct map_slot;

struct map {
	struct map_slot *slots;
	size_t size; /* a power of two, or 0 */
	size_t used; /* live entries */
	size_t dead; /* tombstones */
};

void map_init(struct map *m);
/* Frees the map and its keys, not the values. */
void map_fini(struct map *m);

static inline size_t map_count(const struct map *m)
{
	return m->used;
}

void *map_find(const struct map *m, struct span key);
/* Sets key to value (not NULL); returns the value that was there, or NULL. */
void *map_set(struct map *m, struct span key, void *value);
/* Removes and returns the value, or NULL. */
void *map_take(struct map *m, struct span key);

/* Walk: *cursor starts at 0; returns the next value or NULL. The map may not
 * grow meanwhile; map_take() of the entry just returned is fine. */
void *map_next(const struct map *m, size_t *cursor, struct span *ret_key);

/* The hash itself, for other tables. */
uint64_t map_hash(struct span key);
