/* SPDX-License-Identifier: Apache-2.0 */
/* h2_pair.h - a client and a server of HTTP/2 that talk through memory
 *
 * Each end writes what it is told into a log, one line per op, so that a test
 * can compare the whole story. Hooks let a test act inside an op.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "src/base/buf.h"
#include "src/wire/h2.h"

struct h2_end {
	struct h2 *h;
	struct buf log;
	bool quiet;   /* data is not logged */
	bool hold;    /* data is not consumed */
	int failed;   /* what h2_input() said */
	size_t bytes; /* of data received */
	uint64_t sum; /* of its bytes */
	unsigned heads, ends, closes, refusals, rooms;
	uint32_t last_code;
	int32_t last_id;
	void (*on_head)(struct h2_end *e, int32_t id, const struct h2_head *,
			bool end);
	void (*on_end)(struct h2_end *e, int32_t id);
	void (*on_closed)(struct h2_end *e, int32_t id);
	void (*on_room)(struct h2_end *e, int32_t id);
	void *test;
};

struct h2_pair {
	struct h2_end client, server;
	uint64_t now_ms;
	size_t step; /* bytes per input; 0 = all */
};

#define h2_log(log, ...) assert_int_equal(buf_putf(log, __VA_ARGS__), 0)

static void h2_log_fields(struct buf *log, const struct headers *headers)
{
	const struct header *f;
	unsigned i;

	for (i = 0; i < headers->count; i++) {
		f = &headers->items[i];
		assert_int_equal(buf_putf(log, " %.*s=%.*s%s",
					  SPAN_FMT(f->name), SPAN_FMT(f->value),
					  f->sensitive ? "!" : ""),
				 0);
	}
	assert_int_equal(buf_put_str(log, "\n"), 0);
}

static void h2_end_head(void *ctx, int32_t id, const struct h2_head *head,
			bool end)
{
	struct h2_end *e = ctx;

	e->heads++;
	e->last_id = id;
	if (!e->quiet) {
		if (head->status)
			h2_log(&e->log, "%d head%s %u", id, end ? "." : "",
			       head->status);
		else
			h2_log(&e->log, "%d head%s %.*s %.*s %.*s %.*s%.*s", id,
			       end ? "." : "", SPAN_FMT(head->method),
			       SPAN_FMT(head->scheme),
			       SPAN_FMT(head->authority), SPAN_FMT(head->path),
			       SPAN_FMT(head->protocol));
		h2_log_fields(&e->log, &head->headers);
	}
	if (e->on_head)
		e->on_head(e, id, head, end);
}

static void h2_end_data(void *ctx, int32_t id, struct span bytes)
{
	struct h2_end *e = ctx;
	size_t i;

	e->bytes += bytes.len;
	for (i = 0; i < bytes.len; i++)
		e->sum = e->sum * 31 + (unsigned char)bytes.ptr[i];
	if (!e->quiet)
		h2_log(&e->log, "%d data %zu\n", id, bytes.len);
	if (!e->hold)
		h2_consumed(e->h, id, bytes.len);
}

static void h2_end_trailers(void *ctx, int32_t id, const struct headers *t)
{
	struct h2_end *e = ctx;

	if (e->quiet)
		return;
	h2_log(&e->log, "%d trailers", id);
	h2_log_fields(&e->log, t);
}

static void h2_end_end(void *ctx, int32_t id)
{
	struct h2_end *e = ctx;

	e->ends++;
	if (!e->quiet)
		h2_log(&e->log, "%d end\n", id);
	if (e->on_end)
		e->on_end(e, id);
}

static void h2_end_closed(void *ctx, int32_t id, uint32_t code)
{
	struct h2_end *e = ctx;

	e->closes++;
	e->last_code = code;
	if (!e->quiet)
		h2_log(&e->log, "%d closed %s\n", id, h2_code_name(code));
	if (e->on_closed)
		e->on_closed(e, id);
}

