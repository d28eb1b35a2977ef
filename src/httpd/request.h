/* SPDX-License-Identifier: Apache-2.0 */
/* request.h - a connection and the one request on it (inside src/httpd) */
#pragma once

#include "src/base/arena.h"
#include "src/base/buf.h"
#include "src/base/list.h"
#include "src/httpd/httpd.h"
#include "src/io/loop.h"
#include "src/wire/h1.h"

struct stream;

enum {
	HTTPD_IDLE_MS = 60 * 1000,    /* kept alive without a request */
	HTTPD_HEAD_MS = 10 * 1000,    /* a started head; a TLS handshake */
	HTTPD_SILENCE_MS = 30 * 1000, /* of a body, of a reply nobody reads */
	HTTPD_LINGER_MS = 2 * 1000,
	HTTPD_ARENA_MAX = 64 * 1024,
	HTTPD_ID_MAX = 128,
	HTTPD_PIECE_MAX = 256 * 1024,
	HTTPD_DROP_MAX = 1024 * 1024, /* of a body nobody wants */
	HTTPD_IN_MAX = 2 * HTTPD_HEAD_MAX,
};

enum request_state {
	REQUEST_HEAD,	 /* a head is awaited; no field of a request is set */
	REQUEST_BODY,	 /* .head and .route are set; the body is read */
	REQUEST_HANDLER, /* the handler has the request; .body is whole, or
			    .body_state tells of it */
	REQUEST_STREAM,	 /* the handler is sending pieces of the reply */
	REQUEST_REPLY,	 /* the handler is done; .out is being sent */
	REQUEST_GONE,	 /* no stream; waits for the handler to let go */
	REQUEST_OVER,	 /* no stream; the handler let go: to be freed */
	REQUEST_STATE_NUM,
};

/* Of a body that is not read before the handler is called. */
enum body_state {
	BODY_OVER, /* zero: there is none, or no more of it */
	BODY_HELD, /* the handler does not read (yet) */
	BODY_READ, /* pieces go to .body_fn */
	BODY_DROP, /* the reply is there already; the rest goes nowhere */
};

struct httpd_param {
	struct span name, value;
	bool raw; /* {name*}: not decoded */
};

struct httpd_extra {
	struct httpd_extra *next;
	struct span name, value; /* in the arena; value.ptr NULL: left out */
};

struct httpd_request {
	struct httpd *httpd; /* NULL: the server is gone */
	struct list link;    /* in httpd.requests */
	struct stream *stream;
	struct timer timer;
	struct httpd_peer peer;
	enum request_state state;
	bool running;	/* request_run() is on the stack */
	bool known;	/* a request of this connection was authorised */
	bool last;	/* close after this reply */
	bool end_seen;	/* the client sent its end of stream */
	struct buf in;	/* received, not yet consumed */
	struct buf out; /* to be sent */
	struct h1_scan scan;
	bool head_begun; /* its time runs */

	/* from the head on */
	char *head_bytes; /* what .head points into */
	size_t head_len;
	struct h1_request head;
	struct span path, query;
	const struct httpd_route *route;
	struct httpd_param params[HTTPD_PARAMS_MAX];
	unsigned param_count;
	char id[HTTPD_ID_MAX + 1];
	struct arena arena;
	struct h1_chunked chunked;
	uint64_t body_left; /* of a body with a length */
	struct buf body;

	/* a streamed body (request_body.c) */
	enum body_state body_state;
	struct timer body_timer;
	httpd_body_fn *body_fn; /* set by httpd_body_read() */
	struct span ahead;	/* of the bytes being taken: those behind the
				   piece that .body_fn was called for */
	uint64_t dropped;
	bool expected;	/* "100 Continue" is due */
	bool body_told; /* .body_fn has heard of the end */
	struct buf body_trailers;

	/* the handler's */
	void *user;
	void (*gone)(void *user, struct httpd_request *r);
	struct httpd_extra *extra, **extra_end;
	size_t extra_bytes;
	struct span reason; /* in the arena; ptr NULL: the usual one */

