/* SPDX-License-Identifier: Apache-2.0 */
/* http1.c - an HTTP/1.1 client: heads in turn, and the front leg of each
 *
 * Pipelined requests wait in s->in, unread beyond one head's worth, until the
 * exchange before them is done: answers cannot overtake each other.
 */

#include "gateway/session/http1.h"

#include "gateway/session/exchange.h"
#include "gateway/session/fields.h"
#include "gateway/session/h1_emit.h"
#include "gateway/session/h1_leg.h"
#include "gateway/session/session.h"
#include "gateway/worker.h"
#include "src/base/err.h"
#include "src/io/stream.h"
#include "src/role/config.h"

enum {
	HEAD_READ_BYTES = 16 * 1024,
	/* Pipelined bytes that are taken in while a response is awaited. */
	AHEAD_BYTES = 16 * 1024,
};

struct http1 {
	struct h1_leg h1; /* the front of the present exchange */
	struct session *session;
	struct exchange *exchange; /* NULL between two */
	struct h1_scan scan;	   /* of a request head */
	bool keep;  /* the connection may go on after this exchange */
	bool again; /* the next head is due */
	bool full;  /* it waits until the client takes what was answered */
	bool *gone; /* set to true when the session ends */
};

static struct http1 *of(struct leg *leg)
{
	return container_of(leg, struct http1, h1.leg);
}

/* -- the front leg -----------------------------------------------------------
 */

/* To such a one the head is the end, whatever the origin's framing says. */
static bool has_no_content(const struct http1 *h, const struct response *r)
{
	return r->status == 204 || r->status == 304 ||
	       span_eq(h->exchange->head.method, SPAN("HEAD"));
}

static struct h1_reply reply_of(struct http1 *h, const struct response *r)
{
	bool old = h->exchange->head.minor == 0;

	return (struct h1_reply){
		.interim = r->status < 200 && r->status != 101,
		.upgrade = r->status == 101,
		.chunked = r->content == CONTENT_UNKNOWN && !old &&
			   !has_no_content(h, r),
		.close = !h->keep,
		.keep_old = h->keep && old,
	};
}

/* A final head: what becomes of the connection is known now. */
static void front_settle(struct http1 *h, const struct response *r)
{
	bool old = h->exchange->head.minor == 0;

	if (!h->h1.body.done) /* an early answer: the rest is not awaited */
		h->keep = false;
	if (r->content == CONTENT_UNKNOWN && old)
		h->keep = false;
	if (h->session->worker->draining || h->h1.ended)
		h->keep = false;
	if (r->content != CONTENT_TUNNEL)
		return;
	h->keep = false;
	body_fini(&h->h1.body);
	body_init(&h->h1.body, H1_BODY_TUNNEL, 0);
}

static int front_respond(struct leg *leg, struct request *request,
			 const struct response *response)
{
	struct http1 *h = of(leg);
	struct h1_reply reply;
	bool final = response->status >= 200 || response->status == 101;

	if (!final && h->exchange->head.minor == 0)
		return 0; /* HTTP/1.0 knows no interim answers */
	if (final)
		front_settle(h, response);
	reply = reply_of(h, response);
	if (final)
		h->h1.chunked = reply.chunked;
	return h1_emit_response(request, response, &reply, &h->h1.out);
}

static int front_end(struct leg *leg, const struct headers *trailers)
{
	struct http1 *h = of(leg);

	if (h->h1.body.kind == H1_BODY_TUNNEL) {
		int r = h1_leg_flush(leg);

		stream_shutdown_write(h->h1.stream);
		return r;
	}
	return h1_leg_end(leg, trailers);
}

static void http1_next(struct http1 *h, bool keep);

static void front_finished(struct leg *leg, bool keep)
{
	struct http1 *h = of(leg);

	h->exchange = NULL;
	leg->exchange = NULL;
	keep = keep && h->keep && h->h1.body.done && !h->h1.ended;
	(void)h1_leg_settle(&h->h1);
	http1_next(h, keep);
}

static void front_broke(struct leg *leg)
{
	struct session *s = of(leg)->session;

	of(leg)->exchange = NULL;
	s->client = stream_reset(s->client);
	session_free(s);
}

