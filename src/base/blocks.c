/* SPDX-License-Identifier: Apache-2.0 */
/* blocks.c - a thread's stacks of free blocks, one for each size */

#include "src/base/blocks.h"

#include <stdbool.h>

#include "src/base/err.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer) || \
	defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
enum { MAY_KEEP = false };
#else
enum { MAY_KEEP = true };
#endif

enum { STACKS = BLOCK_MAX / BLOCK_STEP };

struct free_block {
	struct free_block *next;
};

static __thread struct {
	struct free_block *top;
	size_t bytes;
} stacks[STACKS];

static __thread size_t limit; /* of each stack */

void blocks_keep(size_t bytes)
{
	limit = MAY_KEEP ? bytes : 0;
}

static bool is_kept_size(size_t size)
{
	return size >= BLOCK_MIN && size <= BLOCK_MAX;
}

static unsigned stack_of(size_t size)
{
	return (unsigned)((size - 1) / BLOCK_STEP);
}

size_t block_size(size_t size)
{
	if (!is_kept_size(size))
		return size;
	return (size_t)(stack_of(size) + 1) * BLOCK_STEP;
}

void *block_take(size_t size)
{
	struct free_block *p;
	unsigned i;

	if (!is_kept_size(size))
		return must_realloc(NULL, size);
	i = stack_of(size);
	p = stacks[i].top;
	if (!p)
		return must_realloc(NULL, block_size(size));
	stacks[i].top = p->next;
	stacks[i].bytes -= block_size(size);
	return p;
}

void block_give(void *p, size_t size)
{
	struct free_block *block = p;
	unsigned i;

	if (!is_kept_size(size)) {
		free(p);
		return;
	}
	i = stack_of(size);
	if (!p || stacks[i].bytes + block_size(size) > limit) {
		free(p);
		return;
	}
	block->next = stacks[i].top;
	stacks[i].top = block;
	stacks[i].bytes += block_size(size);
}

void blocks_drop(void)
{
	struct free_block *p, *next;
	unsigned i;

	for (i = 0; i < STACKS; i++) {
		for (p = stacks[i].top; p; p = next) {
			next = p->next;
			free(p);
		}
		stacks[i].top = NULL;
		stacks[i].bytes = 0;
	}
}
