/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.c - a request on its way to a server of the sandbox, and its reply
 *
 * How it works: the server is connected to first (IPv4 loopback, IPv6 where
 * that refuses); only then is the client's body read, and goes on piece by
 * piece while the server takes it. The reply (exchange_reply.c) runs at the
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

#include "src/execd/proxy/exchange.h"

#include <errno.h>

#include "src/base/addr.h"
#include "src/base/err.h"
#include "src/execd/proxy/exchange_inside.h"
#include "src/execd/proxy/head.h"

enum {
	CONNECT_MS = 30 * 1000,
	LINGER_MS = 1000,
	REQUEST_MAX = 64 * 1024,
	SERVER_UNSENT_MAX = 128 * 1024, /* then the client's body waits */
};

static void exchange_on_server(struct stream *s, void *ctx, unsigned events);

/* -- its end --------------------------------------------------------------- */

void exchange_free(struct exchange *x)
{
	timer_stop(&x->connecting);
	list_remove(&x->link);
	buf_wipe(&x->request);
	buf_fini(&x->in);
	free(x);
}

/* Both sides see that it was not finished. */
static void exchange_abort(struct exchange *x, unsigned status,
			   struct span sentence)
{
	struct httpd_request *r = take_ptr(x->r);
	const bool replying = x->replying;

	if (x->server)
		x->server = stream_reset(x->server);
	exchange_free(x);
	if (replying)
		httpd_stream_abort(r);
	else
		httpd_reply(r, status, "text/plain; charset=utf-8", sentence);
}

void exchange_fail(struct exchange *x)
{
	exchange_abort(x, 502, SPAN("Bad Gateway\n"));
}

void exchange_cut(struct list *link)
{
	exchange_fail(container_of(link, struct exchange, link));
}

void exchange_finish(struct exchange *x, bool clean)
{
	struct httpd_request *r = take_ptr(x->r);
	struct stream *s = take_ptr(x->server);

	if (x->keep_alive && clean && x->body_over && !x->body_stopped)
		pool_give(&x->proxy->pool, x->port, s);
	else
		(void)stream_close(s, LINGER_MS);
	exchange_free(x);
	if (r)
		httpd_stream_end(r);
}

void exchange_on_gone(void *user, struct httpd_request *r)
{
	struct exchange *x = user;

	if (x->server)
		x->server = stream_reset(x->server);
	exchange_free(x);
	httpd_stream_end(r);
}

void exchange_rearm(struct exchange *x)
{
	stream_want(x->server, (x->full ? 0u : STREAM_READABLE) |
				       (x->body_waits ? STREAM_WRITABLE : 0u));
}

/* -- the client's body ----------------------------------------------------- */

static int exchange_put_piece(struct exchange *x, struct span bytes)
{
	char head[H1_CHUNK_HEAD_SIZE];
	int r = 0;

	if (x->chunks)
		r = stream_write(x->server,
				 span_of(head, h1_chunk_head(bytes.len, head)));
	if (!r)
		r = stream_write(x->server, bytes);
	if (!r && x->chunks)
		r = stream_write(x->server, SPAN("\r\n"));
	return r;
}

/* The server takes no more: what it has said already is still to be read. */
static void exchange_stop_body(struct exchange *x)
{
	x->body_stopped = true;
	x->body_waits = false;
	httpd_body_pause(x->r);
	exchange_rearm(x);
}

static void exchange_on_piece(struct exchange *x, struct span bytes)
{
	if (x->body_stopped)
		return;
	/* the queue was under SERVER_UNSENT_MAX: no part is refused */
	if (exchange_put_piece(x, bytes)) {
		exchange_stop_body(x);
	} else if (stream_unsent(x->server) >= SERVER_UNSENT_MAX) {
		x->body_waits = true;
		httpd_body_pause(x->r);
		exchange_rearm(x);
	}
}

static void exchange_on_body(void *user, struct httpd_request *r,
			     enum httpd_piece kind, struct span bytes)
{
	struct exchange *x = user;

