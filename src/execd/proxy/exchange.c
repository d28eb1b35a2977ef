/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.c - a request on its way to a server of the sandbox, and its reply
 *
 * How it works: the server is connected to first (IPv4 loopback, IPv6 where
 * that refuses); only then is the client's body read, and goes on piece by
 * piece while the server takes it. The reply's head is gathered and passed at
 * once; its body is taken out of the server's framing and put into ours, each
 * piece as it comes, while the client takes it. Both ways run at the same time,
 * so a server may answer while it is still being told.
 *
 * A connection from the pool may be closed by its server at the very moment it
 * is used. So only requests that may be sent twice (RFC 9110 9.2.2) and have
 * no body are given to one, and if it ends without a byte of a reply they are
 * sent again on a fresh one.
 *
 * After 101 both connections are joined in the kernel, whatever they speak.
 *
 * Whoever leaves ends the exchange: a client that goes is seen by the server
 * as a reset, a server that fails by the client as 502, or, amid a reply, as a
 * cut one.
 */

#include "src/execd/proxy/exchange.h"

#include <errno.h>

#include "src/base/addr.h"
#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/execd/proxy/head.h"
#include "src/httpd/httpd.h"
#include "src/io/loop.h"
#include "src/io/stream.h"

enum {
	CONNECT_MS = 30 * 1000,
	LINGER_MS = 1000,
	REQUEST_MAX = 64 * 1024,
	HEAD_MAX = 32 * 1024,
	CHUNK_BYTES = 64 * 1024,
	INTERIM_MAX = 16,		/* replies of 1xx */
	SERVER_UNSENT_MAX = 128 * 1024, /* then the client's body waits */
	CLIENT_UNSENT_MAX = 128 * 1024, /* then the server's body waits */
};

struct exchange {
	struct list link; /* in proxy.exchanges */
	struct proxy *proxy;
	struct httpd_request *r; /* NULL: answered */
	uint16_t port;
	struct stream *server; /* NULL: none now */
	struct timer connecting;
	bool pooled;  /* from the pool; nothing was heard on it yet */
	bool over_v6; /* the second address is tried */
	bool upgrade; /* the client asks for another protocol */

	/* to the server */
	struct buf request; /* its head, until the reply begins */
	bool chunks;	    /* its body is chunked */
	bool body_asked;    /* httpd_body_read() was called */
	bool body_over;
	bool body_waits;   /* for room at the server */
	bool body_stopped; /* the server takes no more of it */

	/* to the client */
	struct buf in; /* the head, until it is whole */
	struct h1_scan scan;
	unsigned interims;
	bool replying; /* the reply has begun */
	bool full;     /* the client has no room */
	bool keep_alive;
	enum h1_body framing;
	uint64_t left;
	struct h1_chunked chunked;
};

static void exchange_on_server(struct stream *s, void *ctx, unsigned events);

/* -- its end --------------------------------------------------------------- */

/* The request was answered, or is gone; the server's stream is taken. */
static void exchange_free(struct exchange *x)
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

static void exchange_fail(struct exchange *x)
{
	exchange_abort(x, 502, SPAN("Bad Gateway\n"));
}

void exchange_cut(struct list *link)
{
	exchange_fail(container_of(link, struct exchange, link));
}

/* The reply is whole. `clean`: the server has sent nothing behind it. */
static void exchange_finish(struct exchange *x, bool clean)
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

static void exchange_on_gone(void *user, struct httpd_request *r)
{
	struct exchange *x = user;

	if (x->server)
		x->server = stream_reset(x->server);
	exchange_free(x);
	httpd_stream_end(r);
}

/* Which calls of the server's stream are due. */
static void exchange_rearm(struct exchange *x)
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

/* -- another protocol ------------------------------------------------------ */

static void exchange_switch(struct exchange *x, const struct h1_response *head,
			    struct span behind)
{
	struct buf out = BUF_INIT(HEAD_MAX + 1024);
	struct stream *client, *server = take_ptr(x->server);
	struct httpd_request *r = take_ptr(x->r);
	struct splice *splice;
	int failed;

	failed = head_put_switch(&out, head) || stream_unread(server, behind);
	exchange_free(x);
	stream_set_owner(server, NULL, NULL);
	client = httpd_take_stream(r);
	if (client && !failed)
		failed = stream_write(client, buf_peek(&out));
	buf_fini(&out);
	if (client && !failed &&
	    !stream_splice(client, server, 0, NULL, NULL, &splice))
		return;
	(void)stream_free(client);
	(void)stream_free(server);
}

/* -- the reply's body ------------------------------------------------------ */

/* To the client. False: it is over, or he is gone. */
static bool exchange_pass(struct exchange *x, struct span piece)
{
	if (!piece.len)
		return true;
	if (httpd_stream_write(x->r, piece)) {
		/* he left: .gone will be called */
		x->full = true;
		exchange_rearm(x);
		return false;
	}
	return true;
}

static void exchange_pass_chunks(struct exchange *x, struct span in)
{
	struct span piece;

	while (in.len && !x->chunked.done) {
		if (h1_chunked_next(&x->chunked, &in, &piece, NULL)) {
			exchange_fail(x);
			return; /* x is gone */
		}
		if (!exchange_pass(x, piece))
			return;
	}
	if (x->chunked.done)
		exchange_finish(x, !in.len);
}

