/* SPDX-License-Identifier: Apache-2.0 */
/* heap.c - make glibc ask its questions early, and hold on to warm memory
 *
 * How it works: a thread of its own has a heap of its own. It fills that heap
 * and gives all of it back, which is when glibc looks whether memory may be
 * returned by madvise(2) or must be unmapped; the answer is kept for the whole
 * process. The arena goes back to the free list and is the first worker's.
 */

#include "src/base/heap.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

#include "src/base/err.h"

/* The sanitizers bring a heap of their own, without these knobs. */
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && \
	!defined(__SANITIZE_THREAD__)
#define HEAP_IS_GLIBC
#endif

enum {
	/* Below the size that is mapped on its own, together well above the
	 * size from which a heap shrinks; both are 128 KiB by default. */
	BLOCK_BYTES = 96 * 1024,
	BLOCKS = 8,
	/* Buffers of bulk transfers come and go all the time: asking the
	 * kernel for their pages each time costs more than the copies. */
	MAPPED_BYTES = 4 * 1024 * 1024,
	SPARE_BYTES = 2 * 1024 * 1024,
	/* Of a process that is to be small: four times a piece of a file. */
	LARGE_BYTES = 1024 * 1024,
};

static void *heap_swell(void *ctx)
{
	void *blocks[BLOCKS];

	(void)ctx;
	for (unsigned i = 0; i < BLOCKS; i++)
		blocks[i] = must_alloc(BLOCK_BYTES);
	for (unsigned i = 0; i < BLOCKS; i++)
		free(blocks[i]);
	return NULL;
}

void heap_settle(unsigned threads)
{
	pthread_t thread;

	(void)threads;
#ifdef HEAP_IS_GLIBC
	must(mallopt(M_ARENA_MAX, (int)threads + 1));
#endif
	must(pthread_create(&thread, NULL, heap_swell, NULL) == 0);
	must(pthread_join(thread, NULL) == 0);
#ifdef HEAP_IS_GLIBC
	must(mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES));
	must(mallopt(M_TRIM_THRESHOLD, SPARE_BYTES));
#endif
}

void heap_keep_little(void)
{
#ifdef HEAP_IS_GLIBC
	must(mallopt(M_MMAP_THRESHOLD, LARGE_BYTES));
	must(mallopt(M_TRIM_THRESHOLD, LARGE_BYTES));
#endif
}

void heap_trim(void)
{
#ifdef HEAP_IS_GLIBC
	(void)malloc_trim(0);
#endif
}
