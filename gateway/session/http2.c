/* SPDX-License-Identifier: Apache-2.0 */
/* http2.c - an HTTP/2 client: each stream is the front leg of an exchange
 *
 * A request becomes the same struct h1_request that HTTP/1.1 makes, so the
 * pipeline sees no difference: :authority is the authority, regular fields are
 * the headers. Every stream's authority is compared with the connection's
 * destination like every request's (421 for another one, also when a client
 * coalesces).
 *
 * Deadlines: an exchange has its own. Here are those of what is no exchange: a
 * head that is arriving (head_ms; nothing else can arrive meanwhile), a
 * connection without streams (idle_ms), and an answer that is complete but for
 * a window that the client does not open (idle_ms too, looked after at that
 * pace). src/wire/h2_guard.c counts floods; what it ends is audited here.
 */

#include "gateway/session/http2.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "gateway/pipeline/redact.h"
#include "gateway/session/exchange.h"
#include "gateway/session/fields.h"
#include "gateway/session/h2_conn.h"
#include "gateway/session/session.h"
#include "gateway/worker.h"
#include "src/base/blocks.h"
#include "src/base/err.h"
#include "src/io/stream.h"
#include "src/role/config.h"

enum {
	/* After the notice of a shutdown, requests under way may still
	 * arrive. */
	SHUTDOWN_NOTICE_MS = 500,
	/* A client that takes nothing for so long does not get what is left
	 * of a broken answer. */
	STALL_MS = 1000,
};

struct http2 {
	struct h2_conn conn;
	struct session *session;
	struct timer head;     /* a head is arriving */
	struct timer shutdown; /* the notice was given */
};

static struct h2_leg *of(struct leg *leg)
{
	return container_of(leg, struct h2_leg, leg);
}

static struct http2 *http2_of(struct h2_conn *c)
{
	return container_of(c, struct http2, conn);
}

/* -- the front leg
 * ------------------------------------------------------------- */

/* Fields as they will be sent: redacted where the request was injected. */
static bool head_fields(struct exchange *x, struct request *request,
			const struct headers *from, struct headers *to)
{
	struct buf value = BUF_INIT(128 * 1024);
	const struct header *h;
	bool fine = true;
	unsigned i;

	to->count = 0;
	for (i = 0; i < from->count && fine; i++) {
		h = &from->items[i];
		if (!field_comes_back(from, h))
			continue;
		to->items[to->count] = *h;
		if (request->injection_count) {
			buf_clear(&value);
			fine = redact_value(request, h->value, &value) == 0;
			to->items[to->count].value =
				arena_dup(&x->arena, buf_peek(&value));
		}
		to->count++;
	}
	buf_wipe(&value);
	return fine && !arena_overflowed(&x->arena);
}

static int front_respond(struct leg *leg, struct request *request,
			 const struct response *response)
{
	struct exchange *x = leg->exchange;
	struct h2_leg *l = of(leg);
	struct h2_head head;
	bool end = response->content == CONTENT_NONE;

	if (!l->conn || l->closed)
		return -EPIPE;
	/* to an extended CONNECT it would say that the tunnel is there */
	if (l->tunnel && response->content != CONTENT_TUNNEL &&
	    response->status / 100 == 2) {
		leg->why = "the origin did not switch protocols";
		return -EPROTO;
	}
	h2_head_init(&head);
	head.status = response->status;
	if (!head_fields(x, request, &response->headers, &head.headers))
		return -ENOBUFS;
	h2_conn_touch(l->conn);
	if (response->content == CONTENT_TUNNEL) {
		head.status = 200; /* RFC 8441: what 101 is in HTTP/1.1 */
		l->tunnel = H2_TUNNEL_OPEN;
	} else if (response->status < 200) {
		return h2_interim(l->conn->h2, l->id, &head);
	}
	l->head_sent = true;
	l->out_ended = end;
	return h2_respond(l->conn->h2, l->id, &head, end);
}

static void front_finished(struct leg *leg, bool keep)
{
	struct h2_leg *l = of(leg);

	(void)keep; /* the connection goes on for the other streams */
	leg->exchange = NULL;
	if (l->conn && !l->closed && !l->out_ended)
		h2_reset(l->conn->h2, l->id, H2_CANCEL);
	if (l->conn)
		h2_conn_touch(l->conn);
	/* l lives until the stream is closed */
}

