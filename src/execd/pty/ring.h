/* SPDX-License-Identifier: Apache-2.0 */
/* ring.h - the newest output of a terminal, by byte offset
 *
 * Offsets count all bytes ever put. What is held are the last RING_BYTES of
 * them; older ones are overwritten. Memory grows with what was put, up to
 * that. Pure.
 */
#pragma once

#include "src/base/span.h"

enum { RING_BYTES = 1024 * 1024 };

struct ring {
	char *data;
	size_t size;  /* allocated: a power of two, or 0 */
	uint64_t end; /* offset behind the newest byte */
};

void ring_init(struct ring *r);
void ring_fini(struct ring *r);
void ring_put(struct ring *r, struct span bytes);
/* Of the oldest byte held; r->end when none is. */
uint64_t ring_start(const struct ring *r);
/* The bytes from *offset on as far as they lie in one piece (at most two calls
 * to the end); empty at the end and beyond. An offset before the start is
 * moved to it. Borrowed until the next put. */
struct span ring_peek(const struct ring *r, uint64_t *offset);
