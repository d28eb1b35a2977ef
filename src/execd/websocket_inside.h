/* SPDX-License-Identifier: Apache-2.0 */
/* websocket_inside.h - what the two websocket*.c files share */
#pragma once

#include "src/base/buf.h"
#include "src/execd/websocket.h"
#include "src/io/loop.h"
#include "src/io/stream.h"
#include "src/wire/h1.h"

struct websocket {
	struct stream *stream; /* NULL: over; freed when nobody is inside */
	struct timer ping;
	struct timer silence; /* not open: of the whole handshake */
	struct websocket_limits limits;
	const struct websocket_ops *ops;
	void *ctx;
	struct ws ws;
	unsigned busy;	     /* calls of ours on the stack */
	bool open;	     /* frames flow */
	bool held;	     /* by the owner */
	bool full;	     /* the owner is owed .room */
	bool broken;	     /* a send failed; .silence will end it */
	struct buf gathered; /* of a message told whole; of a client's
				handshake: the reply's head */
	/* of a client's handshake */
	struct h1_scan scan;
	char accept[WS_ACCEPT_SIZE];
};

/* Takes s, wants to be called, and is not open. */
struct websocket *websocket_new(struct stream *s, bool is_server,
				const struct websocket_limits *limits,
				const struct websocket_ops *ops, void *ctx);
/* Pings and frames begin. */
void websocket_set_open(struct websocket *w);
/* One frame into the stream's queue: as stream_write(). */
int websocket_put(struct websocket *w, enum ws_opcode opcode,
		  struct span bytes);
/* A send failed: it will be ended from the loop. */
void websocket_set_broken(struct websocket *w);
/* Ends it and tells the owner; w may be gone. */
void websocket_lose(struct websocket *w, const char *why);
/* The stream has something, and w is not open yet; w->stream may be gone. */
void websocket_open_step(struct websocket *w, unsigned events);
