/* SPDX-License-Identifier: Apache-2.0 */
/* redact_body.h - one body on its way to a sandbox: decoded, masked, passed on
 *
 * The caller reads the answer's head, makes one of these, and writes what it
 * emits in place of the body:
 *
 *	redact_body_new(automaton, content-encoding, &body)
 *	if (redact_body_is_decoded(body))  drop Content-Encoding,
 *Content-Length, Content-MD5, Digest, Accept-Ranges for every piece:
 *redact_body_feed(), again while it says REDACT_MORE at its end:
 *redact_body_finish()
 *
 * Any error means that the rest of the body cannot be shown to be clean: the
 * answer is cut off (before its head went out: refused).
 *
 * A part of an encoded body (206, Content-Range) cannot be decoded by itself;
 * drop Range from requests whose answers are redacted.
 *
 * The body of a gRPC stream is a row of messages, and who waits for one must
 * get it whole: its last bytes may not wait for the next one because a pattern
 * might begin with them. So the end of a message is the end of a text: what is
 * held back goes, and what stands between two messages (a flag and a length) is
 * never masked. A value that an origin cuts in two messages is not found. A
 * message that is compressed by itself cannot be searched: an error.
 *
 * Nothing is ever let go because of time. A pause is no boundary: networks make
 * pauses everywhere, and the first half of a value with them. No other stream
 * needs it: an event, or a line of JSON, ends with a line's end, which no
 * pattern contains.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/redact/codec.h"
#include "gateway/redact/stream.h"
#include "src/base/attrib.h"
#include "src/base/span.h"

struct automaton;
struct redact_body;

/* Beyond enum codec_error. */
enum {
	/* max was reached; feed again when there is room */
	REDACT_MORE = CODEC_ERROR_NUM,
};

/* Takes a reference to a. 0; CODEC_E_UNKNOWN; -ENOMEM. */
WUNRES int redact_body_new(struct automaton *a, struct span encodings,
			   struct redact_body **ret);
/* NULL is fine; returns NULL. */
struct redact_body *redact_body_free(struct redact_body *b);

/* The body is one of gRPC; before it is fed. */
void redact_body_set_grpc(struct redact_body *b);

/* True: what is emitted is not as long as what is fed. */
bool redact_body_is_decoded(const struct redact_body *b);
uint64_t redact_body_hits(const struct redact_body *b);

/* Takes *piece, cut at the front as it is used up, and emits. An encoded body
 * is decoded until `max` bytes or a little more were emitted. 0: all was taken;
 * REDACT_MORE: call again with what is left of piece, even nothing;
 * CODEC_E_...; what emit returned; -ENOMEM. All but the first two stick. */
WUNRES int redact_body_feed(struct redact_body *b, struct span *piece,
			    size_t max, const struct redact_sink *sink);
/* The body is over: what is held back is emitted. As above, without
 * REDACT_MORE. */
WUNRES int redact_body_finish(struct redact_body *b,
			      const struct redact_sink *sink);
