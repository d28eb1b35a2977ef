/* SPDX-License-Identifier: Apache-2.0 */
/* h2_back.c - an HTTP/2 origin: many exchanges share its connection
 *
 * Only exchanges of one sandbox and one destination do (upstream/pool.c). An
 * exchange's leg is a stream; the connection belongs to the origin.
 *
 * A WebSocket goes to an origin by HTTP/1.1, unless that speaks HTTP/2 only.
 * Then it is an extended CONNECT (RFC 8441), which may be sent no sooner than
 * the origin's settings offer it; the front is told what HTTP/1.1 says (101).
 */

#include "gateway/session/back.h"

#include <errno.h>

#include "gateway/session/exchange.h"
#include "gateway/session/fields.h"
#include "gateway/session/h2_conn.h"
#include "gateway/session/h2_health.h"
#include "gateway/session/session.h"
#include "gateway/upstream/origin.h"
#include "gateway/upstream/origin_h2.h"
#include "gateway/worker.h"
#include "src/base/blocks.h"
#include "src/base/err.h"
#include "src/base/secret.h"
#include "src/wire/bytes.h"
#include "src/wire/ws.h"
#include "src/io/stream.h"
#include "src/role/config.h"

struct origin_h2 {
	struct h2_conn conn;
	struct h2_health health;
	struct origin *origin;
};

static struct h2_leg *of(struct leg *leg)
{
	return container_of(leg, struct h2_leg, leg);
}

static struct origin_h2 *h2_of(struct h2_conn *c)
{
	return container_of(c, struct origin_h2, conn);
}

static struct origin *origin_of(struct h2_conn *c)
{
	return h2_of(c)->origin;
}

/* -- the request
 * ------------------------------------------------------------------ */

/* What an extended CONNECT does without. */
static bool is_of_upgrade(const struct header *h)
{
	return h->id == HEADER_SEC_WEBSOCKET_KEY ||
	       h->id == HEADER_CONTENT_LENGTH;
}

/* The kept fields in order, then ours. Values with a prefix are put together
 * in `plain`, which the caller wipes. */
static bool head_fields(const struct request *req,
			const struct h1_request *head, struct headers *to,
			struct buf *plain)
{
	const struct headers *from = &head->headers;
	const struct injection *in;
	const struct header *h;
	size_t at[INJECTIONS_MAX];
	unsigned i, first;

	to->count = 0;
	for (i = 0; i < from->count; i++) {
		h = &from->items[i];
		/* "TE: trailers" is of HTTP/2 itself; gRPC needs it */
		if (h->id == HEADER_HOST ||
		    (head->upgrade && is_of_upgrade(h)) ||
		    (h->id != HEADER_TE && !field_goes_on(req, from, h)))
			continue;
		to->items[to->count++] = *h;
	}
	if (to->count + req->injection_count > HEADERS_MAX)
		return false;
	for (i = 0; i < req->injection_count; i++) {
		in = &req->injections[i];
		at[i] = buf_len(plain);
		if (buf_put(plain, in->prefix) ||
		    buf_put(plain, secret_open(in->secret)))
			return false;
	}
	first = to->count;
	for (i = 0; i < req->injection_count; i++) {
		size_t end = i + 1 < req->injection_count ? at[i + 1]
							  : buf_len(plain);

		to->items[first + i] = (struct header){
			.name = req->injections[i].name,
			.value = span_of(buf_peek(plain).ptr + at[i],
					 end - at[i]),
			.id = header_id_of(req->injections[i].name),
			.sensitive = true, /* never in a compression table */
		};
		to->count++;
	}
	return true;
}

/* The one protocol that an upgrade asks for; empty where it is none or several,
 * or has content before it. */
static struct span protocol_of(const struct h1_request *head)
{
	const struct header *h = headers_find(&head->headers, HEADER_UPGRADE);

	if (!h || headers_count(&head->headers, HEADER_UPGRADE) > 1 ||
	    !bytes_are(h->value, BYTE_TOKEN) || head->length ||
	    head->body == H1_BODY_CHUNKED)
		return SPAN_NONE;
	return h->value;
}

