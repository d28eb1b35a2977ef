/* SPDX-License-Identifier: Apache-2.0 */
/* origin.h - connections to origins, kept and reused per sandbox and
 * destination
 *
 * How it works: a group is one (sandbox, scheme, host, address policy, port);
 * nothing is ever shared between groups: not a connection, not a TLS session.
 * origin_open() gives an idle connection of the group or begins a new one,
 * trying the destination's checked addresses in order. TLS is verified against
 * the configured roots and the destination's name (or IP) before ORIGIN_OPENED.
 *
 * HTTP/1.1: one owner at a time. When the owner is done it either gives the
 * origin back with origin_keep() or ends it with origin_free(). HTTP/2 (->h2 is
 * set): any number of exchanges of the group share the origin; nobody owns it,
 * and origin_rest() is told when the last one left.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/audit/audit.h"
#include "gateway/upstream/destination.h"
#include "src/base/buf.h"
#include "src/base/list.h"
#include "src/io/loop.h"

struct chain_dial;
struct grant;
struct origin;
struct origin_group;
struct origin_h2;
struct origin_pool;
struct stream;
struct ssl_ctx_st;
struct ssl_session_st;
struct sandbox;
struct worker;

enum origin_event {
	ORIGIN_OPENED,
	ORIGIN_FAILED, /* ->reason and ->detail; the owner frees it */
};

typedef void origin_fn(struct origin *o, void *ctx, enum origin_event event);

/* What only an origin has that is not open yet. Kept ones are many. */
struct origin_aim {
	struct destination destination;
	unsigned attempt; /* the address that is tried */
	bool listens;	  /* the origin may speak first */
	char detail[128];
};

struct origin {
	struct worker *worker;
	struct origin_group *group;
	struct stream *stream;
	struct chain_dial *dial; /* by way of another proxy, under way */
	struct buf in;		 /* received, not yet consumed by the owner */
	/* Connected to, or what the upstream proxy was asked for; port 0: it
	 * was asked for the name. */
	struct addr address;
	bool open;		  /* TCP and TLS are up */
	bool reused;		  /* it was kept, and taken again */
	bool served;		  /* it served an exchange before */
	bool wants_h2;		  /* offered to the origin, first */
	bool retired;		  /* HTTP/2: it takes no new streams */
	struct origin_h2 *h2;	  /* NULL: HTTP/1.1, or not open */
	uint64_t facts_version;	  /* its address was allowed under */
	enum audit_reason reason; /* with ORIGIN_FAILED */
	const char *detail;	  /* the same; else "" */
	/* private */
	struct origin_aim *aim; /* NULL: it is open */
	struct list link;   /* in the group's list of idle or waiting ones */
	struct list shared; /* HTTP/2: in the group, while it has room */
	const struct sandbox *sandbox; /* the owner's, until it is open */
	struct list lru;	       /* in the pool's idle list */
	struct timer timer;
	origin_fn *fn;
	void *ctx;
};

struct origin_pool *origin_pool_new(struct worker *w);
struct origin_pool *origin_pool_free(struct origin_pool *pool);
/* Ends every idle connection. */
void origin_pool_drop_idle(struct origin_pool *pool);

/* What the origins of a group were found to speak. */
enum origin_alpn { ORIGIN_ALPN_UNKNOWN, ORIGIN_ALPN_H1, ORIGIN_ALPN_H2 };

enum origin_manner {
	ORIGIN_PLAINLY,
	ORIGIN_BY_H2,	  /* where the origin speaks it; see ->h2 of what comes */
	ORIGIN_TO_LISTEN, /* the origin may speak first */
};

/* Never NULL. If ->open at once, fn is not called; else fn is, once, from the
 * loop, and may give another origin than was returned: one to share. The grant
 * is proof that policy allowed it; it is not kept. */
struct origin *origin_open(struct worker *w, const struct sandbox *s,
			   const struct destination *d,
			   const struct grant *grant,
			   enum origin_manner manner, origin_fn *fn, void *ctx);
enum origin_alpn origin_alpn(struct worker *w, const struct sandbox *s,
			     const struct destination *d);
/* Ends it, at any time. NULL is fine; returns NULL. */
struct origin *origin_free(struct origin *o);
/* Takes it back for the next exchange; nothing may be unread. Returns NULL. */
struct origin *origin_keep(struct origin *o);
/* HTTP/2: nobody uses it now; it stays for a while. */
void origin_rest(struct origin *o);
/* HTTP/2: it ends when its last stream does. */
void origin_retire(struct origin *o);
/* Takes the stream out and ends the rest. */
struct stream *origin_take_stream(struct origin *o);

/* The context of all connections to origins: TLS 1.2 at least, verification
 * against the trust store, new sessions to their group. Dies never; 0 or
 * -EIO. */
struct x509_store_st;
WUNRES int origin_ctx_new(struct x509_store_st *trust, struct ssl_ctx_st **ret);
