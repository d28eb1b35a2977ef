/* SPDX-License-Identifier: Apache-2.0 */
/* ring.c - a ring of bytes that grows until it turns
 *
 * The byte of offset n lies at n % size. While size is below RING_BYTES
 * nothing was overwritten yet, so all offsets from 0 on are held and growing
 * is a plain copy.
 */

#include "src/execd/pty/ring.h"

#include <stdlib.h>

#include "src/base/err.h"

enum { FIRST_BYTES = 4096 };

void ring_init(struct ring *r)
{
	*r = (struct ring){ 0 };
}

void ring_fini(struct ring *r)
{
	free(r->data);
	ring_init(r);
}

static void ring_grow(struct ring *r, size_t more)
{
	const uint64_t need = r->end + more;
	size_t size = r->size ? r->size : FIRST_BYTES;

	while (size < need && size < RING_BYTES)
		size *= 2;
	if (size == r->size)
		return;
	must(r->end <= r->size);
	r->data = must_realloc(r->data, size);
	r->size = size;
}

void ring_put(struct ring *r, struct span bytes)
{
	size_t at, len;

	if (r->size < RING_BYTES && bytes.len)
		ring_grow(r, MIN(bytes.len, (size_t)RING_BYTES));
	if (bytes.len > r->size) {
		r->end += bytes.len - r->size;
		bytes = span_from(bytes, bytes.len - r->size);
	}
	while (bytes.len) {
		at = (size_t)(r->end % r->size);
		len = MIN(bytes.len, r->size - at);
		memcpy(r->data + at, bytes.ptr, len);
		r->end += len;
		bytes = span_from(bytes, len);
	}
}

uint64_t ring_start(const struct ring *r)
{
	return r->end > r->size ? r->end - r->size : 0;
}

struct span ring_peek(const struct ring *r, uint64_t *offset)
{
	const uint64_t start = ring_start(r);
	size_t at;

	if (*offset < start)
		*offset = start;
	if (*offset >= r->end)
		return SPAN("");
	at = (size_t)(*offset % r->size);
	return span_of(r->data + at,
		       (size_t)MIN(r->end - *offset, (uint64_t)(r->size - at)));
}
