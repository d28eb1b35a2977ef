/* SPDX-License-Identifier: Apache-2.0 */
/* forward.c - a request on its way to another server, and its reply
 *
 * How it works: the server is connected to first, its addresses in turn until
 * one takes it; only then is the client's body read, and goes on piece by piece
 * while the server takes it. The reply (forward_reply.c) runs at the
 * same time, so a server may answer while it is still being told.
 *
 * A connection from the pool may be closed by its server at the very moment it
 * is used. So only requests that may be sent twice (RFC 9110 9.2.2) and have
 * no body are given to one, and if it ends without a byte of a reply they are
 * sent again on a fresh one.
 *
 * Whoever leaves ends the exchange: a client that goes is seen by the server
 * as a reset, a server that fails by the client as 502, or, amid a reply, as a
 * cut one.
 */

#include "src/httpd/forward.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/base/addr.h"
#include "src/base/err.h"
#include "src/httpd/forward_head.h"
#include "src/httpd/forward_inside.h"

enum {
	CONNECT_MS = 30 * 1000,
	LINGER_MS = 1000,
	SENTENCE_MAX = 256,
	SERVER_UNSENT_MAX = 128 * 1024, /* then the client's body waits */
};

static void forward_on_server(struct stream *s, void *ctx, unsigned events);

/* -- its end --------------------------------------------------------------- */

void forward_free(struct forward *x)
{
	timer_stop(&x->connecting);
	list_remove(&x->link);
	buf_wipe(&x->request);
	buf_fini(&x->in);
	buf_fini(&x->trailers);
	if (x->done)
		x->done(x->ctx, &x->result);
	free(x);
}

/* Both sides see that it was not finished. */
static void forward_abort(struct forward *x, unsigned status,
			  const char *sentence)
{
	struct httpd_request *r = take_ptr(x->r);
	const char *prefix = x->forwarder->prefix;
	const bool replying = x->replying;
	char text[SENTENCE_MAX];

	if (x->server)
		x->server = stream_reset(x->server);
	x->result.cut = replying;
	if (!replying)
		x->result.status = status;
	forward_free(x);
	if (replying) {
		httpd_stream_abort(r);
		return;
	}
	(void)snprintf(text, sizeof(text), "%s%s", prefix, sentence);
	httpd_reply(r, status, "text/plain; charset=utf-8", span_str(text));
}

void forward_fail(struct forward *x)
{
	forward_abort(x, 502, "Bad Gateway\n");
}

void forward_finish(struct forward *x, bool clean)
{
	struct buf trailers CLEANUP(buf_fini) = x->trailers;
	struct httpd_request *r = take_ptr(x->r);
	struct stream *s = take_ptr(x->server);

	x->trailers = (struct buf){ 0 };
	if (x->addr_count && x->keep_alive && clean && x->body_over &&
	    !x->body_stopped)
		forward_pool_give(&x->forwarder->pool, &x->addrs[x->addr_at],
				  x->device, s);
	else
		(void)stream_close(s, LINGER_MS);
	forward_free(x);
	if (!r)
		return;
	httpd_stream_set_trailers(r, buf_peek(&trailers));
	httpd_stream_end(r);
}

void forward_on_gone(void *user, struct httpd_request *r)
{
	struct forward *x = user;

	if (x->server)
		x->server = stream_reset(x->server);
	x->result.cut = x->replying;
	forward_free(x);
	httpd_stream_end(r);
}

void forward_rearm(struct forward *x)
{
	stream_want(x->server, (x->full ? 0u : STREAM_READABLE) |
				       (x->body_waits ? STREAM_WRITABLE : 0u));
}

/* -- the client's body ----------------------------------------------------- */

/* A chunk is one write: its bytes alone may fill the queue so far that the end
 * of the line after them would be refused. */
static int forward_put_piece(struct forward *x, struct span bytes)
{
	struct buf chunk = BUF_INIT(STREAM_WRITE_MAX);
	char head[H1_CHUNK_HEAD_SIZE];
	int r;

	if (!x->chunks)
		return stream_write(x->server, bytes);
	r = buf_put(&chunk, span_of(head, h1_chunk_head(bytes.len, head)));
	if (!r)
		r = buf_put(&chunk, bytes);
	if (!r)
		r = buf_put_str(&chunk, "\r\n");
	if (!r)
		r = stream_write(x->server, buf_peek(&chunk));
	buf_wipe(&chunk);
	return r;
}

/* The last chunk, and the client's trailers. */
static int forward_put_last(struct forward *x)
{
	struct buf last CLEANUP(buf_fini) = BUF_INIT(H1_TRAILER_MAX + 64);
	int r;

	r = buf_put_str(&last, "0\r\n");
	if (!r)
		r = forward_put_trailers(&last, httpd_body_trailers(x->r),
					 x->drops);
	if (!r)
		r = buf_put_str(&last, "\r\n");
	return r ? r : stream_write(x->server, buf_peek(&last));
}