static int request_send(struct h2_leg *l, const struct request *request,
			const struct h1_request *head)
{
	struct buf plain = BUF_INIT(1024 * 1024);
	struct h2_head out;
	bool end = !head->upgrade &&
		   (head->body == H1_BODY_NONE ||
		    (head->body == H1_BODY_LENGTH && !head->length));
	int r = -ENOBUFS;

	h2_head_init(&out);
	out.method = head->method;
	if (head->upgrade) {
		out.method = SPAN("CONNECT");
		out.protocol = protocol_of(head);
		if (!out.protocol.len)
			return -EOPNOTSUPP;
	}
	out.scheme = SPAN("https");
	out.authority = head->authority;
	out.path = request->target;
	if (head_fields(request, head, &out.headers, &plain))
		r = h2_request(l->conn->h2, &out, end, l);
	buf_wipe(&plain);
	if (r < 0)
		return r;
	l->id = r;
	l->head_sent = true;
	l->out_ended = end;
	h2_health_asked(&h2_of(l->conn)->health);
	h2_conn_touch(l->conn);
	return 0;
}

static int back_request(struct leg *leg, const struct request *request,
			const struct h1_request *head)
{
	struct h2_leg *l = of(leg);

	must(request->grant != NULL);
	if (!l->conn)
		return -EPIPE;
	if (!head->upgrade)
		return request_send(l, request, head);
	l->tunnel = H2_TUNNEL_ASKED; /* by back_response() */
	return 0;
}

/* Asks for the tunnel, once it is known whether that may be. */
static enum leg_read tunnel_ask(struct h2_leg *l)
{
	struct exchange *x = l->leg.exchange;
	int r;

	if (!h2_peer_settings_seen(l->conn->h2))
		return LEG_NOTHING;
	r = request_send(l, &x->request, &x->head);
	if (!r)
		return LEG_NOTHING;
	l->leg.why = r == -EOPNOTSUPP ? "the origin opens no such tunnel in "
					"HTTP/2, and speaks nothing else"
				      : err_text(r);
	return LEG_BROKEN;
}

static void on_settings(void *ctx)
{
	h2_conn_tell_waiting(ctx);
}

/* -- the response
 * ------------------------------------------------------------------- */

static void on_head(void *ctx, int32_t id, const struct h2_head *head, bool end)
{
	struct h2_conn *c = ctx;
	struct h2_leg *l = h2_stream_data(c->h2, id);
	struct h2_response *r;
	struct arena *arena;
	unsigned count;

	c->said = c->spoke = true;
	if (!l || !l->leg.exchange)
		return;
	arena = &l->leg.exchange->arena;
	count = head->headers.count;
	r = arena_alloc(arena, sizeof(*r) + count * sizeof(r->fields[0]));
	if (!r || !h2_copy_fields(arena, &head->headers, r->fields)) {
		h2_reset(c->h2, id, H2_INTERNAL_ERROR);
		return;
	}
	r->count = count;
	r->status = head->status;
	r->content = CONTENT_UNKNOWN;
	if (h2_length_of(&head->headers, &r->length))
		r->content = CONTENT_LENGTH;
	if (end)
		r->content = CONTENT_NONE;
	if (l->tunnel == H2_TUNNEL_ASKED && head->status / 100 == 2) {
		r->content = CONTENT_TUNNEL;
		l->tunnel = H2_TUNNEL_OPEN;
	}
	*l->last_next = r;
	l->last_next = &r->next;
	h2_leg_news(l);
}

static void response_give(const struct h2_response *r, struct response *ret)
{
	ret->status = r->status;
	ret->reason = SPAN_NONE;
	ret->content = r->content;
	ret->length = r->length;
	ret->headers.count = r->count;
	memcpy(ret->headers.items, r->fields, r->count * sizeof(r->fields[0]));
}

static void put_header(struct response *r, struct span name, struct span value)
{
	if (r->headers.count < HEADERS_MAX)
		r->headers.items[r->headers.count++] = (struct header){
			.name = name,
			.value = value,
			.id = header_id_of(name),
		};
}

/* As an origin of HTTP/1.1 would have said it. */
static void tunnel_give(struct exchange *x, struct response *ret)
{
	const struct header *key =
		headers_find(&x->head.headers, HEADER_SEC_WEBSOCKET_KEY);
	char accept[WS_ACCEPT_SIZE];

	ret->status = 101;
	ret->reason = SPAN("Switching Protocols");
	put_header(ret, SPAN("Upgrade"), protocol_of(&x->head));
	if (!key || headers_find(&ret->headers, HEADER_SEC_WEBSOCKET_ACCEPT) ||
	    !ws_accept(key->value, accept))
		return;
	put_header(ret, SPAN("Sec-WebSocket-Accept"),
		   arena_dup(&x->arena, span_of(accept, sizeof(accept))));
}

