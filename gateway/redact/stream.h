/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - mask the patterns of an automaton in a stream of bytes
 *
 * Every byte of the body leaves once, in order; bytes of a pattern leave as
 * "[REDACTED]" and '*', as many as there were, so lengths stay what they are.
 * A byte leaves in the call that brought it unless it may belong to a pattern
 * whose rest is still to come. Nothing is copied: clean bytes are views into
 * the piece, and what is held back is a number (see automaton_inside.h).
 */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct automaton;
struct buf;

enum { REDACT_PENDING_MAX = 8 };

/* Bytes that may go on, borrowed for the call. What is not 0 ends the feed and
 * is passed on: -errno. */
typedef int (*redact_emit)(void *ctx, struct span bytes);

/* Where emitted bytes go. */
struct redact_sink {
	redact_emit emit;
	void *ctx;
};

/* Patterns found at [from, end) of the stream, overlapping ones as one. */
struct redact_match {
	uint64_t from, end;
};

struct redact_stream {
	const struct automaton *automaton; /* borrowed */
	uint64_t fed, emitted;		   /* bytes; both from the begin */
	uint64_t hits;
	uint32_t state;
	unsigned pending_count; /* a longer pattern around them is not over */
	struct redact_match pending[REDACT_PENDING_MAX];
};

/* No memory of its own: nothing to give back. */
void redact_stream_init(struct redact_stream *s, const struct automaton *a);

/* 0, or what emit returned; then the stream is of no use any more. */
WUNRES int redact_stream_feed(struct redact_stream *s, struct span piece,
			      const struct redact_sink *sink);
/* The body is over: what is held back goes. Then the stream is new, but for
 * its count of hits. */
WUNRES int redact_stream_flush(struct redact_stream *s,
			       const struct redact_sink *sink);

/* A whole text at once (a header's value) into out; adds to *hits. 0 or
 * -ENOBUFS. */
WUNRES int redact_text(const struct automaton *a, struct span text,
		       struct buf *out, uint64_t *hits);
