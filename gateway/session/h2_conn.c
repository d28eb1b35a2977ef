/* SPDX-License-Identifier: Apache-2.0 */
/* h2_conn.c - move an HTTP/2 connection's bytes, run its exchanges */

#include "gateway/session/h2_conn.h"

#include <errno.h>

#include "gateway/session/exchange.h"
#include "gateway/worker.h"
#include "src/base/err.h"
#include "src/base/secret.h"
#include "src/io/stream.h"
#include "src/role/config.h"

enum {
	READ_BYTES = 128 * 1024,
	/* No more output is taken while this much waits to be sent. Not less
	 * than what WRITABLE comes below, or the loop would spin. */
	QUEUE_BYTES = STREAM_UNSENT_MAX / 2,
	/* Reads in one call; then the other connections have their turn. */
	READS_MAX = 8,
	SETTLE_ROUNDS_MAX = 8,
};

int h2_conn_init(struct h2_conn *c, struct worker *w, struct stream *s,
		 enum h2_side side, const struct h2_limits *limits,
		 const struct h2_conn_ops *ops)
{
	*c = (struct h2_conn){ .worker = w, .stream = s, .ops = ops };
	list_init(&c->legs);
	list_init(&c->ready);
	list_init(&c->dirty);
	return h2_new(side, limits, &ops->h2, c, &c->h2);
}

void h2_conn_fini(struct h2_conn *c)
{
	struct h2_leg *l;

	while ((l = list_first(&c->legs, struct h2_leg, link))) {
		list_remove(&l->link);
		list_remove(&l->ready);
		l->conn = NULL;
	}
	list_remove(&c->dirty);
	c->h2 = h2_free(c->h2);
}

void h2_conn_touch(struct h2_conn *c)
{
	if (list_is_empty(&c->dirty))
		list_push(&c->worker->h2_dirty, &c->dirty);
}

/* -- running -----------------------------------------------------------------
 */

/* Exchanges with news. Each may end itself, other legs, or begin new ones. What
 * gets news meanwhile waits for the next round, so that one exchange that
 * always has some does not keep the loop. */
static void conn_run_ready(struct h2_conn *c)
{
	struct list batch;
	struct h2_leg *l;

	list_init(&batch);
	while ((l = list_first(&c->ready, struct h2_leg, ready))) {
		list_remove(&l->ready);
		list_push(&batch, &l->ready);
	}
	while ((l = list_first(&batch, struct h2_leg, ready))) {
		list_remove(&l->ready);
		if (!l->leg.exchange)
			continue;
		if (!l->begun) {
			l->begun = true;
			exchange_begin(l->leg.exchange);
		} else {
			flow_run(l->leg.exchange);
		}
		/* l may be gone */
	}
	if (!list_is_empty(&c->ready))
		h2_conn_touch(c);
}

void h2_conn_tell_waiting(struct h2_conn *c)
{
	list_for_each(it, &c->legs)
	{
		struct h2_leg *l = container_of(it, struct h2_leg, link);

		if (!l->id)
			h2_leg_news(l);
	}
}

/* The peer is gone or cannot be believed: every stream ends. */
static void conn_fail(struct h2_conn *c)
{
	if (c->failed)
		return;
	c->failed = true;
	h2_drop(c->h2, H2_CANCEL);
	h2_conn_tell_waiting(c);
	h2_conn_touch(c);
}

void h2_conn_lose(struct h2_conn *c, const char *why)
{
	if (!c->failed)
		c->why = why;
	conn_fail(c);
}

/* Heads and trailers of an origin may echo a credential: they do not stay in
 * the scratch. (A head may arrive in parts, the first of which tells of
 * nothing.) */
static int conn_input(struct h2_conn *c, struct span bytes)
{
	int r;

	c->said = false;
	c->heard_ms = loop_now_ms(c->worker->loop);
	r = h2_input(c->h2, c->heard_ms, bytes);
	if (c->said || h2_head_since(c->h2))
		secret_wipe(c->worker->scratch_front, bytes.len);
	return r;
}

/* False: nothing more for now, or the end was met. */
static bool conn_read(struct h2_conn *c)
{
	char *scratch = c->worker->scratch_front;
	ssize_t n;

	if (!h2_wants_read(c->h2))
		return false;
	n = stream_read(c->stream, scratch, READ_BYTES);
	if (n == STREAM_AGAIN)
		return false;
	if (n <= 0 || conn_input(c, span_of(scratch, (size_t)n))) {
		conn_fail(c);
		return false;
	}
	h2_conn_touch(c);
	return true;
}

static void conn_wait(struct h2_conn *c)
{
	unsigned events = 0;

	if (h2_wants_read(c->h2) && !c->failed)
		events |= STREAM_READABLE;
	if (stream_unsent(c->stream) >= QUEUE_BYTES)
		events |= STREAM_WRITABLE;
	stream_want(c->stream, events);
}