/* Has the client's window been shut for so long? */
static bool leg_is_stalled(const struct h2_leg *l, uint32_t ms)
{
	uint64_t since = h2_stalled_since(l->conn->h2, l->id);

	return since && loop_now_ms(l->conn->worker->loop) - since >= ms;
}

/* The origin's code tells the client what it should do next, and is passed on;
 * clients of gRPC make their status of it. Not one that speaks of frames: those
 * were ours. */
static uint32_t code_for_client(uint32_t code)
{
	switch (code) {
	case H2_REFUSED_STREAM:
	case H2_CANCEL:
	case H2_CONNECT_ERROR:
	case H2_ENHANCE_YOUR_CALM:
	case H2_INADEQUATE_SECURITY:
	case H2_HTTP_1_1_REQUIRED:
		return code;
	default:
		return H2_INTERNAL_ERROR;
	}
}

/* What came so far is still sent, if the client takes it. */
static void front_broke(struct leg *leg)
{
	struct h2_leg *l = of(leg);
	uint32_t code = code_for_client(leg->code);

	leg->exchange = NULL;
	if (!l->conn || l->closed)
		return;
	if (leg_is_stalled(l, STALL_MS))
		h2_reset(l->conn->h2, l->id, code);
	else
		h2_break(l->conn->h2, l->id, code);
	h2_conn_touch(l->conn);
}

static const struct leg_ops front_ops = {
	H2_LEG_OPS,
	.respond = front_respond,
	.finished = front_finished,
	.broke = front_broke,
};

/* -- requests
 * --------------------------------------------------------------------- */

/* RFC 8441: a WebSocket of HTTP/2 is a GET with Upgrade in HTTP/1.1. The key
 * is ours: the handshake ends here. */
static void head_upgrade(struct exchange *x, const struct h2_head *head)
{
	struct h1_request *r = &x->head;
	unsigned char key[16];
	char text[25];

	r->method = SPAN("GET");
	r->body = H1_BODY_NONE;
	r->upgrade = true;
	must(RAND_bytes(key, sizeof(key)) == 1);
	(void)EVP_EncodeBlock((unsigned char *)text, key, sizeof(key));
	if (r->headers.count + 2 > HEADERS_MAX) {
		x->arena.overflow = true;
		return;
	}
	r->headers.items[r->headers.count++] = (struct header){
		.name = SPAN("Upgrade"),
		.value = arena_dup(&x->arena, head->protocol),
		.id = HEADER_UPGRADE,
	};
	r->headers.items[r->headers.count++] = (struct header){
		.name = SPAN("Sec-WebSocket-Key"),
		.value = arena_dup(&x->arena, span_of(text, 24)),
		.id = header_id_of(SPAN("Sec-WebSocket-Key")),
	};
}

static bool head_fill(struct exchange *x, const struct h2_head *head, bool end)
{
	struct arena *a = &x->arena;
	struct h1_request *r = &x->head;

	r->method = arena_dup(a, head->method);
	r->target = r->path = arena_dup(a, head->path);
	r->authority = arena_dup(a, head->authority);
	r->minor = 1;
	r->keep_alive = true;
	r->body = H1_BODY_CHUNKED;
	if (h2_length_of(&head->headers, &r->length))
		r->body = H1_BODY_LENGTH;
	/* to HTTP/1.1 it would be bytes of the next request */
	if (r->length && (end || head->protocol.len))
		return false;
	if (end)
		r->body = H1_BODY_NONE;
	if (!h2_copy_headers(a, &head->headers, &r->headers))
		return false;
	r->expect_continue = headers_find(&r->headers, HEADER_EXPECT) != NULL;
	if (head->protocol.len)
		head_upgrade(x, head);
	return !arena_overflowed(a);
}

/* A name, as Upgrade of HTTP/1.1 would list it, and none of HTTP. */
static bool may_be_tunnelled(struct span protocol)
{
	return span_find(protocol, ',') == protocol.len &&
	       span_find(protocol, ' ') == protocol.len &&
	       !field_upgrades_to_http(protocol);
}

