/* SPDX-License-Identifier: Apache-2.0 */
/* h2_in.c - what nghttp2 received becomes heads, data and ends
 *
 * How it works: header blocks never interleave, so one struct h2_block per
 * connection gathers the fields of the head that is arriving; it exists only
 * while one is. It holds references on nghttp2's own buffers instead of
 * copies. Fields are judged as they come: what is over the limit is not kept,
 * and a block that goes on to several times the limit (an HPACK bomb: one byte
 * on the wire may stand for 4 KiB) ends the connection. What is wrong is noted
 * as a reason; when the block is whole it is either told or refused.
 *
 * nghttp2 checks (and resets the stream with PROTOCOL_ERROR): names and values
 * by RFC 9113 8.2, order, number and kind of pseudo headers, connection
 * fields, TE, content-length against DATA, 101. Checked here: the limits, our
 * own stricter names and values, ":path", Host against ":authority", status
 * range, trailers that would frame, route or authenticate.
 */

#include "src/wire/h2_conn.h"

#include <errno.h>

#include "src/base/blocks.h"
#include "src/base/err.h"
#include "src/wire/bytes.h"

enum { FIELD_OVERHEAD = 32 }; /* RFC 9113 6.5.2 */

static struct span span_of_rcbuf(nghttp2_rcbuf *buf)
{
	nghttp2_vec vec = nghttp2_rcbuf_get_buf(buf);

	return span_of(vec.base, vec.len);
}

void h2_block_free(struct h2 *h)
{
	struct h2_block *b = h->block;
	unsigned i;

	if (!b)
		return;
	for (i = 0; i < b->held_count; i++)
		nghttp2_rcbuf_decref(b->held[i]);
	buf_wipe(&b->cookie);
	block_give(b, sizeof(*b));
	h->block = NULL;
	h->block_ms = 0;
}

static void block_refuse(struct h2_block *b, const char *why)
{
	b->why = b->why ?: why;
}

static void block_begin(struct h2 *h, struct h2_stream *s, bool trailers)
{
	struct h2_block *b;

	h2_block_free(h);
	b = block_take(sizeof(*b)); /* not zeroed: it is large */
	b->stream = s;
	b->trailers = trailers;
	b->why = NULL;
	b->too_large = false;
	b->bytes = 0;
	b->seen = 0;
	b->host = SPAN_NONE;
	b->cookie_field = NULL;
	b->held_count = 0;
	buf_init(&b->cookie, h->limits.header_bytes);
	h2_head_init(&b->head);
	h->block = b;
	h->block_ms = h->now_ms;
}

/* Priorities are ignored: all streams take turns, frame by frame. */
static void stream_take_turns(struct h2 *h, int32_t id)
{
	const nghttp2_extpri turns = { NGHTTP2_EXTPRI_DEFAULT_URGENCY, 1 };

	(void)nghttp2_session_change_extpri_stream_priority(h->session, id,
							    &turns, 1);
}

static int on_begin_headers(nghttp2_session *session,
			    const nghttp2_frame *frame, void *ctx)
{
	int32_t id = frame->hd.stream_id;
	struct h2 *h = ctx;
	struct h2_stream *s = h2_stream_find(h, id);

	(void)session;
	if (frame->headers.cat == NGHTTP2_HCAT_REQUEST && !s) {
		s = h2_stream_new(h, id);
		stream_take_turns(h, id);
		block_begin(h, s, false);
	} else if (s) {
		block_begin(h, s, h->side == H2_SERVER || s->got_final);
	}
	return 0;
}

/* Keeps the bytes of a value alive for as long as the block. */
static void block_hold(struct h2_block *b, nghttp2_rcbuf *buf)
{
	nghttp2_rcbuf_incref(buf);
	b->held[b->held_count++] = buf;
}

static void take_status(struct h2_block *b, struct span value)
{
	uint64_t status;

	if (value.len == 3 && span_parse_u64(value, &status) && status >= 100)
		b->head.status = (uint16_t)status;
	else
		block_refuse(b, "a malformed status");
}

static void take_pseudo(struct h2_block *b, struct span name, struct span value)
{
	if (span_eq(name, SPAN(":method")))
		b->head.method = value;
	else if (span_eq(name, SPAN(":scheme")))
		b->head.scheme = value;
	else if (span_eq(name, SPAN(":authority")))
		b->head.authority = value;
	else if (span_eq(name, SPAN(":path")))
		b->head.path = value;
	else if (span_eq(name, SPAN(":protocol")))
		b->head.protocol = value;
	else
		take_status(b, value);
}

