/* SPDX-License-Identifier: Apache-2.0 */
/* redact_body.c - join the decoders to the masking stream */

#include "gateway/redact/redact_body.h"

#include "gateway/redact/automaton.h"
#include "src/base/err.h"
#include "src/base/secret.h"

enum { STEP_BYTES = 16 * 1024 };

struct redact_body {
	struct automaton *automaton;
	struct codec *codec; /* NULL: identity */
	struct redact_stream stream;
	int error; /* sticks */
};

int redact_body_new(struct automaton *a, struct span encodings,
		    struct redact_body **ret)
{
	struct codec *codec;
	struct redact_body *b;
	int r;

	r = codec_new(encodings, &codec);
	if (r)
		return r;
	b = must_alloc(sizeof(*b));
	b->automaton = automaton_ref(a);
	b->codec = codec;
	redact_stream_init(&b->stream, a);
	*ret = b;
	return 0;
}

struct redact_body *redact_body_free(struct redact_body *b)
{
	if (!b)
		return NULL;
	(void)codec_free(b->codec);
	(void)automaton_unref(b->automaton);
	free(b);
	return NULL;
}

bool redact_body_is_decoded(const struct redact_body *b)
{
	return b->codec != NULL;
}

uint64_t redact_body_hits(const struct redact_body *b)
{
	return b->stream.hits;
}

/* text has room for STEP_BYTES. */
static int body_decode(struct redact_body *b, struct span *piece, size_t max,
		       const struct redact_sink *sink, char *text)
{
	size_t given = 0, len;
	int r;

	while (given < max) {
		r = codec_read(b->codec, piece, text, STEP_BYTES, &len);
		if (r || !len)
			return r;
		r = redact_stream_feed(&b->stream, span_of(text, len), sink);
		if (r)
			return r;
		given += len;
	}
	return REDACT_MORE;
}

/* What is decoded and not yet masked leaves no copy behind. */
static int body_feed_coded(struct redact_body *b, struct span *piece,
			   size_t max, const struct redact_sink *sink)
{
	char text[STEP_BYTES];
	int r = body_decode(b, piece, max, sink, text);

	secret_wipe(text, sizeof(text));
	return r;
}

int redact_body_feed(struct redact_body *b, struct span *piece, size_t max,
		     const struct redact_sink *sink)
{
	struct span whole = *piece;
	int r;

	if (b->error)
		return b->error;
	if (b->codec) {
		r = body_feed_coded(b, piece, max, sink);
	} else {
		*piece = span_from(*piece, piece->len);
		r = redact_stream_feed(&b->stream, whole, sink);
	}
	if (r != REDACT_MORE)
		b->error = r;
	return r;
}

int redact_body_finish(struct redact_body *b, const struct redact_sink *sink)
{
	if (!b->error && b->codec)
		b->error = codec_finish(b->codec);
	if (!b->error)
		b->error = redact_stream_flush(&b->stream, sink);
	return b->error;
}
