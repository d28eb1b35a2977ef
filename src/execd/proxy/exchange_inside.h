/* SPDX-License-Identifier: Apache-2.0 */
/* exchange_inside.h - what the two exchange*.c files share */
#pragma once

#include "src/base/buf.h"
#include "src/execd/proxy/exchange.h"
#include "src/httpd/httpd.h"
#include "src/io/loop.h"
#include "src/io/stream.h"
#include "src/wire/h1.h"

enum {
	HEAD_MAX = 32 * 1024, /* of a reply */
	CHUNK_BYTES = 64 * 1024,
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

/* -- exchange.c ------------------------------------------------------------ */

/* The request was answered, or is gone; the server's stream is taken. */
void exchange_free(struct exchange *x);
/* 502, or a cut reply; frees x. */
void exchange_fail(struct exchange *x);
/* The reply is whole. `clean`: the server has sent nothing behind it. Frees x.
 */
void exchange_finish(struct exchange *x, bool clean);
/* The server ended without a word; x may be gone. */
void exchange_end_early(struct exchange *x);
/* For httpd: the client has gone. Frees x. */
void exchange_on_gone(void *user, struct httpd_request *r);
/* Which calls of the server's stream are due. */
void exchange_rearm(struct exchange *x);

/* -- exchange_reply.c: the server's stream is readable; x may be gone ------ */

void exchange_read_head(struct exchange *x);
void exchange_read_body(struct exchange *x);
