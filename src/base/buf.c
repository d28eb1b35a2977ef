/* SPDX-License-Identifier: Apache-2.0 */
/* buf.c - a bounded byte queue */

#include "src/base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "src/base/blocks.h"
#include "src/base/err.h"

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf)BUF_INIT(max);
}

void buf_fini(struct buf *b)
{
	if (!b)
		return;
	block_give(b->data, b->size);
	buf_init(b, b->max);
}

void buf_wipe(struct buf *b)
{
	if (b && b->data)
		explicit_bzero(b->data, b->size);
	buf_fini(b);
}

/* Moves the queued bytes to the front of the allocation. */
static void buf_slide(struct buf *b)
{
	if (!b->start)
		return;
	memmove(b->data, b->data + b->start, buf_len(b));
	b->end -= b->start;
	b->start = 0;
}

/* Not realloc(), which would leave the queued bytes behind in freed memory
 * where buf_wipe() does not reach them. */
static void buf_grow(struct buf *b, size_t size)
{
	char *data = block_take(size);

	if (b->data) {
		memcpy(data, b->data, b->end);
		explicit_bzero(b->data, b->size);
		block_give(b->data, b->size);
	}
	b->data = data;
	b->size = size;
}

/* Room for len bytes, which count, and for `extra` that will not stay. */
static int buf_room(struct buf *b, size_t len, size_t extra, char **ret)
{
	size_t need, size;

	must(b->start <= b->end && b->end <= b->size);

	if (len > b->max || buf_len(b) > b->max - len)
		return -ENOBUFS;
	if (len + extra > b->size - b->end)
		buf_slide(b);
	need = b->end + len + extra;
	if (need > b->size) {
		size = b->size ? b->size : 256;
		while (size < need)
			size *= 2;
		buf_grow(b, MIN(size, b->max + extra));
	}
	*ret = b->data ? b->data + b->end : NULL;
	return 0;
}

int buf_reserve(struct buf *b, size_t len, char **ret)
{
	return buf_room(b, len, 0, ret);
}

void buf_commit(struct buf *b, size_t len)
{
	must(len <= b->size - b->end);
	b->end += len;
}

int buf_put_slow(struct buf *b, struct span bytes)
{
	char *room;
	int r;

	r = buf_reserve(b, bytes.len, &room);
	if (r)
		return r;
	memcpy(room, bytes.ptr, bytes.len);
	buf_commit(b, bytes.len);
	return 0;
}

int buf_put_str(struct buf *b, const char *s)
{
	return buf_put(b, span_str(s));
}

int buf_putf(struct buf *b, const char *fmt, ...)
{
	va_list args, again;
	char *room;
	int len, r;

	va_start(args, fmt);
	va_copy(again, args);
	len = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	must(len >= 0);

	r = buf_room(b, (size_t)len, 1, &room); /* the NUL does not stay */
	if (!r) {
		(void)vsnprintf(room, (size_t)len + 1, fmt, again);
		buf_commit(b, (size_t)len);
	}
	va_end(again);
	return r;
}

void buf_consume(struct buf *b, size_t len)
{
	must(len <= buf_len(b));
	b->start += len;
	if (b->start == b->end)
		b->start = b->end = 0;
}

void buf_clear(struct buf *b)
{
	b->start = b->end = 0;
}
