/* SPDX-License-Identifier: Apache-2.0 */
/* ask.h - what a client of a terminal asks for, out of its messages
 *
 * Binary: 0x00 and bytes for stdin, of any length, passed on as they come.
 * Text: {"type": "stdin" | "signal" | "resize" | "ping", ...}, at most
 * ASK_TEXT_MAX bytes. Whatever else comes is told as ASK_BAD with a sentence;
 * none of it ends the connection. Pure (contract 5.8).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/buf.h"
#include "src/base/span.h"
#include "src/wire/ws.h"

enum { ASK_TEXT_MAX = 256 * 1024, ASK_WHY_SIZE = 160 };

enum ask_kind {
	ASK_BAD, /* .why */
	ASK_STDIN,
	ASK_SIGNAL,
	ASK_RESIZE,
	ASK_PING,
};

struct ask {
	enum ask_kind kind;
	struct span data; /* of STDIN; borrowed for the call */
	int signal;	  /* SIG... */
	uint16_t cols, rows;
	char why[ASK_WHY_SIZE];
};

/* The state between pieces of one message. */
struct asks {
	struct buf text;
	bool inside; /* a message has begun */
	bool skip;   /* the rest of it says nothing */
};

typedef void ask_fn(void *ctx, const struct ask *ask);

void asks_init(struct asks *a);
void asks_fini(struct asks *a);
/* A piece of a message, in order; fn is called for what it asks, before this
 * returns, and may call asks_fini(). */
void asks_feed(struct asks *a, enum ws_opcode opcode, struct span bytes,
	       bool last, ask_fn *fn, void *ctx);