static void h2_end_refused(void *ctx, int32_t id, const char *why)
{
	struct h2_end *e = ctx;

	e->refusals++;
	if (!e->quiet)
		h2_log(&e->log, "%d refused: %s\n", id, why);
}

static void h2_end_room(void *ctx, int32_t id)
{
	struct h2_end *e = ctx;

	e->rooms++;
	if (e->on_room)
		e->on_room(e, id);
}

static void h2_end_goaway(void *ctx, int32_t last_id, uint32_t code)
{
	struct h2_end *e = ctx;

	h2_log(&e->log, "goaway %d %s\n", last_id, h2_code_name(code));
}

static void h2_end_pong(void *ctx)
{
	struct h2_end *e = ctx;

	h2_log(&e->log, "pong\n");
}

static const struct h2_ops h2_end_ops = {
	.head = h2_end_head,
	.data = h2_end_data,
	.trailers = h2_end_trailers,
	.end = h2_end_end,
	.closed = h2_end_closed,
	.refused = h2_end_refused,
	.room = h2_end_room,
	.goaway = h2_end_goaway,
	.pong = h2_end_pong,
};

static inline void h2_end_open(struct h2_end *e, enum h2_side side,
			       const struct h2_limits *limits)
{
	*e = (struct h2_end){ 0 };
	buf_init(&e->log, 1 << 20);
	assert_int_equal(h2_new(side, limits, &h2_end_ops, e, &e->h), 0);
}

static inline void h2_end_close(struct h2_end *e)
{
	h2_free(e->h);
	buf_fini(&e->log);
}

/* What the end was told so far is exactly this; then it is forgotten. */
#define assert_log(e, text)                                              \
	do {                                                             \
		assert_int_equal(buf_put(&(e)->log, span_of("", 1)), 0); \
		assert_string_equal(buf_peek(&(e)->log).ptr, text);      \
		buf_clear(&(e)->log);                                    \
	} while (0)

static inline void h2_feed(struct h2_end *e, uint64_t now_ms, size_t step,
			   struct span bytes)
{
	size_t n;
	int r;

	while (bytes.len) {
		n = step && step < bytes.len ? step : bytes.len;
		r = h2_input(e->h, now_ms, span_of(bytes.ptr, n));
		if (r)
			e->failed = r;
		bytes = span_from(bytes, n);
	}
}

/* One way, until the sender has nothing more. Returns bytes moved. */
static inline size_t h2_move(struct h2_pair *p, struct h2_end *from,
			     struct h2_end *to)
{
	struct span bytes;
	size_t moved = 0;

	while ((bytes = h2_output(from->h, p->now_ms)).len) {
		moved += bytes.len;
		h2_feed(to, p->now_ms, p->step, bytes);
	}
	return moved;
}

/* Both ways, until all is quiet. */
static inline void h2_talk(struct h2_pair *p)
{
	while (h2_move(p, &p->client, &p->server) +
	       h2_move(p, &p->server, &p->client))
		;
}

static inline void h2_pair_open(struct h2_pair *p,
				const struct h2_limits *client,
				const struct h2_limits *server)
{
	p->now_ms = 1000000;
	h2_end_open(&p->client, H2_CLIENT, client);
	h2_end_open(&p->server, H2_SERVER, server);
	h2_talk(p);
	buf_clear(&p->client.log);
	buf_clear(&p->server.log);
}

static inline void h2_pair_close(struct h2_pair *p)
{
	h2_end_close(&p->client);
	h2_end_close(&p->server);
}

static inline void h2_put_field(struct headers *h, const char *name,
				const char *value)
{
	h->items[h->count++] =
		(struct header){ span_str(name), span_str(value),
				 header_id_of(span_str(name)), false };
}

static inline struct h2_head *h2_get_head(struct h2_head *head,
					  const char *method, const char *path)
{
	*head = (struct h2_head){
		.method = span_str(method),
		.scheme = SPAN("https"),
		.authority = SPAN("a.example"),
		.path = span_str(path),
	};
	return head;
}