/* The server takes no more: what it has said already is still to be read. */
static void forward_stop_body(struct forward *x)
{
	x->body_stopped = true;
	x->body_waits = false;
	httpd_body_pause(x->r);
	forward_rearm(x);
}

static void forward_on_piece(struct forward *x, struct span bytes)
{
	if (x->body_stopped)
		return;
	x->result.request_bytes += bytes.len;
	/* the queue was under SERVER_UNSENT_MAX: nothing is refused */
	if (forward_put_piece(x, bytes)) {
		forward_stop_body(x);
	} else if (stream_unsent(x->server) >= SERVER_UNSENT_MAX) {
		x->body_waits = true;
		httpd_body_pause(x->r);
		forward_rearm(x);
	}
}

static void forward_on_body(void *user, struct httpd_request *r,
			    enum httpd_piece kind, struct span bytes)
{
	struct forward *x = user;

	(void)r;
	switch (kind) {
	case HTTPD_PIECE:
		forward_on_piece(x, bytes);
		return;
	case HTTPD_PIECE_END:
		x->body_over = true;
		if (x->chunks && !x->body_stopped && forward_put_last(x))
			forward_stop_body(x);
		return;
	case HTTPD_PIECE_CUT:
		forward_abort(x, 400, "the body was cut or broken\n");
		return;
	}
	must(!"a piece of no kind");
}

/* -- reaching the server --------------------------------------------------- */

static void forward_ready(struct forward *x)
{
	timer_stop(&x->connecting);
	stream_set_owner(x->server, forward_on_server, x);
	forward_rearm(x);
	/* a failure is met by the read */
	if (stream_write(x->server, buf_peek(&x->request)))
		x->body_stopped = true;
	if (!x->body_asked) {
		x->body_asked = true;
		httpd_body_read(x->r, forward_on_body);
	}
}

static void forward_note(struct forward *x, int error)
{
	x->result.error = error;
	x->refused |= error == -ECONNREFUSED;
}

/* The next address that can be tried. 0 or -errno. */
static int forward_try(struct forward *x)
{
	int r = -ECONNREFUSED;

	for (; x->addr_at < x->addr_count; x->addr_at++) {
		r = stream_connect_by(x->forwarder->loop, &x->addrs[x->addr_at],
				      x->device, &x->server);
		if (!r)
			break;
		forward_note(x, r);
	}
	return r;
}

/* Is there another port to ask? Then it is the order's. */
static bool forward_turn(struct forward *x)
{
	forward_elsewhere *elsewhere = x->elsewhere;
	struct buf head = BUF_INIT(FORWARD_HEAD_MAX);
	uint16_t port = 0;
	unsigned i;

	x->elsewhere = NULL;
	if (elsewhere && x->refused)
		port = elsewhere(x->ctx, x->r, &head);
	if (!port) {
		buf_wipe(&head);
		return false;
	}
	buf_wipe(&x->request);
	x->request = head;
	for (i = 0; i < x->addr_count; i++)
		x->addrs[i].port = port;
	x->addr_at = 0;
	return true;
}

/* The next address, or none is left. x may be gone. */
static void forward_connect(struct forward *x)
{
	struct forwarder *f = x->forwarder;
	int r;

	do
		r = forward_try(x);
	while (r && forward_turn(x));
	if (r) {
		forward_fail(x);
		return; /* x is gone */
	}
	stream_set_owner(x->server, forward_on_server, x);
	stream_want(x->server, STREAM_CONNECTED);
	timer_start(&x->connecting, f->connect_ms);
}

static void forward_connect_next(struct forward *x, int error)
{
	x->server = stream_free(x->server);
	timer_stop(&x->connecting);
	forward_note(x, error);
	x->addr_at++;
	forward_connect(x);
	/* x may be gone */
}

static void forward_on_connected(struct forward *x)
{
	const int error = stream_error(x->server);

	if (error) {
		forward_connect_next(x, error);
		return; /* x may be gone */
	}
	x->result.error = 0;
	forward_ready(x);
}

static void forward_on_timer(struct timer *t)
{
	forward_connect_next(container_of(t, struct forward, connecting),
			     -ETIMEDOUT);
}

void forward_end_early(struct forward *x)
{
	if (!x->pooled) {
		forward_fail(x);
		return; /* x is gone */
	}
	x->pooled = x->body_stopped = false;
	x->server = stream_free(x->server);
	x->addr_at = 0;
	forward_connect(x);
	/* x may be gone */
}

static void forward_on_server(struct stream *s, void *ctx, unsigned events)
{
	struct forward *x = ctx;

	(void)s;
	if (events & STREAM_CONNECTED) {
		forward_on_connected(x);
		return; /* x may be gone */
	}
	if (events & STREAM_WRITABLE && x->body_waits) {
		x->body_waits = false;
		forward_rearm(x);
		httpd_body_resume(x->r);
	}
	if (!(events & STREAM_READABLE))
		return;
	if (x->replying)
		forward_read_body(x);
	else
		forward_read_head(x);
	/* x may be gone */
}

