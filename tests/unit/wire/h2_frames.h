/* SPDX-License-Identifier: Apache-2.0 */
/* h2_frames.h - frames of HTTP/2 by hand, for what no honest peer sends */
#pragma once

#include "tests/unit/wire/h2_pair.h"

enum {
	H2F_DATA,
	H2F_HEADERS,
	H2F_PRIORITY,
	H2F_RST_STREAM,
	H2F_SETTINGS,
	H2F_PUSH_PROMISE,
	H2F_PING,
	H2F_GOAWAY,
	H2F_WINDOW_UPDATE,
	H2F_CONTINUATION
};
enum { H2F_END = 1, H2F_ACK = 1, H2F_END_HEADERS = 4, H2F_PADDED = 8 };

#define H2_MAGIC SPAN("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

static inline void h2_put(struct buf *b, struct span bytes)
{
	assert_int_equal(buf_put(b, bytes), 0);
}

static inline void h2_put_byte(struct buf *b, unsigned byte)
{
	const uint8_t c = (uint8_t)byte;

	h2_put(b, span_of(&c, 1));
}

static inline void h2_put_frame(struct buf *b, unsigned type, unsigned flags,
				uint32_t id, struct span payload)
{
	const uint8_t head[9] = {
		(uint8_t)(payload.len >> 16),
		(uint8_t)(payload.len >> 8),
		(uint8_t)payload.len,
		(uint8_t)type,
		(uint8_t)flags,
		(uint8_t)(id >> 24),
		(uint8_t)(id >> 16),
		(uint8_t)(id >> 8),
		(uint8_t)id,
	};

	h2_put(b, span_of(head, sizeof(head)));
	h2_put(b, payload);
}

/* A string of HPACK without Huffman: seven bits of length, then more. */
static inline void h2_put_hpack_string(struct buf *b, struct span s)
{
	size_t rest;

	if (s.len < 127) {
		h2_put_byte(b, (unsigned)s.len);
	} else {
		h2_put_byte(b, 127);
		for (rest = s.len - 127; rest >= 128; rest >>= 7)
			h2_put_byte(b, (rest & 127) | 128);
		h2_put_byte(b, (unsigned)rest);
	}
	h2_put(b, s);
}

/* A literal field without indexing. */
static inline void h2_put_literal(struct buf *b, struct span name,
				  struct span value)
{
	h2_put_byte(b, 0);
	h2_put_hpack_string(b, name);
	h2_put_hpack_string(b, value);
}

/* "name value\nname value\n" as one header block. */
static inline void h2_put_block(struct buf *b, const char *text)
{
	struct span rest = span_str(text), line, name;

	while (rest.len) {
		line = span_cut(&rest, '\n');
		name = span_cut(&line, ' ');
		h2_put_literal(b, name, line);
	}
}

#define H2_GET ":method GET\n:scheme https\n:authority a\n:path /\n"

static inline void h2_put_head(struct buf *b, uint32_t id, unsigned flags,
			       const char *text)
{
	struct buf block = BUF_INIT(1 << 20);

	h2_put_block(&block, text);
	h2_put_frame(b, H2F_HEADERS, flags | H2F_END_HEADERS, id,
		     buf_peek(&block));
	buf_fini(&block);
}

/* A server that has met its client. */
static inline void h2_server_meet(struct h2_end *e,
				  const struct h2_limits *limits, bool ack)
{
	struct buf hello = BUF_INIT(100);

	h2_end_open(e, H2_SERVER, limits);
	h2_put(&hello, H2_MAGIC);
	h2_put_frame(&hello, H2F_SETTINGS, 0, 0, SPAN_NONE);
	if (ack)
		h2_put_frame(&hello, H2F_SETTINGS, H2F_ACK, 0, SPAN_NONE);
	h2_feed(e, 1000000, 0, buf_peek(&hello));
	while (h2_output(e->h, 1000000).len)
		;
	buf_fini(&hello);
}

static inline void h2_server_open(struct h2_end *e,
				  const struct h2_limits *limits)
{
	h2_server_meet(e, limits, true);
}

/* Feeds what b holds and drains the answers; returns their bytes. */
static inline size_t h2_play(struct h2_end *e, uint64_t now_ms, struct buf *b)
{
	size_t bytes = 0, n;

	h2_feed(e, now_ms, 0, buf_peek(b));
	buf_clear(b);
	while ((n = h2_output(e->h, now_ms).len))
		bytes += n;
	return bytes;
}