/* RFC 9113 8.2.3: crumbs are one field to everybody but HTTP/2. */
static void take_crumb(struct h2_block *b, struct span value, bool sensitive)
{
	struct header *cookie = b->cookie_field;
	int r = 0;

	if (!buf_len(&b->cookie))
		r = buf_put(&b->cookie, cookie->value);
	r = r ?: buf_put(&b->cookie, SPAN("; "));
	r = r ?: buf_put(&b->cookie, value);
	if (r)
		b->too_large = true;
	cookie->value = buf_peek(&b->cookie);
	cookie->sensitive |= sensitive;
}

static void take_field(struct h2_block *b, struct span name, struct span value,
		       bool sensitive)
{
	enum header_id id = header_id_of(name);
	struct header *field;

	if (id == HEADER_HOST && !b->trailers) {
		b->host = value;
		return;
	}
	if (id == HEADER_COOKIE && b->cookie_field) {
		take_crumb(b, value, sensitive);
		return;
	}
	field = &b->head.headers.items[b->head.headers.count++];
	*field = (struct header){ name, value, id, sensitive };
	if (id == HEADER_COOKIE)
		b->cookie_field = field;
	if (b->trailers && header_flags_of(id))
		block_refuse(b, "a field that may not be a trailer");
}

/* Counts the field; false when it cannot be kept. */
static bool block_admit(struct h2 *h, struct h2_block *b, size_t len)
{
	uint32_t most = h->limits.header_bytes;

	b->bytes += len + FIELD_OVERHEAD;
	b->seen++;
	if (b->bytes / H2_REFUSED_FACTOR > most ||
	    b->seen > H2_REFUSED_FACTOR * HEADERS_MAX) {
		h2_fail(h, -EPROTO, NGHTTP2_ENHANCE_YOUR_CALM,
			"a head far over the limit");
		return false;
	}
	if (b->bytes > most || b->head.headers.count == HEADERS_MAX ||
	    b->held_count + 2 > ARRAY_LEN(b->held))
		b->too_large = true;
	return !b->too_large;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame,
		     nghttp2_rcbuf *name_buf, nghttp2_rcbuf *value_buf,
		     uint8_t flags, void *ctx)
{
	struct span name = span_of_rcbuf(name_buf);
	struct span value = span_of_rcbuf(value_buf);
	struct h2 *h = ctx;
	struct h2_block *b = h->block;

	(void)session;
	if (!b || b->stream->id != frame->hd.stream_id || h->failed)
		return 0;
	if (!block_admit(h, b, name.len + value.len) || b->why)
		return 0;
	block_hold(b, name_buf);
	block_hold(b, value_buf);
	if (!header_value_is_valid(value))
		block_refuse(b, "a malformed field value");
	else if (name.len && name.ptr[0] == ':')
		take_pseudo(b, name, value);
	else if (!header_name_is_valid(name))
		block_refuse(b, "a malformed field name");
	else
		take_field(b, name, value, flags & NGHTTP2_NV_FLAG_NO_INDEX);
	return 0;
}

/* nghttp2 would pass over a bad field in silence. */
static int on_invalid_header(nghttp2_session *session,
			     const nghttp2_frame *frame, nghttp2_rcbuf *name,
			     nghttp2_rcbuf *value, uint8_t flags, void *ctx)
{
	(void)session;
	(void)frame;
	(void)name;
	(void)value;
	(void)flags;
	(void)ctx;
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* malformed */
}

static const char *request_error(struct h2_head *head, struct span host)
{
	bool connect = span_eq(head->method, SPAN("CONNECT"));
	struct span path = head->path;

	if (!head->authority.len)
		head->authority = host;
	else if (host.len && !span_eq_nocase(head->authority, host))
		return "the Host field differs from the authority";
	if (!bytes_are(head->method, BYTE_TOKEN))
		return "the method is no token";
	if (!bytes_are(head->authority, BYTE_AUTHORITY))
		return "the authority is malformed";
	if (connect && !head->protocol.len)
		return NULL; /* nghttp2 saw that there is no path */
	if (span_eq(path, SPAN("*")) && span_eq(head->method, SPAN("OPTIONS")))
		return NULL;
	if (!path.len || path.ptr[0] != '/' ||
	    span_find(path, '#') != path.len ||
	    span_find(path, ' ') != path.len ||
	    span_find(path, '\t') != path.len)
		return "the path is malformed";
	return NULL;
}

