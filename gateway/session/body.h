/* SPDX-License-Identifier: Apache-2.0 */
/* body.h - the framing of an HTTP/1.1 body, taken off and put on
 *
 * Chunked bodies are decoded and framed anew, so nothing foreign (extensions,
 * odd sizes) is passed on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/buf.h"
#include "src/base/span.h"
#include "src/wire/h1.h"

enum { BODY_TRAILERS_BYTES = 16 * 1024 };

/* A body as it comes. */
struct body {
	enum h1_body kind;
	bool done;	/* it ended as it should */
	uint64_t left;	/* of H1_BODY_LENGTH */
	uint64_t bytes; /* of content so far */
	struct h1_chunked chunked;
	struct buf trailers; /* raw field lines, complete when done */
};

void body_init(struct body *b, enum h1_body kind, uint64_t length);
void body_fini(struct body *b);

/* Consumes from *in until a piece of content was found, input ran out or the
 * body was done. *ret is a view into the input, empty when there was none. */
enum h1_error body_next(struct body *b, struct span *in, struct span *ret);
/* The source ended. True: that was the body's end; false: it was cut short. */
bool body_end(struct body *b);

/* The trailers as fields, views into b. False: none. */
bool body_trailers(const struct body *b, struct headers *ret);