static bool sandbox_is_full(const struct sandbox *s, const struct config *c)
{
	return s->streams > c->h2_sandbox_streams ||
	       s->held_bytes > c->h2_sandbox_held_bytes / 2;
}

static void on_head(void *ctx, int32_t id, const struct h2_head *head, bool end)
{
	struct h2_conn *c = ctx;
	struct session *s = http2_of(c)->session;
	struct h2_leg *l = block_take_zeroed(sizeof(*l));
	struct exchange *x;

	h2_leg_init(l, c, s->sandbox, &front_ops);
	s->sandbox->streams++;
	l->id = id;
	h2_set_stream_data(c->h2, id, l);
	if (head->protocol.len)
		l->tunnel = H2_TUNNEL_WANTED;
	x = exchange_new(s, &l->leg);
	l->leg.exchange = x;
	if (!head_fill(x, head, end) || !span_eq(head->scheme, SPAN("https"))) {
		worker_counted(c->worker, malformed);
		l->begun = true;
		exchange_fail(x, AUDIT_REASON_MALFORMED, 400,
			      "the request does not fit its connection");
		return;
	}
	if (l->tunnel && !may_be_tunnelled(head->protocol)) {
		l->begun = true;
		exchange_fail(x, AUDIT_REASON_MALFORMED, 501,
			      "no tunnel for this protocol");
		return;
	}
	if (sandbox_is_full(s->sandbox, c->worker->config)) {
		l->begun = true;
		exchange_fail(x, AUDIT_REASON_LIMIT, 503,
			      "the sandbox has too much under way");
		return;
	}
	h2_leg_news(l); /* exchange_begin() follows, outside of h2 */
}

static void front_free(struct h2_leg *l)
{
	l->sandbox->streams--;
	h2_leg_fini(l);
	block_give(l, sizeof(*l));
}

static void on_closed(void *ctx, int32_t id, uint32_t code)
{
	struct h2_conn *c = ctx;
	struct session *s = http2_of(c)->session;
	struct h2_leg *l = h2_stream_data(c->h2, id);
	enum audit_reason reason;
	struct exchange *x;

	(void)code;
	if (!l)
		return;
	h2_set_stream_data(c->h2, id, NULL);
	x = l->leg.exchange;
	reason = l->over ? AUDIT_REASON_LIMIT : AUDIT_REASON_CLIENT_ABORTED;
	front_free(l);
	if (x)
		exchange_abandon(x, reason);
	if (!c->leg_count)
		session_deadline(s, c->worker->config->idle_ms);
}

static void on_refused(void *ctx, int32_t id, const char *why)
{
	struct h2_conn *c = ctx;

	(void)id;
	(void)why;
	worker_counted(c->worker, malformed);
}

/* The connection's own record, for what no exchange tells of. */
static void connection_audit(struct session *s, enum audit_reason reason,
			     const char *why)
{
	s->audit.allowed = false;
	s->audit.reason = reason;
	s->audit.detail = arena_dup(&s->arena, span_str(why));
	worker_counted(s->worker, denied);
	worker_record(s->worker, s->sandbox, &s->audit);
}

static void on_ended(struct h2_conn *c)
{
	struct session *s = http2_of(c)->session;
	uint32_t code = h2_error_code(c->h2);

	if (code == H2_ENHANCE_YOUR_CALM) {
		worker_counted(s->worker, abused);
		connection_audit(s, AUDIT_REASON_ABUSE, h2_error(c->h2));
	} else if (code) {
		worker_counted(s->worker, malformed);
		connection_audit(s, AUDIT_REASON_MALFORMED, h2_error(c->h2));
	}
	session_finish(s);
}

/* -- the connection
 * ------------------------------------------------------------------ */

static void on_head_timer(struct timer *t)
{
	struct http2 *h = container_of(t, struct http2, head);

	connection_audit(h->session, AUDIT_REASON_CLIENT_TIMEOUT,
			 "a request head took too long");
	h2_goaway(h->conn.h2, H2_ENHANCE_YOUR_CALM);
	h2_conn_touch(&h->conn);
}

static void on_shutdown_timer(struct timer *t)
{
	struct http2 *h = container_of(t, struct http2, shutdown);

	h2_shutdown(h->conn.h2);
	h2_conn_touch(&h->conn);
}

