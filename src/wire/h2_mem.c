/* SPDX-License-Identifier: Apache-2.0 */
/* h2_mem.c - nghttp2's allocator: counted, capped, wiped when freed
 *
 * How it works: nghttp2 copies header fields, injected credentials among them,
 * into blocks of its own, two dozen for each stream. They come from the
 * thread's stacks of blocks, whose sizes have to be known: a word before each
 * says it. Each block is overwritten before it is given back, so that no value
 * outlives its frame there; growing moves to a new block for the same reason. A
 * connection over its cap gets no memory, which ends it.
 */

#include "src/wire/h2_conn.h"

#include <stddef.h>
#include <stdlib.h>

#include "src/base/blocks.h"

struct held {
	size_t size; /* of itself; not rounded up */
	max_align_t bytes[];
};

/* Large ones are few, and rounded up they would cost a connection memory. */
static bool is_small(size_t size)
{
	return size <= BLOCK_SMALL_MAX;
}

static size_t held_bytes(size_t size)
{
	return is_small(size) ? block_size(size) : size;
}

static struct held *held_of(void *bytes)
{
	return (struct held *)((char *)bytes - offsetof(struct held, bytes));
}

static void *mem_malloc(size_t size, void *ctx)
{
	struct h2 *h = ctx;
	struct held *p;

	if (size > H2_HEAP_MAX || h->heap > H2_HEAP_MAX - size)
		return NULL;
	size += sizeof(*p);
	p = is_small(size) ? block_take(size) : malloc(size);
	if (!p)
		return NULL;
	p->size = size;
	h->heap += held_bytes(size);
	return p->bytes;
}

static void mem_free(void *bytes, void *ctx)
{
	struct h2 *h = ctx;
	struct held *p;
	size_t size;

	if (!bytes)
		return;
	p = held_of(bytes);
	size = p->size;
	h->heap -= held_bytes(size);
	explicit_bzero(p, size);
	if (is_small(size))
		block_give(p, size);
	else
		free(p);
}

static void *mem_calloc(size_t n, size_t size, void *ctx)
{
	void *p;

	if (size && n > SIZE_MAX / size)
		return NULL;
	p = mem_malloc(n * size, ctx);
	if (p)
		memset(p, 0, n * size);
	return p;
}

static void *mem_realloc(void *old, size_t size, void *ctx)
{
	void *p;

	if (!size) {
		mem_free(old, ctx);
		return NULL;
	}
	p = mem_malloc(size, ctx);
	if (p && old) {
		memcpy(p, old,
		       MIN(size, held_of(old)->size - sizeof(struct held)));
		mem_free(old, ctx);
	}
	return p;
}

void h2_mem_init(struct h2 *h)
{
	h->mem = (nghttp2_mem){ h, mem_malloc, mem_free, mem_calloc,
				mem_realloc };
}
