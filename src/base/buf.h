/* SPDX-License-Identifier: Apache-2.0 */
/* buf.h - a byte queue that grows up to a maximum given at birth
 *
 * Bytes are put at the end and consumed from the front. A put that would pass
 * the maximum changes nothing and returns -ENOBUFS. Pointers into the buffer
 * live until the next put, reserve or free. Growing leaves no copy behind.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf {
	char *data;
	size_t start, end; /* the queued bytes are data[start..end) */
	size_t size;	   /* allocated */
	size_t max;	   /* bytes queued at any time */
};

#define BUF_INIT(max_bytes)        \
	{                          \
		.max = (max_bytes) \
	}

void buf_init(struct buf *b, size_t max);
/* Frees the memory and leaves an empty, usable buffer. NULL is fine. */
void buf_fini(struct buf *b);
/* Like buf_fini(), but overwrites the memory first. */
void buf_wipe(struct buf *b);

static inline size_t buf_len(const struct buf *b)
{
	return b->end - b->start;
}

static inline struct span buf_peek(const struct buf *b)
{
	return span_of(b->data ? b->data + b->start : "", buf_len(b));
}

/* Room for at least len more bytes at *ret; 0 or -ENOBUFS. Then fill and call
 * buf_commit() with what was written. */
WUNRES int buf_reserve(struct buf *b, size_t len, char **ret);
void buf_commit(struct buf *b, size_t len);

WUNRES int buf_put_slow(struct buf *b, struct span bytes);

/* Heads and records are put together from dozens of small pieces: one that
 * fits costs no call. */
WUNRES static inline int buf_put(struct buf *b, struct span bytes)
{
	if (!bytes.len)
		return 0;
	if (UNLIKELY(bytes.len > b->size - b->end ||
		     bytes.len > b->max - buf_len(b)))
		return buf_put_slow(b, bytes);
	memcpy(b->data + b->end, bytes.ptr, bytes.len);
	b->end += bytes.len;
	return 0;
}

WUNRES int buf_put_str(struct buf *b, const char *s);
WUNRES int buf_putf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);

/* len must be <= buf_len(). An emptied buffer keeps its memory. */
void buf_consume(struct buf *b, size_t len);
void buf_clear(struct buf *b);
