/* SPDX-License-Identifier: Apache-2.0 */
/* body.c - feed a body through, from one framing to another */

#include "gateway/session/body.h"

#include "src/base/err.h"
#include "src/io/stream.h"

/* From this size a write of its own beats a copy. */
enum { PASS_BYTES = 8 * 1024 };

void body_init(struct body *b, enum h1_body in, uint64_t length,
	       bool out_chunked)
{
	*b = (struct body){
		.in = in,
		.out_chunked = out_chunked,
		.left = length,
		.done = in == H1_BODY_NONE || (in == H1_BODY_LENGTH && !length),
		.trailers = BUF_INIT(BODY_TRAILERS_BYTES),
	};
}

void body_fini(struct body *b)
{
	buf_wipe(&b->trailers); /* an origin may echo a credential */
}

int sink_flush(struct body_sink *sink)
{
	if (!sink->error && buf_len(sink->out))
		sink->error = stream_write(sink->to, buf_peek(sink->out));
	buf_clear(sink->out);
	return sink->error;
}

static void sink_put(struct body_sink *sink, struct span bytes)
{
	if (sink->error)
		return;
	if (bytes.len < PASS_BYTES && !buf_put(sink->out, bytes))
		return;
	if (sink_flush(sink))
		return;
	if (bytes.len >= PASS_BYTES)
		sink->error = stream_write(sink->to, bytes);
	else
		must(buf_put(sink->out, bytes) == 0);
}

static void body_put(struct body *b, struct span data, struct body_sink *sink)
{
	char head[H1_CHUNK_HEAD_SIZE];

	if (!data.len)
		return;
	b->bytes += data.len;
	if (b->out_chunked)
		sink_put(sink, span_of(head, h1_chunk_head(data.len, head)));
	sink_put(sink, data);
	if (b->out_chunked)
		sink_put(sink, SPAN("\r\n"));
}

static void body_close(struct body *b, struct body_sink *sink)
{
	struct span trailers = buf_peek(&b->trailers);

	b->done = true;
	if (!b->out_chunked)
		return;
	sink_put(sink, SPAN("0\r\n"));
	if (!trailers.len || !sink->trailers)
		sink_put(sink, trailers);
	else if (sink_flush(sink) == 0)
		sink->error = sink->trailers(sink->ctx, trailers, sink->out);
	sink_put(sink, SPAN("\r\n"));
}

static enum h1_error feed_chunked(struct body *b, struct span *in,
				  struct body_sink *sink)
{
	enum h1_error error;
	struct span data;

	while (in->len && !b->done) {
		error = h1_chunked_next(&b->chunked, in, &data, &b->trailers);
		if (error)
			return error;
		body_put(b, data, sink);
		if (b->chunked.done)
			body_close(b, sink);
	}
	return H1_OK;
}

static void feed_length(struct body *b, struct span *in, struct body_sink *sink)
{
	size_t len = MIN((uint64_t)in->len, b->left);

	body_put(b, span_of(in->ptr, len), sink);
	*in = span_from(*in, len);
	b->left -= len;
	if (!b->left)
		body_close(b, sink);
}

enum h1_error body_feed(struct body *b, struct span *in, struct body_sink *sink)
{
	if (b->done)
		return H1_OK;
	switch (b->in) {
	case H1_BODY_NONE:
		break;
	case H1_BODY_LENGTH:
		feed_length(b, in, sink);
		break;
	case H1_BODY_CHUNKED:
		return feed_chunked(b, in, sink);
	case H1_BODY_CLOSE:
	case H1_BODY_TUNNEL:
		body_put(b, *in, sink);
		*in = span_from(*in, in->len);
		break;
	}
	return H1_OK;
}

bool body_end(struct body *b, struct body_sink *sink)
{
	if (b->in != H1_BODY_CLOSE && b->in != H1_BODY_TUNNEL)
		return b->done;
	if (!b->done)
		body_close(b, sink);
	return true;
}