/* Runs from when the head that is arriving began, however it trickles in. */
static void head_watch(struct http2 *h)
{
	const struct worker *w = h->conn.worker;
	uint64_t since = h2_head_since(h->conn.h2), passed;

	if (!since) {
		timer_stop(&h->head);
		return;
	}
	passed = loop_now_ms(w->loop) - since;
	timer_start(&h->head,
		    w->config->head_ms - MIN(passed, w->config->head_ms));
}

static void on_stream(struct stream *stream, void *ctx, unsigned events)
{
	struct http2 *h = ctx;

	(void)stream;
	(void)events;
	h2_conn_run(&h->conn);
	head_watch(h);
}

void http2_start(struct session *s)
{
	static const struct h2_conn_ops ops = {
		.h2 = { H2_CONN_OPS, .head = on_head, .closed = on_closed,
			.refused = on_refused },
		.ended = on_ended,
	};
	const struct config *config = s->worker->config;
	const struct h2_limits limits = {
		.streams = config->h2_streams,
		.header_bytes = config->head_bytes,
		.resets = config->h2_early_resets,
		.chores = config->h2_useless_frames,
		.conn_window = H2_CONN_WINDOW,
		.conn_window_max = H2_CONN_WINDOW_MAX,
		.extended_connect = true,
	};
	struct http2 *h = must_alloc(sizeof(*h));

	h->session = s;
	s->http2 = h;
	timer_init(&h->head, s->worker->loop, on_head_timer);
	timer_init(&h->shutdown, s->worker->loop, on_shutdown_timer);
	if (h2_conn_init(&h->conn, s->worker, s->client, H2_SERVER, &limits,
			 &ops)) {
		session_free(s);
		return;
	}
	session_deadline(s, s->worker->config->idle_ms);
	stream_set_owner(s->client, on_stream, h);
	h2_conn_touch(&h->conn); /* our settings */
	h2_conn_run(&h->conn);
	head_watch(h);
}

/* No new streams from now on; those that are open may end. */
static void shut_down(struct http2 *h)
{
	h2_shutdown(h->conn.h2); /* the notice, unless it was given */
	h2_shutdown(h->conn.h2);
	h2_conn_touch(&h->conn);
}

/* Answers that are complete, and that the client does not take. */
static void stalled_reset(struct http2 *h)
{
	uint32_t idle_ms = h->conn.worker->config->idle_ms;

	list_for_each(it, &h->conn.legs)
	{
		struct h2_leg *l = container_of(it, struct h2_leg, link);

		if (l->leg.exchange || !leg_is_stalled(l, idle_ms))
			continue;
		h2_reset(h->conn.h2, l->id, H2_CANCEL);
		h2_conn_touch(&h->conn);
	}
}

void http2_timeout(struct session *s)
{
	struct http2 *h = s->http2;

	if (!h->conn.leg_count) {
		shut_down(h);
		return;
	}
	stalled_reset(h);
	session_deadline(s, s->worker->config->idle_ms);
}

static void each_exchange(struct http2 *h, void (*fn)(struct exchange *x))
{
	struct h2_leg *l;

	list_for_each(it, &h->conn.legs)
	{
		l = container_of(it, struct h2_leg, link);
		if (l->leg.exchange)
			fn(l->leg.exchange);
	}
}

void http2_cut(struct session *s)
{
	each_exchange(s->http2, exchange_cut);
	shut_down(s->http2);
}

void http2_recheck(struct session *s)
{
	each_exchange(s->http2, exchange_recheck);
}

void http2_drain(struct session *s)
{
	struct http2 *h = s->http2;

	h2_shutdown(h->conn.h2);
	h2_conn_touch(&h->conn);
	timer_start(&h->shutdown, SHUTDOWN_NOTICE_MS);
}

void http2_free(struct http2 *h)
{
	struct exchange *x;
	struct h2_leg *l;

	if (!h)
		return;
	while ((l = list_first(&h->conn.legs, struct h2_leg, link))) {
		x = l->leg.exchange;
		front_free(l);
		if (x)
			exchange_abandon(x, AUDIT_REASON_CLIENT_ABORTED);
	}
	timer_stop(&h->head);
	timer_stop(&h->shutdown);
	h2_conn_fini(&h->conn);
	free(h);
}