	/* a streamed reply (reply_stream.c) */
	bool chunks; /* it is chunked */
	bool sized;
	uint64_t sized_left;
	void (*room)(void *user, struct httpd_request *r);
	bool room_due;	   /* .room was just set, or much is unsent */
	size_t room_bytes; /* what is much; 0: as usual */
	struct buf trailers;
};

/* -- the server's side (httpd.c) ------------------------------------------ */

struct httpd {
	struct loop *loop;
	const struct httpd_route *routes;
	unsigned route_count;
	const struct httpd_ops *ops;
	void *ctx;
	struct httpd_limits limits;
	struct list listeners;
	struct list requests;
	unsigned request_count;
	char *piece; /* HTTPD_PIECE_MAX bytes of a body while they are told */
	bool draining;
	void (*drained)(void *ctx);
	void *drained_ctx;
};

/* Starts TLS on an accepted stream; NULL until httpd_tls_new() was called. */
extern int (*httpd_tls_start)(struct ssl_ctx_st *tls, struct stream *s);
/* A request of h was freed: go on with a drain. */
void httpd_request_left(struct httpd *h);

/* -- the connection's life (connection.c) --------------------------------- */

/* Takes the stream; last: it is closed after one request. */
void request_new(struct httpd *h, struct stream *stream,
		 const struct httpd_peer *peer, bool last);
/* Goes on as far as possible; may free r. */
void request_run(struct httpd_request *r);
/* The client is gone or unbearable; may free r. */
void request_drop(struct httpd_request *r);
/* The handler is done with a request whose client has gone. True: that was so,
 * and r is freed or about to be. */
bool request_let_go(struct httpd_request *r);

/* -- a request until its handler has it (request.c) ----------------------- */

/* What a step leads to; each says it all: r is gone with STEP_FREED. */
enum step { STEP_WAIT, STEP_AGAIN, STEP_FREED };

enum step request_step_head(struct httpd_request *r);
enum step request_step_body(struct httpd_request *r);
/* Answers with an error, and closes the connection after it. */
enum step request_refuse(struct httpd_request *r, unsigned status,
			 const char *code, const char *message);

/* -- a body in pieces (request_body.c) ------------------------------------ */

/* At the end of the head of a STREAMED route. */
void body_begin(struct httpd_request *r);
/* The socket is readable, or the handler wants to go on. Callers have set
 * r->running. False: the connection has failed. */
WUNRES bool body_pump(struct httpd_request *r);
/* A reply begins or is complete: is the rest of the body short enough to be
 * read and dropped? If not, the connection closes after the reply. */
void body_settle(struct httpd_request *r);
void body_drop(struct httpd_request *r);
/* Tells a reader that the body was cut, if he has not heard of its end. */
void body_cut(struct httpd_request *r);

/* -- replies (reply.c) ---------------------------------------------------- */

/* Puts a whole reply into .out and moves to REQUEST_REPLY, without running. */
void reply_put(struct httpd_request *r, unsigned status, const char *type,
	       struct span body);
void reply_put_error(struct httpd_request *r, unsigned status, const char *code,
		     const char *message);
const char *reply_error_type(const struct httpd_request *r);
/* Makes room in .out for a head and len bytes more, and puts the status line
 * and every header but those of the body. */
void reply_head_put(struct httpd_request *r, unsigned status, const char *type,
		    size_t len);
bool reply_is_head(const struct httpd_request *r);
/* From how many unsent bytes on a streamed reply has no room. */
size_t reply_room_bytes(const struct httpd_request *r);

/* -- routes (route.c) ----------------------------------------------------- */

enum { ROUTE_E_NOT_FOUND = 1, ROUTE_E_METHOD, ROUTE_E_BAD_PARAM };

/* Sets r->route and r->params from r->head and r->path. ROUTE_E_METHOD: *allow
 * (in r's arena) lists the methods of that path. */
int route_find(const struct httpd *h, struct httpd_request *r,
	       struct span *allow);
