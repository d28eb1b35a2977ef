/* SPDX-License-Identifier: Apache-2.0 */
/* h1_leg.c - content in and out of an HTTP/1.1 stream
 *
 * How it works: bytes are read into a scratch of the worker and decoded in
 * place; what is not decoded when the loop is returned to is copied to the
 * leg's own buffer. Output is put together in the worker's assembly buffer and
 * sent at flush: a small message, head and body, is one write, one TLS record.
 * Large pieces are sent without the copy.
 */

#include "gateway/session/h1_leg.h"

#include <errno.h>

#include "gateway/worker.h"
#include "src/base/err.h"
#include "src/io/stream.h"

enum {
	READ_BYTES = 128 * 1024,
	/* No more is taken while this much waits to be sent. Not less than
	 * what WRITABLE comes below, or the loop would spin in between. */
	QUEUE_BYTES = STREAM_UNSENT_MAX / 2,
	/* From this size a write of its own beats a copy. */
	PASS_BYTES = 8 * 1024,
};

static struct h1_leg *of(struct leg *leg)
{
	return container_of(leg, struct h1_leg, leg);
}

void h1_leg_init(struct h1_leg *l, struct worker *w, struct stream *s,
		 struct buf *in, char *scratch)
{
	l->worker = w;
	l->stream = s;
	l->in = in;
	l->scratch = scratch;
	l->raw = SPAN_NONE;
	l->raw_is_in = false;
	l->chunked = l->ended = false;
	l->trailers = NULL;
	l->out = (struct buf){ .data = w->assembly,
			       .size = WORKER_SCRATCH_BYTES,
			       .max = WORKER_SCRATCH_BYTES };
	body_init(&l->body, H1_BODY_NONE, 0);
}

void h1_leg_fini(struct h1_leg *l)
{
	body_fini(&l->body);
	free(l->trailers);
	l->trailers = NULL;
}

/* -- in -------------------------------------------------------------------- */

/* One read of the stream into the scratch. */
enum leg_read h1_leg_receive(struct h1_leg *l, size_t max, struct span *ret)
{
	ssize_t n;

	if (l->ended)
		return LEG_END;
	n = stream_read(l->stream, l->scratch, MIN(max, (size_t)READ_BYTES));
	if (n == STREAM_AGAIN)
		return LEG_NOTHING;
	if (n < 0) {
		l->leg.why = stream_tls_error(l->stream);
		if (!l->leg.why[0])
			l->leg.why = err_text((int)n);
		return LEG_BROKEN;
	}
	if (n == 0) {
		l->ended = true;
		return LEG_END;
	}
	*ret = span_of(l->scratch, (size_t)n);
	l->dirty = MAX(l->dirty, (size_t)n);
	return LEG_PIECE;
}

enum leg_read h1_leg_fill(struct h1_leg *l, size_t max)
{
	if (l->raw.len)
		return LEG_PIECE;
	if (!l->raw_is_in && buf_len(l->in)) {
		l->raw = buf_peek(l->in);
		l->raw_is_in = true;
		return LEG_PIECE;
	}
	if (l->raw_is_in) {
		buf_clear(l->in);
		l->raw_is_in = false;
	}
	return h1_leg_receive(l, max, &l->raw);
}

int h1_leg_settle(struct h1_leg *l)
{
	int r = 0;

	if (l->raw_is_in)
		buf_consume(l->in, buf_len(l->in) - l->raw.len);
	else if (l->raw.len)
		r = buf_put(l->in, l->raw);
	l->raw = SPAN_NONE;
	l->raw_is_in = false;
	return r;
}

enum leg_read h1_leg_more(struct h1_leg *l)
{
	struct span part;
	enum leg_read got;

	if (h1_leg_settle(l)) {
		l->leg.why = "the head is too large";
		return LEG_BROKEN;
	}
	got = h1_leg_receive(l, READ_BYTES, &part);
	if (got != LEG_PIECE)
		return got;
	if (buf_put(l->in, part)) {
		l->leg.why = "the head is too large";
		return LEG_BROKEN;
	}
	l->raw = buf_peek(l->in);
	l->raw_is_in = true;
	return LEG_PIECE;
}