static void exchange_pass_length(struct exchange *x, struct span in)
{
	const size_t n = (size_t)MIN((uint64_t)in.len, x->left);

	x->left -= n;
	if (exchange_pass(x, span_of(in.ptr, n)) && !x->left)
		exchange_finish(x, n == in.len);
}

/* x may be gone. */
static void exchange_feed(struct exchange *x, struct span in)
{
	switch (x->framing) {
	case H1_BODY_LENGTH:
		exchange_pass_length(x, in);
		return;
	case H1_BODY_CHUNKED:
		exchange_pass_chunks(x, in);
		return;
	case H1_BODY_CLOSE:
		(void)exchange_pass(x, in);
		return;
	case H1_BODY_NONE:
	case H1_BODY_TUNNEL:
		break;
	}
	must(!"a body where there is none");
}

static void exchange_on_room(void *user, struct httpd_request *r)
{
	struct exchange *x = user;

	(void)r;
	x->full = false;
	exchange_rearm(x);
}

static void exchange_read_body(struct exchange *x)
{
	struct httpd_request *r = x->r;
	char chunk[CHUNK_BYTES];
	ssize_t n;

	if (httpd_stream_unsent(r) >= CLIENT_UNSENT_MAX) {
		x->full = true;
		exchange_rearm(x);
		httpd_stream_on_room(r, exchange_on_room);
		return;
	}
	n = stream_read(x->server, chunk, sizeof(chunk));
	if (n == STREAM_AGAIN)
		return;
	if (n > 0)
		exchange_feed(x, span_of(chunk, (size_t)n));
	else if (!n && x->framing == H1_BODY_CLOSE)
		exchange_finish(x, false);
	else
		exchange_fail(x);
	/* x may be gone */
}

/* -- the reply's head ------------------------------------------------------ */

/* What a reply to HEAD says of its length. */
static bool head_length(const struct h1_response *head, uint64_t *ret)
{
	const struct header *h =
		headers_find(&head->headers, HEADER_CONTENT_LENGTH);

	return h && span_parse_u64(h->value, ret);
}

static bool reply_is_bare(const struct h1_response *head)
{
	return head->status == 204 || head->status == 304;
}

/* Starts the reply; one without a body is over with that. */
static void exchange_reply(struct exchange *x, const struct h1_response *head)
{
	struct httpd_request *r = x->r;
	uint64_t length = head->length;

	if (reply_is_bare(head)) {
		x->r = NULL;
		httpd_reply(r, head->status, NULL, SPAN(""));
		return;
	}
	x->replying = true;
	if (head->body == H1_BODY_LENGTH ||
	    (head->body == H1_BODY_NONE && head_length(head, &length)))
		httpd_stream_start_sized(r, head->status, NULL, length,
					 exchange_on_gone);
	else
		httpd_stream_start(r, head->status, NULL, exchange_on_gone);
	httpd_stream_set_room(r, CLIENT_UNSENT_MAX);
	httpd_stream_on_room(r, exchange_on_room);
}

/* x may be gone. */
static void exchange_on_head(struct exchange *x, const struct h1_response *head,
			     struct span behind)
{
	struct buf in;

	if (head->status == 101) {
		if (x->upgrade && x->body_over)
			exchange_switch(x, head, behind);
		else
			exchange_fail(x);
		return; /* x is gone */
	}
	if (!head_set_reply(x->r, head)) {
		exchange_fail(x);
		return; /* x is gone */
	}
	x->keep_alive = head->keep_alive;
	x->framing = head->body;
	x->left = head->length;
	exchange_reply(x, head);
	buf_wipe(&x->request);
	in = x->in; /* behind lies in it */
	buf_init(&x->in, HEAD_MAX);
	if (x->framing == H1_BODY_NONE ||
	    (x->framing == H1_BODY_LENGTH && !x->left))
		exchange_finish(x, !behind.len);
	else if (behind.len)
		exchange_feed(x, behind);
	buf_fini(&in);
}

/* Looks whether a head is whole; skips interim ones. x may be gone. */
static void exchange_scan_head(struct exchange *x)
{
	struct h1_response head;
	struct span all;
	int len;

	for (;;) {
		all = buf_peek(&x->in);
		len = h1_scan(&x->scan, all, HEAD_MAX);
		if (!len)
			return;
		if (len < 0 || x->interims > INTERIM_MAX ||
		    h1_parse_response(span_of(all.ptr, (size_t)len),
				      httpd_method(x->r), &head)) {
			exchange_fail(x);
			return; /* x is gone */
		}
		if (head.status >= 200 || head.status == 101) {
			exchange_on_head(x, &head, span_from(all, (size_t)len));
			return; /* x may be gone */
		}
		x->interims++;
		buf_consume(&x->in, (size_t)len);
		x->scan = (struct h1_scan){ 0 };
	}
}

/* The server ended without a word. */
static void exchange_end_early(struct exchange *x)
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

static void exchange_read_head(struct exchange *x)
{
	char *room;
	ssize_t n;

	/* h1_scan() refuses what is longer than HEAD_MAX */
	must(buf_reserve(&x->in, CHUNK_BYTES, &room) == 0);
	n = stream_read(x->server, room, CHUNK_BYTES);
	if (n == STREAM_AGAIN)
		return;
	if (n <= 0) {
		exchange_end_early(x);
		return; /* x may be gone */
	}
	x->pooled = false;
	buf_commit(&x->in, (size_t)n);
	exchange_scan_head(x);
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
