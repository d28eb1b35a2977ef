/* SPDX-License-Identifier: Apache-2.0 */
/* h2_out.c - what the owner wants said becomes frames
 *
 * How it works: nghttp2 decides which frame comes next; frames are gathered in
 * h->out until there is enough for a few TLS records. A body comes from the
 * stream's queue, and is copied once more on its way into h->out. A large
 * write to a stream without a queue saves the first copy: nghttp2 is run at
 * once with the caller's own bytes, and only what the windows do not let pass
 * is queued. Small writes are queued, so that several become one frame and
 * END_STREAM rides on the last.
 */

#include "src/wire/h2_conn.h"

#include <errno.h>

#include "src/base/err.h"

enum { FRAME_HEAD_SIZE = 9, OUT_BYTES = 16 * 1024 };

/* What h2_output() gave last was sent. */
void h2_out_drop_given(struct h2 *h)
{
	if (!h->given)
		return;
	if (h->out_secret)
		explicit_bzero(h->out.data + h->out.start, h->given);
	buf_consume(&h->out, h->given);
	h->given = 0;
}

/* Not before it can be sent at once: a request that came in between would be
 * told here and refused there. */
static void goaway_submit(struct h2 *h)
{
	h->goaway_due = false;
	(void)nghttp2_submit_goaway(
		h->session, NGHTTP2_FLAG_NONE,
		nghttp2_session_get_last_proc_stream_id(h->session),
		NGHTTP2_NO_ERROR, NULL, 0);
}

/* Room for the frames of a turn, rather than growing with each. */
static void out_prepare(struct h2 *h)
{
	char *room;

	if (!h->out.data && nghttp2_session_want_write(h->session))
		must(buf_reserve(&h->out, OUT_BYTES, &room) == 0);
}

void h2_out_pump(struct h2 *h)
{
	const uint8_t *bytes;
	ssize_t len;

	h2_out_drop_given(h);
	if (h->lost)
		return;
	out_prepare(h);
	if (h->goaway_due && buf_len(&h->out) < H2_OUT_ENOUGH)
		goaway_submit(h);
	h->inside = true;
	while (buf_len(&h->out) < H2_OUT_ENOUGH) {
		len = nghttp2_session_mem_send(h->session, &bytes);
		if (len <= 0)
			break;
		if (buf_put(&h->out, span_of(bytes, (size_t)len)))
			len = NGHTTP2_ERR_NOMEM;
		/* nghttp2's frame buffer, which it got from us: these bytes
		 * are behind it, and would stay until a longer frame comes */
		else if (h->out_secret)
			explicit_bzero((void *)bytes, (size_t)len);
	}
	h->inside = false;
}

/* Moves n bytes of the stream's body to the end of h->out. */
static int body_take(struct h2 *h, struct h2_stream *s, size_t n)
{
	size_t queued = MIN(n, buf_len(&s->queue));
	int r;

	r = buf_put(&h->out, span_of(buf_peek(&s->queue).ptr, queued));
	r = r ?: buf_put(&h->out, span_of(s->direct.ptr, n - queued));
	if (r)
		return r;
	buf_consume(&s->queue, queued);
	s->direct = span_from(s->direct, n - queued);
	s->moved_ms = h->now_ms;
	if (!buf_len(&s->queue))
		buf_fini(&s->queue); /* nothing is held for idle streams */
	if (s->over_half && buf_len(&s->queue) < s->queue.max / 2) {
		s->over_half = false;
		h2_stream_tell_room(h, s);
	}
	return 0;
}

static int on_send_data(nghttp2_session *session, nghttp2_frame *frame,
			const uint8_t *head, size_t len,
			nghttp2_data_source *source, void *ctx)
{
	struct h2_stream *s = source->ptr;
	size_t want = len + FRAME_HEAD_SIZE;
	struct h2 *h = ctx;
	char *room;

	(void)session;
	(void)frame;
	/* more frames will follow a large one: make room for all at once */
	if (len >= H2_DIRECT_MIN)
		want = H2_OUT_ENOUGH + len + FRAME_HEAD_SIZE - buf_len(&h->out);
	if (buf_reserve(&h->out, want, &room) ||
	    buf_put(&h->out, span_of(head, FRAME_HEAD_SIZE)) ||
	    body_take(h, s, len))
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	h2_guard_worked(&h->guard);
	return buf_len(&h->out) < H2_OUT_ENOUGH ? 0 : NGHTTP2_ERR_PAUSE;
}

static int trailers_submit(struct h2 *h, struct h2_stream *s, uint32_t *flags)
{
	const nghttp2_nv *items;
	size_t count;
	int r;

	items = h2_fields_items(s->trailers, &count);
	r = nghttp2_submit_trailer(h->session, s->id, items, count);
	s->trailers = h2_fields_free(s->trailers);
	if (!r)
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
	return r;
}