static enum leg_read back_response(struct leg *leg, struct response *ret)
{
	struct h2_leg *l = of(leg);
	struct h2_response *r = l->first;

	if (r) {
		l->first = r->next;
		if (!l->first)
			l->last_next = &l->first;
		response_give(r, ret);
		if (r->content == CONTENT_TUNNEL)
			tunnel_give(leg->exchange, ret);
		return LEG_PIECE;
	}
	if (l->tunnel == H2_TUNNEL_ASKED && !l->id && l->conn &&
	    !l->conn->failed)
		return tunnel_ask(l);
	if (l->conn && !l->closed && !l->conn->failed)
		return LEG_NOTHING;
	leg->why = h2_leg_why(l);
	leg->untouched = l->closed && l->code == H2_REFUSED_STREAM;
	leg->silent = leg->untouched || !l->conn || l->conn->failed;
	return LEG_BROKEN;
}

static void on_closed(void *ctx, int32_t id, uint32_t code)
{
	struct h2_conn *c = ctx;
	struct h2_leg *l = h2_stream_data(c->h2, id);

	h2_set_stream_data(c->h2, id, NULL);
	if (!l)
		return;
	l->closed = true;
	l->code = code;
	h2_leg_news(l);
}

static void back_release(struct leg *leg, bool keep)
{
	struct h2_leg *l = of(leg);
	struct h2_conn *c = l->conn;

	(void)keep;
	if (c && !l->closed && l->id) {
		h2_set_stream_data(c->h2, l->id, NULL);
		if (!l->in_ended || !l->out_ended)
			h2_reset(c->h2, l->id, H2_CANCEL);
		h2_conn_touch(c);
	}
	h2_leg_fini(l);
	block_give(l, sizeof(*l));
	if (c && !c->leg_count && !c->failed)
		origin_rest(origin_of(c));
}

static const struct leg_ops back_ops = {
	H2_LEG_OPS,
	.request = back_request,
	.response = back_response,
	.release = back_release,
};

/* -- the connection
 * -------------------------------------------------------------------- */

static void on_goaway(void *ctx, int32_t last_id, uint32_t code)
{
	struct h2_conn *c = ctx;

	(void)last_id;
	(void)code;
	origin_retire(origin_of(c)); /* no new streams on it */
}

static void on_ended(struct h2_conn *c)
{
	(void)stream_flush(c->stream); /* its GOAWAY, if it takes it */
	(void)origin_free(origin_of(c));
}

static void on_stream(struct stream *stream, void *ctx, unsigned events)
{
	struct origin_h2 *h = ctx;

	(void)stream;
	(void)events;
	h2_conn_run(&h->conn);
}

int origin_h2_begin(struct origin *o)
{
	static const struct h2_conn_ops ops = {
		.h2 = { H2_CONN_OPS, .head = on_head, .closed = on_closed,
			.goaway = on_goaway, .settings = on_settings },
		.ended = on_ended,
	};
	const struct h2_limits limits = {
		.header_bytes = o->worker->config->head_bytes,
		.conn_window = H2_CONN_WINDOW,
		.conn_window_max = H2_CONN_WINDOW_MAX,
	};
	struct origin_h2 *h = must_alloc(sizeof(*h));
	int r;

	h->origin = o;
	r = h2_conn_init(&h->conn, o->worker, o->stream, H2_CLIENT, &limits,
			 &ops);
	if (r) {
		free(h);
		return r;
	}
	o->h2 = h;
	h2_health_start(&h->health, &h->conn);
	stream_set_owner(o->stream, on_stream, h);
	h2_conn_touch(&h->conn);
	stream_want(o->stream, STREAM_READABLE);
	return 0;
}

void origin_h2_end(struct origin *o)
{
	struct origin_h2 *h = take_ptr(o->h2);

	if (!h)
		return;
	h2_health_stop(&h->health);
	h2_conn_fini(&h->conn);
	free(h);
}

void origin_h2_shutdown(struct origin *o)
{
	h2_shutdown(o->h2->conn.h2);
	h2_conn_touch(&o->h2->conn);
}

bool origin_h2_has_room(const struct origin *o)
{
	const struct h2_conn *c = &o->h2->conn;

	return !c->failed && h2_request_room(c->h2) > 0;
}

struct leg *h2_back_new(struct exchange *x, struct origin *o)
{
	struct h2_leg *l = block_take_zeroed(sizeof(*l));

	h2_leg_init(l, &o->h2->conn, x->session->sandbox, &back_ops);
	l->leg.exchange = x;
	l->begun = true;
	return &l->leg;
}
