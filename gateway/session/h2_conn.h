/* SPDX-License-Identifier: Apache-2.0 */
/* h2_conn.h - an HTTP/2 connection on a stream, towards a client or an origin
 *
 * How it works: src/wire/h2 works on bytes in memory and calls back only from
 * inside its input and output functions, where exchanges must not run (they
 * may end what is being called). So callbacks only note: a stream that has
 * news is put on the connection's ready list, and the exchanges of that list
 * run afterwards. Output is taken once per turn of the loop, after everything
 * that could have written has run.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/session/leg.h"
#include "src/base/arena.h"
#include "src/base/buf.h"
#include "src/base/list.h"
#include "src/wire/h2.h"

struct exchange;
struct h2_conn;
struct sandbox;
struct stream;
struct worker;

/* A response head that waits to be read: as struct response, with room for no
 * more fields than it has. */
struct h2_response {
	struct h2_response *next;
	uint16_t status;
	enum content content;
	uint64_t length;
	unsigned count;
	struct header fields[];
};

/* A WebSocket or the like: extended CONNECT (RFC 8441). */
enum h2_tunnel {
	H2_TUNNEL_NONE,
	/* Front: the client asked. What it sends already waits. */
	H2_TUNNEL_WANTED,
	/* Back: the origin is asked, or will be once its settings are there
	 * (then id is 0). Nothing is sent into it. */
	H2_TUNNEL_ASKED,
	H2_TUNNEL_OPEN,
};

/* One stream: the leg of an exchange, front or back. */
struct h2_leg {
	struct leg leg;
	struct h2_conn *conn;	 /* NULL: the connection is gone */
	struct sandbox *sandbox; /* what is held here is charged to it */
	struct list link;	 /* in conn->legs */
	struct list ready;	 /* in conn->ready while it has news */
	int32_t id;
	struct buf in;	/* content received */
	bool head_sent; /* content may be written */
	bool in_ended;	/* the peer said its end */
	bool out_ended; /* we said ours */
	bool closed;	/* the stream is gone */
	bool over;	/* ... for its sandbox held too much */
	bool begun;	/* front: exchange_begin() was called */
	enum h2_tunnel tunnel;
	uint32_t code;				/* why it is gone */
	struct headers *trailers;		/* in the exchange's arena */
	struct h2_response *first, **last_next; /* back: heads */
};

struct h2_conn_ops {
	const struct h2_ops h2;
	/* The connection ended; every leg was told. Frees the connection. */
	void (*ended)(struct h2_conn *c);
};

struct h2_conn {
	struct worker *worker;
	struct stream *stream; /* owned by who owns the connection */
	struct h2 *h2;
	const struct h2_conn_ops *ops;
	struct list legs, ready;
	struct list dirty; /* in worker->h2_dirty: output is due */
	unsigned leg_count;
	uint64_t heard_ms; /* bytes of the peer's came last */
	const char *why;   /* it failed; NULL: the peer closed it */
	bool failed;
	bool said;  /* by an origin: a head or trailers, in this read */
	bool spoke; /* a head or data came; for who clears it */
};

/* A reader that is slow holds back its own stream and no other: so the window
 * of the connection is not smaller than those of all streams together, of which
 * "http2.streams" allows 128 (a window grows only for who reads fast). Windows
 * let one connection fill tens of MiB, so a sandbox with many of them is held
 * to "http2.sandboxHeldBytes" and "http2.sandboxStreams", per event loop. */
enum {
	H2_CONN_WINDOW = 32 * 1024 * 1024,
	H2_CONN_WINDOW_MAX = 64 * 1024 * 1024,
};

WUNRES int h2_conn_init(struct h2_conn *c, struct worker *w, struct stream *s,
			enum h2_side side, const struct h2_limits *limits,
			const struct h2_conn_ops *ops);
/* Legs that are left lose their connection and are told nothing. */
void h2_conn_fini(struct h2_conn *c);

/* The stream has bytes or room: reads, runs what has news. c stays: it ends
 * only when it is settled. */
void h2_conn_run(struct h2_conn *c);
/* The peer is given up: legs are told, and it ends at the end of this turn. why
 * is a constant, for people. */
void h2_conn_lose(struct h2_conn *c, const char *why);
/* Legs that have no stream yet have news: settings, or the end. */
void h2_conn_tell_waiting(struct h2_conn *c);
/* Output is due at the end of this turn. */
void h2_conn_touch(struct h2_conn *c);
/* End of a turn: sends for every connection that was touched. */
void h2_conns_settle(struct worker *w);

/* -- legs ------------------------------------------------------------------ */

/* The sandbox outlives the leg. */
void h2_leg_init(struct h2_leg *l, struct h2_conn *c, struct sandbox *sandbox,
		 const struct leg_ops *ops);
/* Unlinks it and frees what it holds, not the leg. */
void h2_leg_fini(struct h2_leg *l);
void h2_leg_news(struct h2_leg *l);
/* Why it is gone, for people. */
const char *h2_leg_why(const struct h2_leg *l);

/* As in leg.h; H2_LEG_OPS are their rows of a struct leg_ops. */
enum leg_read h2_leg_read(struct leg *leg, size_t max, struct span *ret);
const struct headers *h2_leg_trailers(struct leg *leg);
size_t h2_leg_room(const struct leg *leg);
int h2_leg_write(struct leg *leg, struct span content);
int h2_leg_end(struct leg *leg, const struct headers *trailers);
int h2_leg_flush(struct leg *leg);
void h2_leg_want(struct leg *leg, unsigned what);

#define H2_LEG_OPS                                                             \
	.read = h2_leg_read, .trailers = h2_leg_trailers, .room = h2_leg_room, \
	.write = h2_leg_write, .end = h2_leg_end, .flush = h2_leg_flush,       \
	.want = h2_leg_want

/* As in struct h2_ops; ctx is the connection, stream data the leg. H2_CONN_OPS
 * are their rows. */
void h2_leg_on_data(void *ctx, int32_t id, struct span bytes);
void h2_leg_on_end(void *ctx, int32_t id);
void h2_leg_on_trailers(void *ctx, int32_t id, const struct headers *trailers);
void h2_leg_on_room(void *ctx, int32_t id);

#define H2_CONN_OPS                                   \
	.data = h2_leg_on_data, .end = h2_leg_on_end, \
	.trailers = h2_leg_on_trailers, .room = h2_leg_on_room

/* Content-Length. False: none is said; then *ret_length is 0. (One that is no
 * number was refused before.) */
bool h2_length_of(const struct headers *headers, uint64_t *ret_length);
/* Copies from's fields into an arena, their list to `to`, which has room for
 * all of them. False: no memory. */
bool h2_copy_fields(struct arena *a, const struct headers *from,
		    struct header *to);
/* The same, into a list of its own. */
bool h2_copy_headers(struct arena *a, const struct headers *from,
		     struct headers *to);