/* How much of the body goes into the next frame, at most `most` bytes. */
static ssize_t on_read_body(nghttp2_session *session, int32_t id, uint8_t *buf,
			    size_t most, uint32_t *flags,
			    nghttp2_data_source *source, void *ctx)
{
	struct h2_stream *s = source->ptr;
	size_t have = buf_len(&s->queue) + s->direct.len;
	struct h2 *h = ctx;

	(void)session;
	(void)id;
	(void)buf;
	if (!have && !s->ended) {
		s->deferred = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	if (!have && s->broken) {
		h2_reset(h, s->id, s->code);
		s->deferred = true;
		return NGHTTP2_ERR_DEFERRED; /* RST_STREAM is what comes next */
	}
	*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	if (have <= most && s->ended && !s->broken) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		s->sending = false;
		if (s->trailers && trailers_submit(h, s, flags))
			return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	}
	return (ssize_t)MIN(have, most);
}

nghttp2_data_provider h2_out_provider(struct h2_stream *s)
{
	return (nghttp2_data_provider){ { .ptr = s }, on_read_body };
}

/* The response is complete and the client still sends: for nothing. */
static void local_end(struct h2 *h, int32_t id)
{
	struct h2_stream *s = h2_stream_find(h, id);

	if (!s || h->side == H2_CLIENT || s->remote_ended || s->connect)
		return;
	s->cut = s->reset_asked = true;
	h2_stream_forgive(h, s);
	(void)nghttp2_submit_rst_stream(h->session, 0, id, NGHTTP2_NO_ERROR);
}

/* We are about to reset a stream: was it the peer's doing? */
static void reset_judge(struct h2 *h, int32_t id, uint32_t code)
{
	struct h2_stream *s = h2_stream_find(h, id);

	if ((s && s->reset_asked) || code == NGHTTP2_NO_ERROR)
		return;
	if (!h2_guard_provoked(&h->guard, h->now_ms))
		h2_fail(h, -EPROTO, NGHTTP2_ENHANCE_YOUR_CALM,
			"too many streams reset for errors");
}

/* nghttp2 ended the connection by itself; its reason is a constant text. That
 * we were shutting down does not excuse the peer: only a GOAWAY of the owner's
 * own wish is no failure. */
static void goaway_judge(struct h2 *h, const nghttp2_goaway *goaway)
{
	struct span text =
		span_of(goaway->opaque_data, goaway->opaque_data_len);
	char why[sizeof(h->error)];

	if (goaway->error_code == NGHTTP2_NO_ERROR || h->cutting)
		return;
	if (!text.len)
		text = span_str(h2_code_name(goaway->error_code));
	(void)span_copy(text, why, sizeof(why));
	h2_fail(h, -EPROTO, goaway->error_code, why);
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame,
			 void *ctx)
{
	struct h2 *h = ctx;

	(void)session;
	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
		if (h->side == H2_CLIENT)
			h2_guard_worked(&h->guard);
		/* fall through */
	case NGHTTP2_DATA:
		if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
			local_end(h, frame->hd.stream_id);
		break;
	case NGHTTP2_RST_STREAM:
		reset_judge(h, frame->hd.stream_id,
			    frame->rst_stream.error_code);
		break;
	case NGHTTP2_GOAWAY:
		goaway_judge(h, &frame->goaway);
		break;
	default:
		break;
	}
	return 0;
}

/* A head could not be sent: of a stream that never began, it ends without
 * RST_STREAM. */
static int on_frame_not_send(nghttp2_session *session,
			     const nghttp2_frame *frame, int r, void *ctx)
{
	struct h2 *h = ctx;
	struct h2_stream *s;

	(void)session;
	if (frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	s = h2_stream_find(h, frame->hd.stream_id);
	if (!s || s->gone)
		return 0;
	if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		h2_reset(h, s->id, NGHTTP2_INTERNAL_ERROR);
	else if (s->reset_asked)
		h2_stream_gone(h, s, s->code);
	else
		h2_stream_gone(h, s,
			       r == NGHTTP2_ERR_START_STREAM_NOT_ALLOWED
				       ? NGHTTP2_REFUSED_STREAM
				       : NGHTTP2_INTERNAL_ERROR);
	return 0;
}

void h2_out_callbacks(nghttp2_session_callbacks *cbs)
{
	nghttp2_session_callbacks_set_send_data_callback(cbs, on_send_data);
	nghttp2_session_callbacks_set_on_frame_send_callback(cbs,
							     on_frame_send);
	nghttp2_session_callbacks_set_on_frame_not_send_callback(
		cbs, on_frame_not_send);
}
