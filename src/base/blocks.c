/* SPDX-License-Identifier: Apache-2.0 */
/* blocks.c - a thread's stacks of free blocks, one for each size */

#include "src/base/blocks.h"

#include <stdbool.h>
#include <string.h>

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

enum {
	SMALL = BLOCK_SMALL_MAX / BLOCK_SMALL_STEP,
	STACKS = SMALL + BLOCK_MAX / BLOCK_STEP,
};

struct free_block {
	struct free_block *next;
};

static __thread struct {
	struct free_block *top;
	size_t bytes;
} stacks[STACKS];

static __thread size_t limit; /* of each stack of large ones */

void blocks_keep(size_t bytes)
{
	limit = bytes;
}

static bool is_kept_size(size_t size)
{
	return MAY_KEEP && size && size <= BLOCK_MAX;
}

static unsigned stack_of(size_t size)
{
	if (size <= BLOCK_SMALL_MAX)
		return (unsigned)((size - 1) / BLOCK_SMALL_STEP);
	return SMALL + (unsigned)((size - 1) / BLOCK_STEP);
}

static size_t limit_of(unsigned stack)
{
	return stack < SMALL ? limit / BLOCK_SMALL_PART : limit;
}

size_t block_size(size_t size)
{
	const size_t step =
		size <= BLOCK_SMALL_MAX ? BLOCK_SMALL_STEP : BLOCK_STEP;

	return is_kept_size(size) ? (size + step - 1) / step * step : size;
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

void *block_take_zeroed(size_t size)
{
	return memset(block_take(size), 0, size);
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
	if (!p || stacks[i].bytes + block_size(size) > limit_of(i)) {
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
