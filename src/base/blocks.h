/* SPDX-License-Identifier: Apache-2.0 */
/* blocks.h - memory of middling sizes that comes and goes with each exchange
 *
 * malloc keeps small blocks at hand for each thread, up to a KiB. Larger ones
 * it cuts out of the heap and joins with their neighbours again, which costs
 * ten times as much and touches memory all around. A thread that takes and
 * gives such blocks thousands of times a second keeps a few of each size here:
 * the last one given is the next one taken, and is still in the cache. Only a
 * thread that says so keeps any. With a sanitizer none does, so that it sees
 * every block.
 */
#pragma once

#include <stddef.h>

enum {
	BLOCK_STEP = 2048, /* sizes are rounded up to it */
	BLOCK_MIN = 1025,  /* what is smaller malloc does better */
	BLOCK_MAX = 20 * 1024,
};

/* This thread keeps up to so many bytes of each size from now on. It must call
 * blocks_drop() before it ends. */
void blocks_keep(size_t bytes);
/* Frees what this thread keeps; it may keep more afterwards. */
void blocks_drop(void);

/* The size that is allocated for one of size bytes. */
size_t block_size(size_t size);
/* At least size bytes, of any size and content. Never NULL. */
void *block_take(size_t size);
/* Of block_take(), with the same size; by any thread. NULL is fine. Also of
 * malloc, if there is room for block_size(size). */
void block_give(void *p, size_t size);
