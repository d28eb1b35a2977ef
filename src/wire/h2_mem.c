/* SPDX-License-Identifier: Apache-2.0 */
/* h2_mem.c - nghttp2's allocator: counted, capped, wiped when freed
 *
 * How it works: nghttp2 copies header fields, injected credentials among them,
 * into blocks of its own. Each block is overwritten before the system gets it
 * back, so that no value outlives its frame there; growing moves to a new
 * block for the same reason. A connection over its cap gets no memory, which
 * ends it.
 */

#include "src/wire/h2_conn.h"

#include <malloc.h>

static void *mem_malloc(size_t size, void *ctx)
{
	struct h2 *h = ctx;
	void *p;

	if (size > H2_HEAP_MAX || h->heap > H2_HEAP_MAX - size)
		return NULL;
	p = malloc(size);
	if (p)
		h->heap += malloc_usable_size(p);
	return p;
}

static void mem_free(void *p, void *ctx)
{
	struct h2 *h = ctx;
	size_t size;

	if (!p)
		return;
	size = malloc_usable_size(p);
	h->heap -= size;
	explicit_bzero(p, size);
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
		memcpy(p, old, MIN(size, malloc_usable_size(old)));
		mem_free(old, ctx);
	}
	return p;
}

void h2_mem_init(struct h2 *h)
{
	h->mem = (nghttp2_mem){ h, mem_malloc, mem_free, mem_calloc,
				mem_realloc };
}
