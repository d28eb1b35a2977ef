/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h - memory of one exchange: capped, freed as a whole
 *
 * Overflow is sticky: once an allocation failed, arena_overflowed() stays true
 * and every later allocation fails too, so a stage may build several things
 * and check once. Nothing in an arena is freed singly.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct arena_block;

struct arena {
	struct arena_block *blocks; /* newest first */
	size_t used;		    /* of the newest block */
	size_t total, cap;	    /* bytes allocated from the system */
	bool overflow;
};

void arena_init(struct arena *a, size_t cap);
/* Frees everything; the arena is then as after arena_init(). */
void arena_fini(struct arena *a);
/* The same, for one that held what must not stay in freed memory. */
void arena_wipe(struct arena *a);

/* Zeroed, 16-byte aligned; NULL on overflow. */
WUNRES void *arena_alloc(struct arena *a, size_t size);
/* A NUL-terminated copy (the NUL is not counted); SPAN_NONE on overflow. */
struct span arena_dup(struct arena *a, struct span s);
/* Lower-cased (ASCII) copy. */
struct span arena_dup_lower(struct arena *a, struct span s);
struct span arena_printf(struct arena *a, const char *fmt, ...) PRINTF(2, 3);

static inline bool arena_overflowed(const struct arena *a)
{
	return a->overflow;
}
