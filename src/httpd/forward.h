/* SPDX-License-Identifier: Apache-2.0 */
/* forward.h - requests of this server's clients, passed on to other servers
 *
 * One order is one request and its reply: the head as it is to be sent, where
 * to, and whom to tell how it went. Bodies move in pieces both ways, each at
 * the pace of who takes it; connections to servers are kept for a moment; after
 * 101 the two connections are joined, whatever they speak.
 *
 * The route must be HTTPD_BODY_STREAMED. Which fields pass is for the caller to
 * say (forward_head.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/addr.h"
#include "src/base/buf.h"
#include "src/base/list.h"
#include "src/httpd/forward_pool.h"

struct header;
struct httpd_request;
struct stream;

enum {
	FORWARD_ADDRS_MAX = 8,
	FORWARD_TUNNELS_MAX = 1024,   /* joined connections, of a forwarder */
	FORWARD_HEAD_MAX = 64 * 1024, /* of a request, as it is sent */
};

/* One for each loop. The fields of the second group may be set after
 * forwarder_init(). */
struct forwarder {
	struct loop *loop;
	struct forward_pool pool;
	struct list exchanges;
	struct list tunnels;
	unsigned tunnel_count;

	const char *prefix;	 /* of every sentence to a client; "" */
	uint64_t connect_ms;	 /* of each address; 30 s */
	uint64_t tunnel_idle_ms; /* without a byte either way; 0: for ever */
};

/* How an order ended. Bytes are those of bodies, or of the tunnel. */
struct forward_result {
	unsigned status; /* as the client was told; 101 after a switch; 0: he
			    left before */
	bool cut;	 /* the reply had begun and was not finished */
	int error;	 /* -errno of the connection when the server was not
			    reached; else 0 */
	uint64_t request_bytes, response_bytes;
};

/* Of an order that every address has refused (nobody listens on the port): the
 * same request to another port of theirs. Puts its head into `head`, which is
 * empty; the port, or 0 when there is none. */
typedef uint16_t forward_elsewhere(void *ctx, const struct httpd_request *r,
				   struct buf *head);

typedef void forward_done(void *ctx, const struct forward_result *result);

struct forward_order {
	struct addr addrs[FORWARD_ADDRS_MAX]; /* with ports; tried in turn */
	unsigned addr_count;
	const char *device;	  /* the network device that leads there; NULL
				     or "": whichever the routes say */
	struct stream *stream;	  /* connected already, instead; taken */
	struct buf head;	  /* taken: the request's head, whole */
	struct span switch_lines; /* further lines of a 101; lives as long */
	/* Is this field left out of the trailers? NULL: none is. */
	bool (*drops)(const struct header *h);
	forward_elsewhere *elsewhere; /* may be NULL; asked once, from the loop
					 or from forward_begin() */
	forward_done *done;	      /* may be NULL; from the loop or from
					 forward_begin() */
	void *ctx;
};

void forwarder_init(struct forwarder *f, struct loop *loop);
/* Cuts what is under way: every order is told of. */
void forwarder_fini(struct forwarder *f);
/* The same of what goes to one address by one device, whatever the port. */
void forwarder_cut(struct forwarder *f, const struct addr *ip,
		   const char *device);

/* Calls used() for each order under way of which a byte was moved, either way,
 * since this was called last. used() ends no order. */
typedef void forward_used(void *ctx);
void forwarder_used(struct forwarder *f, forward_used *used);

/* Takes the request and what the order says. */
void forward_begin(struct forwarder *f, struct httpd_request *r,
		   struct forward_order *order);