/* While the response is awaited, what comes ahead is kept a little, and a
 * client that is gone is noticed. */
static bool ahead_is_open(const struct http1 *h)
{
	return h->h1.body.done && !h->h1.ended &&
	       buf_len(&h->session->in) < AHEAD_BYTES;
}

static enum leg_read front_ahead(struct leg *leg)
{
	struct http1 *h = of(leg);
	struct span part;
	enum leg_read got;

	if (h1_leg_settle(&h->h1))
		return LEG_BROKEN;
	if (!ahead_is_open(h))
		return LEG_NOTHING;
	got = h1_leg_receive(&h->h1, AHEAD_BYTES, &part);
	if (got == LEG_PIECE && buf_put(&h->session->in, part))
		return LEG_BROKEN;
	return got;
}

static void front_want(struct leg *leg, unsigned what)
{
	struct http1 *h = of(leg);

	(void)h1_leg_settle(&h->h1);
	if (ahead_is_open(h))
		what |= LEG_READ;
	h1_leg_want(leg, what);
}

static const struct leg_ops front_ops = {
	.read = h1_leg_read,
	.ahead = front_ahead,
	.trailers = h1_leg_trailers,
	.room = h1_leg_room,
	.write = h1_leg_write,
	.end = front_end,
	.flush = h1_leg_flush,
	.want = front_want,
	.respond = front_respond,
	.finished = front_finished,
	.broke = front_broke,
};

/* -- beginning an exchange
 * ----------------------------------------------------- */

static struct exchange *http1_exchange(struct http1 *h)
{
	struct session *s = h->session;

	h1_leg_fini(&h->h1);
	h1_leg_init(&h->h1, s->worker, s->client, &s->in,
		    s->worker->scratch_front);
	h->h1.leg.ops = &front_ops;
	h->exchange = exchange_new(s, &h->h1.leg);
	h->h1.leg.exchange = h->exchange;
	h->keep = false;
	return h->exchange;
}

static void http1_refuse(struct http1 *h, enum audit_reason reason,
			 uint16_t status, const char *detail)
{
	exchange_fail(http1_exchange(h), reason, status, detail);
}

static void http1_refuse_head(struct http1 *h, enum h1_error error)
{
	worker_counted(h->session->worker, malformed);
	http1_refuse(h, AUDIT_REASON_MALFORMED,
		     error == H1_E_TOO_LARGE ? 431 : 400, h1_error_text(error));
}

/* The request stays HTTP/1.1, and its Upgrade here. */
static void head_drop_upgrade(struct h1_request *head)
{
	const struct headers *all = &head->headers;
	unsigned i;

	for (i = 0; head->upgrade && i < all->count; i++)
		if (all->items[i].id == HEADER_UPGRADE &&
		    field_upgrades_to_http(all->items[i].value))
			head->upgrade = false;
}

static void http1_begin(struct http1 *h, struct span head)
{
	struct session *s = h->session;
	struct exchange *x = http1_exchange(h);
	struct span copy = arena_dup(&x->arena, head);
	enum h1_error error;

	timer_stop(&s->timer);
	buf_consume(&s->in, head.len);
	if (!copy.ptr) {
		exchange_fail(x, AUDIT_REASON_INTERNAL, 500, NULL);
		return;
	}
	error = h1_parse_request(copy, &x->head);
	if (error) {
		worker_counted(s->worker, malformed);
		exchange_fail(x, AUDIT_REASON_MALFORMED, 400,
			      h1_error_text(error));
		return;
	}
	head_drop_upgrade(&x->head);
	/* behind a CONNECT that is refused may come anything */
	h->keep =
		x->head.keep_alive && !span_eq(x->head.method, SPAN("CONNECT"));
	body_init(&h->h1.body, x->head.body, x->head.length);
	exchange_begin(x);
}

/* -- heads --------------------------------------------------------------------
 */

