/* SPDX-License-Identifier: Apache-2.0 */
/* body.h - a message body on its way from one framing to another, never whole
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

struct stream;

enum { BODY_TRAILERS_BYTES = 16 * 1024 };

struct body {
	enum h1_body in;  /* how it comes */
	bool out_chunked; /* how it leaves: chunked, or as it is */
	bool done;	  /* everything was fed to the output */
	uint64_t left;	  /* of H1_BODY_LENGTH */
	uint64_t bytes;	  /* of content so far */
	struct h1_chunked chunked;
	struct buf trailers; /* raw field lines, complete when done */
};

void body_init(struct body *b, enum h1_body in, uint64_t length,
	       bool out_chunked);
void body_fini(struct body *b);

/* What becomes of the trailers before the last CRLF; NULL: as they are. */
typedef int body_trailers_fn(void *ctx, struct span trailers, struct buf *out);

/* Where output goes: assembled in out, which is sent to `to` when it is full;
 * large pieces are sent without the copy. */
struct body_sink {
	struct buf *out;
	struct stream *to;
	body_trailers_fn *trailers;
	void *ctx;
	int error; /* sticky: -errno of the stream */
};

/* Consumes from *in what belongs to the body. H1_OK, or why it is refused. */
enum h1_error body_feed(struct body *b, struct span *in,
			struct body_sink *sink);
/* The source ended. True: that was the body's end (done is set); false: it was
 * cut short. */
bool body_end(struct body *b, struct body_sink *sink);

/* Sends what was assembled. 0 or -errno. */
int sink_flush(struct body_sink *sink);
