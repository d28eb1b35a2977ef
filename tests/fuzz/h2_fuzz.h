/* SPDX-License-Identifier: Apache-2.0 */
/* h2_fuzz.h - what both targets of HTTP/2 share: an owner that checks
 *
 * Input: the first byte chooses between bytes as they are (even) and a list of
 * frames (odd): type, flags, stream, length (each a byte; a length over 250 is
 * that minus 250 KiB), payload. The second byte is how many bytes are given at
 * a time.
 */
#pragma once

#include <stdlib.h>

#include "src/base/buf.h"
#include "src/wire/h2.h"

#define H2_CHECK(cond)           \
	do {                     \
		if (!(cond))     \
			abort(); \
	} while (0)

enum { FUZZ_IDS = 512, FUZZ_MEMORY_MAX = 24 << 20 };

struct h2_fuzz {
	struct h2 *h;
	bool server;
	uint8_t open[FUZZ_IDS];	  /* by (id - 1) / 2, told and not closed */
	uint8_t ended[FUZZ_IDS];  /* end() was told */
	uint8_t closed[FUZZ_IDS]; /* closed() was told */
	unsigned count;
};

static size_t fuzz_slot(int32_t id)
{
	H2_CHECK(id > 0 && id % 2 == 1);
	return (size_t)(id - 1) / 2;
}

static void fuzz_is_open(struct h2_fuzz *f, int32_t id)
{
	if (fuzz_slot(id) < FUZZ_IDS)
		H2_CHECK(f->open[fuzz_slot(id)] && !f->ended[fuzz_slot(id)]);
}

static void fuzz_fields(const struct headers *headers)
{
	const struct header *h;
	unsigned i;
	size_t at;

	H2_CHECK(headers->count <= HEADERS_MAX);
	for (i = 0; i < headers->count; i++) {
		h = &headers->items[i];
		H2_CHECK(header_name_is_valid(h->name));
		H2_CHECK(header_value_is_valid(h->value));
		H2_CHECK(h->id == header_id_of(h->name));
		H2_CHECK(h->id != HEADER_HOST && h->id != HEADER_CONNECTION &&
			 h->id != HEADER_TRANSFER_ENCODING);
		for (at = 0; at < h->name.len; at++)
			H2_CHECK(h->name.ptr[at] < 'A' ||
				 h->name.ptr[at] > 'Z');
	}
}

static void fuzz_data(void *ctx, int32_t id, struct span bytes)
{
	struct h2_fuzz *f = ctx;

	fuzz_is_open(f, id);
	/* some is consumed at once, some never */
	if (bytes.len % 3)
		h2_consumed(f->h, id, bytes.len);
	if (bytes.len && bytes.ptr[0] == 'r')
		h2_reset(f->h, id, H2_CANCEL);
	if (h2_room(f->h, id) >= bytes.len)
		(void)!h2_write(f->h, id, bytes);
	if (bytes.len && bytes.ptr[0] == 'b')
		h2_break(f->h, id, H2_ENHANCE_YOUR_CALM);
}

static void fuzz_trailers(void *ctx, int32_t id, const struct headers *trailers)
{
	fuzz_is_open(ctx, id);
	fuzz_fields(trailers);
	(void)h2_end(((struct h2_fuzz *)ctx)->h, id, trailers);
}

static void fuzz_end(void *ctx, int32_t id)
{
	struct h2_fuzz *f = ctx;

	fuzz_is_open(f, id);
	if (fuzz_slot(id) < FUZZ_IDS)
		f->ended[fuzz_slot(id)] = 1;
	(void)h2_end(f->h, id, NULL);
}

static void fuzz_closed(void *ctx, int32_t id, uint32_t code)
{
	struct h2_fuzz *f = ctx;

	(void)code;
	H2_CHECK(f->count--);
	if (fuzz_slot(id) >= FUZZ_IDS)
		return;
	H2_CHECK(f->open[fuzz_slot(id)] && !f->closed[fuzz_slot(id)]);
	f->open[fuzz_slot(id)] = 0;
	f->closed[fuzz_slot(id)] = 1;
}

static void fuzz_opened(struct h2_fuzz *f, int32_t id)
{
	f->count++;
	if (fuzz_slot(id) >= FUZZ_IDS)
		return;
	H2_CHECK(!f->open[fuzz_slot(id)] && !f->closed[fuzz_slot(id)]);
	f->open[fuzz_slot(id)] = 1;
}

static void fuzz_put_frame(struct buf *b, const uint8_t *head, size_t len)
{
	const uint8_t out[9] = { (uint8_t)(len >> 16),
				 (uint8_t)(len >> 8),
				 (uint8_t)len,
				 head[0],
				 head[1],
				 0,
				 0,
				 0,
				 head[2] };

	H2_CHECK(!buf_put(b, span_of(out, sizeof(out))));
}

/* Makes wire bytes of the input. */
static void fuzz_expand(const uint8_t *data, size_t size, struct buf *ret)
{
	size_t len, have;
	char *room;

	if (!(data[0] % 2)) {
		H2_CHECK(!buf_put(ret, span_of(data + 2, size - 2)));
		return;
	}
	for (data += 2, size -= 2; size >= 4; data += have, size -= have) {
		len = data[3] <= 250 ? data[3] : (data[3] - 250u) * 1024;
		fuzz_put_frame(ret, data, len);
		data += 4;
		size -= 4;
		have = MIN(len, size);
		H2_CHECK(!buf_reserve(ret, len, &room));
		memset(room, 0, len);
		memcpy(room, data, have);
		buf_commit(ret, len);
	}
}

static void fuzz_feed(struct h2_fuzz *f, struct span bytes, size_t step)
{
	uint64_t now_ms = 1000;
	struct span out;
	size_t n;
	int r;

	while (bytes.len) {
		n = step && step < bytes.len ? step : bytes.len;
		r = h2_input(f->h, ++now_ms, span_of(bytes.ptr, n));
		H2_CHECK(!r == !h2_error(f->h)[0]);
		H2_CHECK(h2_open_streams(f->h) == f->count);
		/* a peer that does not read for a while */
		while (now_ms % 4 && (out = h2_output(f->h, now_ms)).len)
			H2_CHECK(out.len <= 96 * 1024);
		H2_CHECK(h2_memory(f->h) < FUZZ_MEMORY_MAX);
		bytes = span_from(bytes, n);
	}
}

static void fuzz_finish(struct h2_fuzz *f)
{
	while (h2_output(f->h, 2000).len)
		;
	h2_drop(f->h, H2_CANCEL);
	H2_CHECK(!f->count && !h2_open_streams(f->h));
	h2_free(f->h);
}