/* -- its beginning --------------------------------------------------------- */

static bool request_is_bare(const struct h1_request *head)
{
	return head->body == H1_BODY_NONE ||
	       (head->body == H1_BODY_LENGTH && !head->length);
}

static bool request_is_repeatable(const struct h1_request *head)
{
	static const struct span methods[] = {
		SPAN_INIT("GET"),   SPAN_INIT("HEAD"), SPAN_INIT("OPTIONS"),
		SPAN_INIT("TRACE"), SPAN_INIT("PUT"),  SPAN_INIT("DELETE"),
	};

	if (!request_is_bare(head))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (span_eq(head->method, methods[i]))
			return true;
	return false;
}

static struct stream *forward_take_kept(struct forward *x)
{
	struct stream *s = NULL;
	unsigned i;

	for (i = 0; !s && i < x->addr_count; i++) {
		s = forward_pool_take(&x->forwarder->pool, &x->addrs[i],
				      x->device);
		x->addr_at = s ? i : 0;
	}
	return s;
}

void forward_begin(struct forwarder *f, struct httpd_request *r,
		   struct forward_order *order)
{
	const struct h1_request *head = httpd_head(r);
	struct forward *x = must_alloc(sizeof(*x));

	must(order->addr_count <= FORWARD_ADDRS_MAX);
	x->forwarder = f;
	x->r = r;
	x->server = order->stream;
	memcpy(x->addrs, order->addrs, sizeof(x->addrs));
	x->addr_count = order->stream ? 0 : order->addr_count;
	if (order->device)
		(void)snprintf(x->device, sizeof(x->device), "%s",
			       order->device);
	x->request = order->head;
	x->upgrade = head->upgrade;
	x->switch_lines = order->switch_lines;
	x->drops = order->drops;
	x->elsewhere = order->elsewhere;
	x->done = order->done;
	x->ctx = order->ctx;
	x->chunks = head->body == H1_BODY_CHUNKED;
	x->body_over = request_is_bare(head);
	buf_init(&x->trailers, H1_TRAILER_MAX);
	buf_init(&x->in, FORWARD_REPLY_HEAD_MAX + FORWARD_CHUNK_BYTES);
	timer_init(&x->connecting, f->loop, forward_on_timer);
	list_init(&x->link);
	list_push(&f->exchanges, &x->link);
	httpd_set_user(r, x);
	httpd_on_gone(r, forward_on_gone);

	if (x->upgrade && f->tunnel_count >= FORWARD_TUNNELS_MAX) {
		forward_abort(x, 503,
			      "there are as many upgraded connections "
			      "as are allowed\n");
		return;
	}
	if (!x->server && !x->upgrade && request_is_repeatable(head)) {
		x->server = forward_take_kept(x);
		x->pooled = x->server;
	}
	if (x->server)
		forward_ready(x);
	else
		forward_connect(x);
}

/* -- all of them ----------------------------------------------------------- */

void forwarder_init(struct forwarder *f, struct loop *loop)
{
	*f = (struct forwarder){ .loop = loop,
				 .prefix = "",
				 .connect_ms = CONNECT_MS };
	forward_pool_init(&f->pool, loop);
	list_init(&f->exchanges);
	list_init(&f->tunnels);
}

static bool goes_to(const struct forward *x, const struct addr *ip,
		    const char *device)
{
	unsigned i;

	if (strcmp(x->device, device) != 0)
		return false;
	for (i = 0; i < x->addr_count; i++)
		if (addr_eq_ip(&x->addrs[i], ip))
			return true;
	return false;
}

void forwarder_cut(struct forwarder *f, const struct addr *ip,
		   const char *device)
{
	forward_pool_forget(&f->pool, ip, device);
	list_for_each(it, &f->exchanges)
	{
		struct forward *x = container_of(it, struct forward, link);

		if (goes_to(x, ip, device))
			forward_fail(x);
	}
	forward_tunnels_cut(f, ip, device);
}

void forward_look(struct forward *x, uint64_t bytes, forward_used *used)
{
	if (bytes == x->bytes_seen)
		return;
	x->bytes_seen = bytes;
	used(x->ctx);
}

void forwarder_used(struct forwarder *f, forward_used *used)
{
	list_for_each(it, &f->exchanges)
	{
		struct forward *x = container_of(it, struct forward, link);

		forward_look(x,
			     x->result.request_bytes + x->result.response_bytes,
			     used);
	}
	forward_tunnels_used(f, used);
}

void forwarder_fini(struct forwarder *f)
{
	list_for_each(it, &f->exchanges)
		forward_fail(container_of(it, struct forward, link));
	forward_tunnels_fini(f);
	forward_pool_fini(&f->pool);
}
