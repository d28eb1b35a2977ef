/* SPDX-License-Identifier: Apache-2.0 */
/* blocks.h - memory that comes and goes with each exchange
 *
 * malloc keeps seven small blocks of a size at hand for each thread, which is
 * few where a hundred streams run at a time. Larger ones, and those beyond
 * seven, it cuts out of the heap and joins with their neighbours again, which
 * costs ten times as much and touches memory all around. A thread that takes
 * and gives such blocks a million times a second keeps more of each size here:
 * the last one given is the next one taken, and is still in the cache. Only a
 * thread that says so keeps any. With a sanitizer none does and nothing is
 * rounded, so that it sees every block and every byte beyond.
 */
#pragma once

#include <stddef.h>

enum {
	BLOCK_SMALL_MAX = 1024, /* sizes up to it are rounded up to ... */
	BLOCK_SMALL_STEP = 32,
	BLOCK_STEP = 2048, /* larger ones to this */
	BLOCK_MAX = 20 * 1024,
	BLOCK_SMALL_PART = 8,
};

/* This thread keeps up to so many bytes of each large size from now on, and an
 * eighth (BLOCK_SMALL_PART) of that of each small one. It must call
 * blocks_drop() before it ends. */
void blocks_keep(size_t bytes);
/* Frees what this thread keeps; it may keep more afterwards. */
void blocks_drop(void);

/* The size that is allocated for one of size bytes. */
size_t block_size(size_t size);
/* At least size bytes, of any size and content. Never NULL. */
void *block_take(size_t size);
/* The same, with zeros in the first size bytes. */
void *block_take_zeroed(size_t size);
/* Of block_take(), with the same size; by any thread. NULL is fine. Also of
 * malloc, if there is room for block_size(size). */
void block_give(void *p, size_t size);