/* Answers a request whose head is too large: the client may like to know. */
static void stream_answer_431(struct h2 *h, struct h2_stream *s)
{
	const struct h2_head head = { .status = 431 };
	struct h2_nvs nvs;

	s->answered = true;
	if (h2_nvs_response(&head, &nvs) ||
	    nghttp2_submit_response(h->session, s->id, nvs.items, nvs.count,
				    NULL))
		(void)nghttp2_submit_rst_stream(h->session, 0, s->id,
						NGHTTP2_ENHANCE_YOUR_CALM);
	if (!h2_guard_provoked(&h->guard, h->now_ms))
		h2_fail(h, -EPROTO, NGHTTP2_ENHANCE_YOUR_CALM,
			"too many heads over the limit");
}

static void stream_refuse(struct h2 *h, struct h2_stream *s,
			  const struct h2_block *b)
{
	s->cut = true;
	s->why = b->too_large ? "the head is over the size limit" : b->why;
	if (b->too_large && h->side == H2_SERVER && !b->trailers)
		stream_answer_431(h, s);
	else
		(void)nghttp2_submit_rst_stream(
			h->session, 0, s->id,
			b->too_large ? NGHTTP2_ENHANCE_YOUR_CALM
				     : NGHTTP2_PROTOCOL_ERROR);
}

static void block_tell(struct h2 *h, struct h2_stream *s,
		       const struct h2_block *b, bool end)
{
	if (b->trailers) {
		if (h->ops->trailers)
			h->ops->trailers(h->ctx, s->id, &b->head.headers);
		return;
	}
	if (h->side == H2_SERVER) {
		s->told = true;
		h->open++;
		s->connect = span_eq(b->head.method, SPAN("CONNECT"));
	} else {
		s->got_final = b->head.status >= 200;
	}
	if (h->ops->head)
		h->ops->head(h->ctx, s->id, &b->head, end);
}

static void block_end(struct h2 *h, bool end)
{
	struct h2_block *b = h->block;
	struct h2_stream *s = b->stream;

	if (h->side == H2_SERVER && !b->trailers && !b->why && !b->too_large)
		b->why = request_error(&b->head, b->host);
	if (b->why || b->too_large)
		stream_refuse(h, s, b);
	else if (!s->cut)
		block_tell(h, s, b, end);
	h2_block_free(h);
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id,
			 const uint8_t *data, size_t len, void *ctx)
{
	struct h2 *h = ctx;
	struct h2_stream *s = h2_stream_find(h, id);

	(void)flags;
	if (!s || s->cut || h->failed) {
		(void)nghttp2_session_consume(session, id, len);
		return 0;
	}
	s->unconsumed += len;
	h->unconsumed += len;
	if (h->ops->data)
		h->ops->data(h->ctx, id, span_of(data, len));
	return 0;
}

static void remote_end(struct h2 *h, int32_t id)
{
	struct h2_stream *s = h2_stream_find(h, id);

	if (!s)
		return;
	s->remote_ended = true;
	if (!s->cut && h->ops->end)
		h->ops->end(h->ctx, id);
}

static void goaway_tell(struct h2 *h, const nghttp2_goaway *goaway)
{
	h->goaway_seen = true;
	if (h->ops->goaway)
		h->ops->goaway(h->ctx, goaway->last_stream_id,
			       goaway->error_code);
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame,
			 void *ctx)
{
	bool end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	bool ack = frame->hd.flags & NGHTTP2_FLAG_ACK;
	struct h2 *h = ctx;

	(void)session;
	if (h->failed)
		return 0;
	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
		if (h->block)
			block_end(h, end);
		if (end)
			remote_end(h, frame->hd.stream_id);
		break;
	case NGHTTP2_DATA:
		if (end)
			remote_end(h, frame->hd.stream_id);
		break;
	case NGHTTP2_SETTINGS:
		h->settings_seen = true;
		if (!ack && h->ops->settings)
			h->ops->settings(h->ctx);
		break;
	case NGHTTP2_PING:
		if (ack && h->ops->pong)
			h->ops->pong(h->ctx);
		break;
	case NGHTTP2_GOAWAY:
		goaway_tell(h, &frame->goaway);
		break;
	default:
		break;
	}
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code,
			   void *ctx)
{
	struct h2 *h = ctx;
	struct h2_stream *s = h2_stream_find(h, id);

	(void)session;
	if (s)
		h2_stream_gone(h, s, code);
	return 0;
}

void h2_in_callbacks(nghttp2_session_callbacks *cbs)
{
	nghttp2_session_callbacks_set_on_begin_headers_callback(
		cbs, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback2(cbs, on_header);
	nghttp2_session_callbacks_set_on_invalid_header_callback2(
		cbs, on_invalid_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
		cbs, on_data_chunk);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cbs,
							     on_frame_recv);
	nghttp2_session_callbacks_set_on_stream_close_callback(cbs,
							       on_stream_close);
}