/* Decodes at most max bytes of what is there: no more content is in them. */
static enum h1_error decode(struct h1_leg *l, size_t max, struct span *ret)
{
	struct span in = span_of(l->raw.ptr, MIN(l->raw.len, max));
	size_t before = in.len;
	enum h1_error error;

	error = body_next(&l->body, &in, ret);
	l->raw = span_from(l->raw, before - in.len);
	return error;
}

enum leg_read h1_leg_read(struct leg *leg, size_t max, struct span *ret)
{
	struct h1_leg *l = of(leg);
	enum leg_read got;
	enum h1_error error;

	*ret = SPAN_NONE;
	while (!l->body.done) {
		got = h1_leg_fill(l, max);
		if (got == LEG_END && !body_end(&l->body)) {
			leg->why = "the body ended before it was complete";
			return LEG_BROKEN;
		}
		if (got != LEG_PIECE)
			return got;
		error = decode(l, max, ret);
		if (error) {
			leg->why = h1_error_text(error);
			leg->malformed = true;
			return LEG_BROKEN;
		}
		if (ret->len)
			return LEG_PIECE;
	}
	return LEG_END;
}

const struct headers *h1_leg_trailers(struct leg *leg)
{
	struct h1_leg *l = of(leg);

	if (!buf_len(&l->body.trailers))
		return NULL;
	if (!l->trailers)
		l->trailers = must_alloc(sizeof(*l->trailers));
	return body_trailers(&l->body, l->trailers) ? l->trailers : NULL;
}

/* -- out ------------------------------------------------------------------- */

size_t h1_leg_room(const struct leg *leg)
{
	const struct h1_leg *l = container_of(leg, const struct h1_leg, leg);
	size_t waits = stream_unsent(l->stream) + buf_len(&l->out);

	return waits > QUEUE_BYTES ? 0 : READ_BYTES;
}

int h1_leg_flush(struct leg *leg)
{
	struct h1_leg *l = of(leg);
	int r = 0;

	if (buf_len(&l->out))
		r = stream_write(l->stream, buf_peek(&l->out));
	buf_clear(&l->out);
	return r;
}

static int put(struct h1_leg *l, struct span bytes)
{
	int r;

	if (bytes.len < PASS_BYTES && !buf_put(&l->out, bytes))
		return 0;
	r = h1_leg_flush(&l->leg);
	if (r)
		return r;
	if (bytes.len >= PASS_BYTES)
		return stream_write(l->stream, bytes);
	return buf_put(&l->out, bytes);
}

int h1_leg_write(struct leg *leg, struct span content)
{
	struct h1_leg *l = of(leg);
	char head[H1_CHUNK_HEAD_SIZE];
	int r = 0;

	if (!content.len)
		return 0;
	if (l->chunked)
		r = put(l, span_of(head, h1_chunk_head(content.len, head)));
	if (!r)
		r = put(l, content);
	if (!r && l->chunked)
		r = put(l, SPAN("\r\n"));
	return r;
}

static int put_trailers(struct h1_leg *l, const struct headers *trailers)
{
	unsigned i;
	int r = 0;

	for (i = 0; trailers && i < trailers->count && !r; i++) {
		r = put(l, trailers->items[i].name);
		if (!r)
			r = put(l, SPAN(": "));
		if (!r)
			r = put(l, trailers->items[i].value);
		if (!r)
			r = put(l, SPAN("\r\n"));
	}
	return r;
}

int h1_leg_end(struct leg *leg, const struct headers *trailers)
{
	struct h1_leg *l = of(leg);
	int r;

	if (!l->chunked)
		return 0;
	r = put(l, SPAN("0\r\n"));
	if (!r)
		r = put_trailers(l, trailers);
	return r ? r : put(l, SPAN("\r\n"));
}

void h1_leg_want(struct leg *leg, unsigned what)
{
	struct h1_leg *l = of(leg);
	unsigned events = 0;

	if (what & LEG_READ)
		events |= STREAM_READABLE;
	if (what & LEG_WRITE)
		events |= STREAM_WRITABLE;
	stream_want(l->stream, events);
}
