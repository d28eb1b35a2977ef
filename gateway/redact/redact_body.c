/* SPDX-License-Identifier: Apache-2.0 */
/* redact_body.c - join the decoders to the masking stream */

#include "gateway/redact/redact_body.h"

#include "gateway/redact/automaton.h"
#include "src/base/err.h"
#include "src/base/secret.h"

enum { STEP_BYTES = 16 * 1024 };

/* A gRPC message: a flag, a length of four bytes, then that many. */
enum { GRPC_HEAD_BYTES = 5, GRPC_COMPRESSED = 1 };

struct redact_body {
	struct automaton *automaton;
	struct codec *codec; /* NULL: identity */
	struct redact_stream stream;
	bool grpc;
	unsigned head_have;	/* bytes of a message's head that went by */
	uint32_t message_bytes; /* of its length, then of what is to come */
	int error;		/* sticks */
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

void redact_body_set_grpc(struct redact_body *b)
{
	b->grpc = true;
}

bool redact_body_is_decoded(const struct redact_body *b)
{
	return b->codec != NULL;
}

uint64_t redact_body_hits(const struct redact_body *b)
{
	return b->stream.hits;
}

/* What is before a message; passed on as it comes. */
static int grpc_head(struct redact_body *b, struct span *text,
		     const struct redact_sink *sink)
{
	size_t n = MIN(text->len, (size_t)(GRPC_HEAD_BYTES - b->head_have));
	struct span head = span_of(text->ptr, n);
	size_t i;

	if (!b->head_have && head.ptr[0] & GRPC_COMPRESSED)
		return CODEC_E_UNKNOWN;
	for (i = 0; i < n; i++, b->head_have++)
		b->message_bytes = b->head_have ? b->message_bytes << 8 |
							  (uint8_t)head.ptr[i]
						: 0;
	*text = span_from(*text, n);
	return sink->emit(sink->ctx, head);
}

static int grpc_message(struct redact_body *b, struct span *text,
			const struct redact_sink *sink)
{
	size_t n = MIN(text->len, (size_t)b->message_bytes);
	int r = redact_stream_feed(&b->stream, span_of(text->ptr, n), sink);

	*text = span_from(*text, n);
	b->message_bytes -= (uint32_t)n;
	if (r || b->message_bytes)
		return r;
	return redact_stream_flush(&b->stream, sink);
}

static int body_mask(struct redact_body *b, struct span text,
		     const struct redact_sink *sink)
{
	int r = 0;

	if (!b->grpc)
		return redact_stream_feed(&b->stream, text, sink);
	while (!r && text.len) {
		if (b->head_have < GRPC_HEAD_BYTES)
			r = grpc_head(b, &text, sink);
		else
			r = grpc_message(b, &text, sink);
		if (b->head_have == GRPC_HEAD_BYTES && !b->message_bytes)
			b->head_have = 0; /* over, or empty */
	}
	return r;
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
		r = body_mask(b, span_of(text, len), sink);
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
		r = body_mask(b, whole, sink);
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