void h2_conn_run(struct h2_conn *c)
{
	unsigned i;

	for (i = 0; i < READS_MAX && !c->failed; i++)
		if (!conn_read(c))
			break;
	conn_run_ready(c);
	if (stream_unsent(c->stream) < QUEUE_BYTES && h2_wants_write(c->h2))
		h2_conn_touch(c);
	conn_wait(c);
	if (c->failed)
		h2_conn_touch(c);
}

/* Sends what there is while the stream takes it. */
static void conn_send(struct h2_conn *c)
{
	struct span out;

	while (stream_unsent(c->stream) < QUEUE_BYTES) {
		out = h2_output(c->h2, loop_now_ms(c->worker->loop));
		if (!out.len)
			break;
		if (stream_write(c->stream, out)) {
			conn_fail(c);
			break;
		}
	}
	conn_run_ready(c); /* there may be room again */
}

static void conn_settle(struct h2_conn *c)
{
	conn_send(c);
	if (!c->failed && h2_is_over(c->h2)) {
		/* Perhaps given up in the middle, such as for a GOAWAY that
		 * takes an earlier one back: who waits must hear of it. */
		conn_fail(c);
		conn_run_ready(c);
	}
	/* what the stream took already is still sent by who closes it */
	if (c->failed) {
		c->ops->ended(c);
		return; /* c is gone */
	}
	conn_wait(c);
}

static void on_nothing(void *ctx)
{
	(void)ctx;
}

void h2_conns_settle(struct worker *w)
{
	unsigned round;
	struct h2_conn *c;
	struct list batch;

	for (round = 0; round < SETTLE_ROUNDS_MAX; round++) {
		if (list_is_empty(&w->h2_dirty))
			return;
		list_init(&batch);
		while ((c = list_first(&w->h2_dirty, struct h2_conn, dirty))) {
			list_remove(&c->dirty);
			list_push(&batch, &c->dirty);
		}
		while ((c = list_first(&batch, struct h2_conn, dirty))) {
			list_remove(&c->dirty);
			conn_settle(c);
		}
	}
	if (!list_is_empty(&w->h2_dirty)) /* the rest in the next turn */
		loop_post(w->loop, on_nothing, NULL);
}

/* -- legs
 * ---------------------------------------------------------------------- */

static struct h2_leg *of(struct leg *leg)
{
	return container_of(leg, struct h2_leg, leg);
}

void h2_leg_init(struct h2_leg *l, struct h2_conn *c, struct sandbox *sandbox,
		 const struct leg_ops *ops)
{
	*l = (struct h2_leg){ .conn = c, .sandbox = sandbox, .leg.ops = ops };
	l->last_next = &l->first;
	list_init(&l->link);
	list_init(&l->ready);
	list_push(&c->legs, &l->link);
	c->leg_count++;
	buf_init(&l->in, 8 * 1024 * 1024); /* the window bounds it before */
}

void h2_leg_fini(struct h2_leg *l)
{
	if (l->conn)
		l->conn->leg_count--;
	list_remove(&l->link);
	list_remove(&l->ready);
	l->sandbox->held_bytes -= buf_len(&l->in);
	buf_wipe(&l->in);
	l->conn = NULL;
}

void h2_leg_news(struct h2_leg *l)
{
	if (l->conn && list_is_empty(&l->ready))
		list_push(&l->conn->ready, &l->ready);
}

static const char *conn_why(const struct h2_conn *c)
{
	const char *error = h2_error(c->h2);

	if (c->why)
		return c->why;
	return *error ? error : "the connection ended";
}

const char *h2_leg_why(const struct h2_leg *l)
{
	if (l->over)
		return "the sandbox holds too much content back";
	if (!l->conn)
		return "the connection ended";
	if (l->conn->failed)
		return conn_why(l->conn);
	return h2_code_name(l->code);
}

/* The peer gave the stream up, or lost it with its connection. */
static enum leg_read leg_gone(struct h2_leg *l)
{
	l->leg.why = h2_leg_why(l);
	if (l->closed && l->conn && !l->conn->failed)
		l->leg.code = l->code;
	return LEG_BROKEN;
}

enum leg_read h2_leg_read(struct leg *leg, size_t max, struct span *ret)
{
	struct h2_leg *l = of(leg);
	size_t n = MIN(max, buf_len(&l->in));

	/* Until it is accepted what comes is of no request: it waits. */
	if (l->tunnel == H2_TUNNEL_WANTED)
		n = 0;
	if (!n) {
		if (l->in_ended || l->tunnel == H2_TUNNEL_WANTED)
			return LEG_END;
		return l->closed || !l->conn ? leg_gone(l) : LEG_NOTHING;
	}
	*ret = span_of(buf_peek(&l->in).ptr, n);
	buf_consume(&l->in, n); /* the bytes stay until the next put */
	l->sandbox->held_bytes -= n;
	if (l->conn && !l->closed) {
		h2_consumed(l->conn->h2, l->id, n);
		h2_conn_touch(l->conn);
	}
	return LEG_PIECE;
}

