/* SPDX-License-Identifier: Apache-2.0 */
/* h2_guard.h - counts what a peer makes us do for nothing, and sees what no
 * honest peer sends */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

/* Tokens in sixteenths; refilled with time up to `most`. */
struct h2_bucket {
	int64_t level, most, per_second;
	uint64_t filled_ms;
};

enum {
	H2_CONTINUATIONS_MAX = 8, /* after one HEADERS; nghttp2's limit too */
	H2_GUARD_HEAD_MAX = 13,	  /* a frame's header and one number */
	H2_GUARD_IDS = 64,
};

/* Why a connection must end; .why is NULL when it need not. */
struct h2_verdict {
	const char *why;
	uint32_t code;
};

struct h2_guard {
	struct h2_bucket chores; /* frames without useful work */
	struct h2_bucket resets; /* premature or provoked (server) */
	bool server;
	uint8_t magic_left;
	uint8_t head_len;		 /* of `head`: what is there ... */
	uint8_t head_need;		 /* ... and what must be, to judge it */
	uint8_t head[H2_GUARD_HEAD_MAX]; /* of the frame that arrives */
	uint8_t continuations;		 /* of the open header block */
	bool in_block;
	uint32_t ids[H2_GUARD_IDS]; /* last seen: id * 2 + "peer is done" */
	uint32_t last_id;
	uint32_t payload_left; /* of the frame that is arriving */
};

void h2_guard_init(struct h2_guard *g, bool server, uint32_t chores,
		   uint32_t resets);
/* Reads the frames in bytes. Returns how many bytes are fine: all of them, or
 * those before the frame that was one too many; then ret->why is set. */
size_t h2_guard_watch(struct h2_guard *g, uint64_t now_ms, struct span bytes,
		      struct h2_verdict *ret);
/* Useful work was done for the peer: it earned a few chores. */
void h2_guard_worked(struct h2_guard *g);
/* The peer made us reset a stream. False: once too often. */
WUNRES bool h2_guard_provoked(struct h2_guard *g, uint64_t now_ms);
/* The peer may send nothing more on this stream, which is over. */
void h2_guard_finished(struct h2_guard *g, int32_t id);