	(void)r;
	switch (kind) {
	case HTTPD_PIECE:
		exchange_on_piece(x, bytes);
		return;
	case HTTPD_PIECE_END:
		x->body_over = true;
		if (x->chunks && !x->body_stopped &&
		    stream_write(x->server, SPAN("0\r\n\r\n")))
			exchange_stop_body(x);
		return;
	case HTTPD_PIECE_CUT:
		exchange_abort(x, 400, SPAN("the body was cut or broken\n"));
		return;
	}
	must(!"a piece of no kind");
}

/* -- reaching the server --------------------------------------------------- */

static void exchange_ready(struct exchange *x)
{
	timer_stop(&x->connecting);
	stream_set_owner(x->server, exchange_on_server, x);
	exchange_rearm(x);
	/* a failure is met by the read */
	if (stream_write(x->server, buf_peek(&x->request)))
		x->body_stopped = true;
	if (!x->body_asked) {
		x->body_asked = true;
		httpd_body_read(x->r, exchange_on_body);
	}
}

static void exchange_connect(struct exchange *x)
{
	struct loop *loop = x->proxy->pool.loop;
	struct addr at;
	int r;

	must(addr_parse(x->over_v6 ? SPAN("::1") : SPAN("127.0.0.1"), &at));
	at.port = x->port;
	r = stream_connect(loop, &at, &x->server);
	if (r == -ECONNREFUSED && !x->over_v6) {
		x->over_v6 = true;
		exchange_connect(x);
		return; /* x may be gone */
	}
	if (r) {
		exchange_fail(x);
		return; /* x is gone */
	}
	stream_set_owner(x->server, exchange_on_server, x);
	stream_want(x->server, STREAM_CONNECTED);
	timer_start(&x->connecting, CONNECT_MS);
}

static void exchange_on_connected(struct exchange *x)
{
	const int error = stream_error(x->server);

	if (!error) {
		exchange_ready(x);
		return;
	}
	x->server = stream_free(x->server);
	if (error != -ECONNREFUSED || x->over_v6) {
		exchange_fail(x);
		return; /* x is gone */
	}
	x->over_v6 = true;
	exchange_connect(x);
	/* x may be gone */
}

static void exchange_on_timer(struct timer *t)
{
	exchange_fail(container_of(t, struct exchange, connecting));
}

void exchange_end_early(struct exchange *x)
{
	if (!x->pooled) {
		exchange_fail(x);
		return; /* x is gone */
	}
	x->pooled = x->body_stopped = false;
	x->server = stream_free(x->server);
	exchange_connect(x);
	/* x may be gone */
}

static void exchange_on_server(struct stream *s, void *ctx, unsigned events)
{
	struct exchange *x = ctx;

	(void)s;
	if (events & STREAM_CONNECTED) {
		exchange_on_connected(x);
		return; /* x may be gone */
	}
	if (events & STREAM_WRITABLE && x->body_waits) {
		x->body_waits = false;
		exchange_rearm(x);
		httpd_body_resume(x->r);
	}
	if (!(events & STREAM_READABLE))
		return;
	if (x->replying)
		exchange_read_body(x);
	else
		exchange_read_head(x);
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

void exchange_begin(struct proxy *p, struct httpd_request *r,
		    const struct target *to)
{
	const struct h1_request *head = httpd_head(r);
	struct exchange *x = must_alloc(sizeof(*x));

	x->proxy = p;
	x->r = r;
	x->port = to->port;
	x->upgrade = head->upgrade;
	x->chunks = head->body == H1_BODY_CHUNKED;
	x->body_over = request_is_bare(head);
	buf_init(&x->request, REQUEST_MAX);
	buf_init(&x->in, HEAD_MAX + CHUNK_BYTES);
	timer_init(&x->connecting, p->pool.loop, exchange_on_timer);
	list_init(&x->link);
	list_push(&p->exchanges, &x->link);
	httpd_set_user(r, x);
	httpd_on_gone(r, exchange_on_gone);

	if (head_put_request(&x->request, head, to, &httpd_peer(r)->address,
			     x->upgrade)) {
		exchange_abort(x, 431, SPAN("the head is too long\n"));
		return;
	}
	if (!x->upgrade && request_is_repeatable(head))
		x->server = pool_take(&p->pool, to->port);
	x->pooled = x->server;
	if (x->server)
		exchange_ready(x);
	else
		exchange_connect(x);
}