const struct headers *h2_leg_trailers(struct leg *leg)
{
	return of(leg)->trailers;
}

static bool leg_is_live(const struct h2_leg *l)
{
	return l->conn && !l->closed;
}

size_t h2_leg_room(const struct leg *leg)
{
	const struct h2_leg *l = container_of(leg, const struct h2_leg, leg);

	/* Nothing will be written, or a write will say why not: that must be
	 * found out, so there is room for it. */
	if (!leg_is_live(l) || !l->head_sent || l->out_ended)
		return READ_BYTES;
	return h2_room(l->conn->h2, l->id);
}

int h2_leg_write(struct leg *leg, struct span content)
{
	struct h2_leg *l = of(leg);

	if (!leg_is_live(l))
		return -EPIPE;
	h2_conn_touch(l->conn);
	return h2_write(l->conn->h2, l->id, content);
}

int h2_leg_end(struct leg *leg, const struct headers *trailers)
{
	struct h2_leg *l = of(leg);

	if (!leg_is_live(l))
		return -EPIPE;
	if (l->out_ended || l->tunnel == H2_TUNNEL_ASKED)
		return 0;
	l->out_ended = true;
	h2_conn_touch(l->conn);
	return h2_end(l->conn->h2, l->id, trailers);
}

int h2_leg_flush(struct leg *leg)
{
	(void)leg;
	return 0; /* at the end of the turn */
}

void h2_leg_want(struct leg *leg, unsigned what)
{
	struct h2_leg *l = of(leg);

	/* News comes by itself, but that there is room is none. A leg that is
	 * closed has it too: see h2_leg_room(). */
	if (what & LEG_WRITE && l->conn && h2_leg_room(leg)) {
		h2_leg_news(l);
		h2_conn_touch(l->conn);
	}
}

/* -- callbacks of the wire
 * ------------------------------------------------------ */

void h2_leg_on_data(void *ctx, int32_t id, struct span bytes)
{
	struct h2_conn *c = ctx;
	struct h2_leg *l = h2_stream_data(c->h2, id);

	c->spoke = true;
	if (!l || !l->leg.exchange || l->over) {
		h2_consumed(c->h2, id, bytes.len); /* nobody wants it */
		return;
	}
	if (l->sandbox->held_bytes + bytes.len >
		    c->worker->config->h2_sandbox_held_bytes ||
	    buf_put(&l->in, bytes)) {
		l->over = true;
		h2_reset(c->h2, id, H2_ENHANCE_YOUR_CALM);
		return;
	}
	l->sandbox->held_bytes += bytes.len;
	h2_leg_news(l);
}

void h2_leg_on_end(void *ctx, int32_t id)
{
	struct h2_conn *c = ctx;
	struct h2_leg *l = h2_stream_data(c->h2, id);

	if (!l)
		return;
	l->in_ended = true;
	h2_leg_news(l);
}

void h2_leg_on_room(void *ctx, int32_t id)
{
	struct h2_conn *c = ctx;
	struct h2_leg *l = h2_stream_data(c->h2, id);

	if (l)
		h2_leg_news(l);
}

bool h2_length_of(const struct headers *headers, uint64_t *ret_length)
{
	const struct header *h = headers_find(headers, HEADER_CONTENT_LENGTH);

	*ret_length = 0;
	return h && span_parse_u64(h->value, ret_length);
}

bool h2_copy_fields(struct arena *a, const struct headers *from,
		    struct header *to)
{
	unsigned i;

	for (i = 0; i < from->count; i++) {
		to[i] = from->items[i];
		to[i].name = to[i].id == HEADER_OTHER
				     ? arena_dup(a, from->items[i].name)
				     : header_name(to[i].id);
		to[i].value = arena_dup(a, from->items[i].value);
	}
	return !arena_overflowed(a);
}

bool h2_copy_headers(struct arena *a, const struct headers *from,
		     struct headers *to)
{
	to->count = from->count;
	return h2_copy_fields(a, from, to->items);
}

void h2_leg_on_trailers(void *ctx, int32_t id, const struct headers *trailers)
{
	struct h2_conn *c = ctx;
	struct h2_leg *l = h2_stream_data(c->h2, id);
	struct arena *arena;

	c->said = true;
	if (!l || !l->leg.exchange)
		return;
	arena = &l->leg.exchange->arena;
	l->trailers = arena_alloc(arena, sizeof(*l->trailers));
	if (l->trailers && !h2_copy_headers(arena, trailers, l->trailers))
		l->trailers = NULL;
}
