/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c - capped bump allocation in blocks */

#include "src/base/arena.h"

#include <stdarg.h>
#include <stdalign.h>
#include <stdio.h>

#include "src/base/blocks.h"

/* Each block is larger than the one before. The arena of a connection holds a
 * few dozen bytes for as long as it rests; one of an exchange needs two or
 * three blocks of sizes that malloc keeps at hand. */
enum { FIRST_BYTES = 128, GROWTH = 8, BLOCK_BYTES = 4096, ALIGN_BYTES = 16 };

struct arena_block {
	struct arena_block *next;
	size_t size; /* of data */
	alignas(ALIGN_BYTES) char data[];
};

void arena_init(struct arena *a, size_t cap)
{
	*a = (struct arena){ .cap = cap };
}

void arena_fini(struct arena *a)
{
	struct arena_block *block = a->blocks, *next;

	for (; block; block = next) {
		next = block->next;
		block_give(block, block->size + sizeof(*block));
	}
	arena_init(a, a->cap);
}

void arena_wipe(struct arena *a)
{
	struct arena_block *block = a->blocks;

	if (block) { /* what was not given out of the newest was not written */
		explicit_bzero(block->data, a->used);
		block = block->next;
	}
	for (; block; block = block->next)
		explicit_bzero(block->data, block->size);
	arena_fini(a);
}

static bool arena_grow(struct arena *a, size_t size)
{
	struct arena_block *block;
	size_t least =
		a->blocks ? MIN(a->blocks->size * GROWTH, (size_t)BLOCK_BYTES)
			  : (size_t)FIRST_BYTES;
	size_t want = MAX(size + sizeof(*block), least);

	if (want > a->cap || a->total > a->cap - want) {
		a->overflow = true;
		return false;
	}
	block = block_take(want);
	block->next = a->blocks;
	block->size = want - sizeof(*block);
	a->blocks = block;
	a->used = 0;
	a->total += want;
	return true;
}

void *arena_alloc(struct arena *a, size_t size)
{
	void *p;

	if (a->overflow)
		return NULL;
	if (size > a->cap) {
		a->overflow = true;
		return NULL;
	}
	size = (size + ALIGN_BYTES - 1) & ~(size_t)(ALIGN_BYTES - 1);
	if (!a->blocks || a->blocks->size - a->used < size)
		if (!arena_grow(a, size))
			return NULL;
	p = a->blocks->data + a->used;
	a->used += size;
	return memset(p, 0, size);
}

struct span arena_dup(struct arena *a, struct span s)
{
	char *copy = arena_alloc(a, s.len + 1);

	if (!copy)
		return SPAN_NONE;
	if (s.len)
		memcpy(copy, s.ptr, s.len);
	return span_of(copy, s.len);
}

struct span arena_dup_lower(struct arena *a, struct span s)
{
	struct span copy = arena_dup(a, s);
	char *p = (char *)copy.ptr;
	size_t i;

	for (i = 0; i < copy.len; i++)
		p[i] = span_lower_char(p[i]);
	return copy;
}

struct span arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list args;
	char *p;
	int len;

	va_start(args, fmt);
	len = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (len < 0 || !(p = arena_alloc(a, (size_t)len + 1)))
		return SPAN_NONE;
	va_start(args, fmt);
	(void)vsnprintf(p, (size_t)len + 1, fmt, args);
	va_end(args);
	return span_of(p, (size_t)len);
}
