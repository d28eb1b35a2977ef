/* SPDX-License-Identifier: Apache-2.0 */
/* forward_inside.h - what the forward*.c files share */
#pragma once

#include <net/if.h>

#include "src/httpd/forward.h"
#include "src/httpd/httpd.h"
#include "src/io/loop.h"
#include "src/io/stream.h"
#include "src/wire/h1.h"

enum {
	FORWARD_REPLY_HEAD_MAX = 32 * 1024,
	FORWARD_CHUNK_BYTES = 64 * 1024,
};

struct forward {
	struct list link; /* in forwarder.exchanges */
	struct forwarder *forwarder;
	struct httpd_request *r; /* NULL: answered */
	struct stream *server;	 /* NULL: none now */
	struct timer connecting;
	struct addr addrs[FORWARD_ADDRS_MAX];
	unsigned addr_count, addr_at; /* addr_count 0: its stream was given */
	char device[IFNAMSIZ];	      /* "": whichever the routes say */
	bool pooled;  /* from the pool; nothing was heard on it yet */
	bool upgrade; /* the client asks for another protocol */
	struct span switch_lines;
	bool (*drops)(const struct header *h); /* of the client's trailers */
	forward_elsewhere *elsewhere;	       /* NULL: not, or it was asked */
	bool refused; /* an address has, of all of them */
	forward_done *done;
	void *ctx;
	struct forward_result result;
	uint64_t bytes_seen; /* by forwarder_used() */

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
	struct buf trailers; /* of the server */
};

/* -- forward.c ------------------------------------------------------------- */

/* The request was answered, or is gone; the server's stream is taken. Tells
 * how it went. */
void forward_free(struct forward *x);
/* 502, or a cut reply; frees x. */
void forward_fail(struct forward *x);
/* The reply is whole. `clean`: the server has sent nothing behind it. Frees x.
 */
void forward_finish(struct forward *x, bool clean);
/* The server ended without a word; x may be gone. */
void forward_end_early(struct forward *x);
/* For httpd: the client has gone. Frees x. */
void forward_on_gone(void *user, struct httpd_request *r);
/* Which calls of the server's stream are due. */
void forward_rearm(struct forward *x);

/* -- forward_reply.c: the server's stream is readable; x may be gone ------- */

void forward_read_head(struct forward *x);
void forward_read_body(struct forward *x);

/* -- forward_tunnel.c ------------------------------------------------------ */

/* Joins both, which it takes; x is told of the end, and freed. NULL as client:
 * he has gone. */
void forward_join(struct forward *x, struct stream *client,
		  struct stream *server);
void forward_tunnels_cut(struct forwarder *f, const struct addr *ip,
			 const char *device);
void forward_tunnels_used(struct forwarder *f, forward_used *used);
/* It has moved so many until now: is that more than before? */
void forward_look(struct forward *x, uint64_t bytes, forward_used *used);
/* All of them, told of at once. */
void forward_tunnels_fini(struct forwarder *f);
