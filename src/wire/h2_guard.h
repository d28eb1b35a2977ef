/* SPDX-License-Identifier: Apache-2.0 */
/* h2_guard.h - counts what a peer makes us do for nothing */
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

struct h2_guard {
	struct h2_bucket chores; /* frames without useful work */
	struct h2_bucket resets; /* premature or provoked (server) */
	bool server;
	uint8_t magic_left;
	uint8_t head_len;      /* of `head` */
	uint8_t head[9];       /* the frame header that is arriving */
	uint8_t continuations; /* of the open header block */
	bool in_block;
	uint32_t payload_left; /* of the frame that is arriving */
};

enum {
	H2_CONTINUATIONS_MAX = 8, /* after one HEADERS; nghttp2's limit too */
};

void h2_guard_init(struct h2_guard *g, bool server, uint32_t chores,
		   uint32_t resets);
/* Reads the frames in bytes. Returns how many bytes are fine: all of them, or
 * those before the frame that was one too many; then *ret_why is set. */
size_t h2_guard_watch(struct h2_guard *g, uint64_t now_ms, struct span bytes,
		      const char **ret_why);
/* Useful work was done for the peer: it earned a few chores. */
void h2_guard_worked(struct h2_guard *g);
/* The peer made us reset a stream. False: once too often. */
WUNRES bool h2_guard_provoked(struct h2_guard *g, uint64_t now_ms);