/* Bytes of a head into s->in. False: nothing came, or the session ended. */
static bool http1_read(struct http1 *h)
{
	struct session *s = h->session;
	char *scratch = s->worker->scratch_front;
	ssize_t n;

	n = stream_read(s->client, scratch, HEAD_READ_BYTES);
	if (n == STREAM_AGAIN) {
		if (!buf_len(&s->in))
			buf_fini(&s->in); /* idle connections hold nothing */
		stream_want(s->client, STREAM_READABLE);
		return false;
	}
	if (n < 0) {
		session_free(s);
		return false;
	}
	if (n == 0) {
		session_finish(s);
		return false;
	}
	if (!buf_len(&s->in))
		session_deadline(s, s->worker->config->head_ms);
	if (buf_put(&s->in, span_of(scratch, (size_t)n))) {
		http1_refuse_head(h, H1_E_TOO_LARGE);
		return false;
	}
	return true;
}

/* Reads until a head is whole, then begins its exchange. */
static void http1_head(struct http1 *h)
{
	struct session *s = h->session;
	uint32_t limit = s->worker->config->head_bytes;
	int len;

	for (;;) {
		len = h1_scan(&h->scan, buf_peek(&s->in), limit);
		if (len)
			break;
		if (!http1_read(h))
			return; /* h may be gone */
	}
	if (len < 0) {
		http1_refuse_head(h, (enum h1_error) - len);
		return;
	}
	h->scan = (struct h1_scan){ 0 };
	http1_begin(h, span_of(buf_peek(&s->in).ptr, (size_t)len));
}

/* A client that sends and does not read gets no further answers: what does
 * not fit would end the connection. False: not now. */
static bool http1_has_room(struct http1 *h)
{
	struct session *s = h->session;
	bool full = stream_unsent(s->client) >= STREAM_UNSENT_MAX / 2;

	if (full || h->full)
		stream_want(s->client, full ? STREAM_WRITABLE : 0);
	h->full = full;
	return !full;
}

/* Heads in turn. An exchange that ends before http1_begin() returns sets
 * h->again instead of calling back in here, so that a thousand pipelined
 * requests need no deeper stack than one; `gone` tells when the session ended
 * below us. fresh: no part of a head was scanned yet. */
static void http1_heads(struct http1 *h, bool fresh)
{
	struct session *s = h->session;
	bool gone = false;

	h->gone = &gone;
	do {
		h->again = false;
		if (fresh) {
			stream_want(s->client, 0);
			h->scan = (struct h1_scan){ 0 };
			session_deadline(s,
					 buf_len(&s->in)
						 ? s->worker->config->head_ms
						 : s->worker->config->idle_ms);
		}
		fresh = true;
		if (!http1_has_room(h))
			break;
		http1_head(h);
		if (gone)
			return;
	} while (h->again);
	h->gone = NULL;
}

static void http1_next(struct http1 *h, bool keep)
{
	struct session *s = h->session;

	if (!keep || s->worker->draining || s->sandbox->gone)
		session_finish(s);
	else if (h->gone)
		h->again = true;
	else
		http1_heads(h, true);
}

void http1_start(struct session *s)
{
	struct http1 *h = must_alloc(sizeof(*h));

	h->session = s;
	s->http1 = h;
	http1_heads(h, true);
}

void http1_on_client(struct session *s)
{
	struct http1 *h = s->http1;

	if (h->exchange)
		flow_run(h->exchange);
	else
		http1_heads(h, false);
}

void http1_timeout(struct session *s)
{
	if (buf_len(&s->in)) /* a head was begun and not finished */
		http1_refuse(s->http1, AUDIT_REASON_CLIENT_TIMEOUT, 408,
			     "the request head was not complete in time");
	else
		session_finish(s);
}

void http1_cut(struct session *s)
{
	if (s->http1->exchange)
		exchange_cut(s->http1->exchange);
	else
		session_finish(s);
}

void http1_recheck(struct session *s)
{
	if (s->http1->exchange)
		exchange_recheck(s->http1->exchange);
}

void http1_drain(struct session *s)
{
	if (!s->http1->exchange)
		session_finish(s);
	/* else http1_next() sees that the worker drains */
}

void http1_leave(struct session *s)
{
	http1_free(take_ptr(s->http1));
}

void http1_free(struct http1 *h)
{
	if (!h)
		return;
	if (h->exchange)
		exchange_abandon(h->exchange, AUDIT_REASON_NONE);
	h1_leg_fini(&h->h1);
	if (h->gone)
		*h->gone = true;
	free(h);
}
