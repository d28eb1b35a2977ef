/* SPDX-License-Identifier: Apache-2.0 */
/* h2_calls.c - requests, responses, bodies and windows of one stream
 *
 * How it works: heads go to nghttp2, bodies to the stream's queue (h2_out.c).
 * Windows open only for what was consumed. A stream whose owner keeps up with
 * two windows' worth of data gets a window twice as large, and the connection
 * likewise, up to their limits: bulk over long distances is not held back, and
 * a slow owner never owes more than it could show it can take.
 */

#include "src/wire/h2_conn.h"

#include <errno.h>

#include "src/base/err.h"

static struct h2_stream *stream_live(const struct h2 *h, int32_t id)
{
	struct h2_stream *s = h2_stream_find(h, id);

	return s && !s->gone && !s->reset_asked ? s : NULL;
}

unsigned h2_request_room(const struct h2 *h)
{
	unsigned most = MIN(h2_peer_max_streams(h), h->limits.streams);

	if (h->side != H2_CLIENT || !h2_is_open(h) || h->open >= most)
		return 0;
	return most - h->open;
}

/* Was a credential or the like among them? Then h->out will be wiped. */
static void secrets_note(struct h2 *h, const nghttp2_nv *items, size_t count)
{
	size_t i;

	for (i = 0; i < count && !h->out_secret; i++)
		h->out_secret = items[i].flags & NGHTTP2_NV_FLAG_NO_INDEX;
}

static struct h2_stream *request_begin(struct h2 *h, int32_t id, bool end,
				       void *stream_data)
{
	struct h2_stream *s = h2_stream_new(h, id);

	s->data = stream_data;
	s->told = true;
	s->sending = !end;
	s->ended = end;
	h->open++;
	return s;
}

int h2_request(struct h2 *h, const struct h2_head *head, bool end,
	       void *stream_data)
{
	nghttp2_data_provider body;
	struct h2_stream *s;
	struct h2_nvs nvs;
	int32_t id;

	if (h->side != H2_CLIENT || h2_nvs_request(head, &nvs))
		return err_origin(-EINVAL);
	if (head->protocol.len && !h2_peer_extended_connect(h))
		return -EOPNOTSUPP;
	if (!h2_is_open(h))
		return -ESHUTDOWN;
	if (!h2_request_room(h))
		return -EAGAIN;
	id = (int32_t)nghttp2_session_get_next_stream_id(h->session);
	s = request_begin(h, id, end, stream_data);
	body = h2_out_provider(s);
	id = nghttp2_submit_request(h->session, NULL, nvs.items, nvs.count,
				    end ? NULL : &body, NULL);
	if (id != s->id) {
		h2_stream_forget(h, s);
		return err_origin(-ENOMEM);
	}
	secrets_note(h, nvs.items, nvs.count);
	return id;
}

int h2_respond(struct h2 *h, int32_t id, const struct h2_head *head, bool end)
{
	struct h2_stream *s = stream_live(h, id);
	nghttp2_data_provider body;
	struct h2_nvs nvs;

	if (!s)
		return -ENOENT;
	if (h->side != H2_SERVER || s->answered || head->status < 200 ||
	    h2_nvs_response(head, &nvs))
		return err_origin(-EINVAL);
	body = h2_out_provider(s);
	if (nghttp2_submit_response(h->session, id, nvs.items, nvs.count,
				    end ? NULL : &body))
		return err_origin(-ENOMEM);
	s->answered = true;
	s->sending = !end;
	s->ended = end;
	secrets_note(h, nvs.items, nvs.count);
	return 0;
}

int h2_interim(struct h2 *h, int32_t id, const struct h2_head *head)
{
	struct h2_stream *s = stream_live(h, id);
	struct h2_nvs nvs;

	if (!s)
		return -ENOENT;
	if (h->side != H2_SERVER || s->answered || head->status >= 200 ||
	    h2_nvs_response(head, &nvs))
		return err_origin(-EINVAL);
	if (nghttp2_submit_headers(h->session, NGHTTP2_FLAG_NONE, id, NULL,
				   nvs.items, nvs.count, NULL))
		return err_origin(-ENOMEM);
	return 0;
}

static bool is_writable(const struct h2_stream *s)
{
	return s && s->sending && !s->ended;
}

size_t h2_room(const struct h2 *h, int32_t id)
{
	const struct h2_stream *s = stream_live(h, id);

	return is_writable(s) ? s->queue.max - buf_len(&s->queue) : 0;
}

/* nghttp2 asks the stream for its body again. */
static void body_resume(struct h2 *h, struct h2_stream *s)
{
	if (!s->deferred)
		return;
	s->deferred = false;
	(void)nghttp2_session_resume_data(h->session, s->id);
}

/* Returns what of bytes could not be sent at once. */
static struct span write_direct(struct h2 *h, struct h2_stream *s,
				struct span bytes)
{
	if (h->inside || h->failed || h->lost || bytes.len < H2_DIRECT_MIN ||
	    buf_len(&s->queue) || buf_len(&h->out) - h->given >= H2_OUT_ENOUGH)
		return bytes;
	s->direct = bytes;
	body_resume(h, s);
	h2_out_pump(h);
	bytes = s->gone ? SPAN_NONE : s->direct;
	s->direct = SPAN_NONE;
	return bytes;
}

int h2_write(struct h2 *h, int32_t id, struct span bytes)
{
	struct h2_stream *s = stream_live(h, id);

	if (!s)
		return -ENOENT;
	if (!is_writable(s))
		return -EPIPE;
	if (bytes.len > s->queue.max - buf_len(&s->queue))
		return -ENOBUFS;
	bytes = write_direct(h, s, bytes);
	if (!bytes.len)
		return 0;
	if (!buf_len(&s->queue))
		s->moved_ms = h->now_ms;
	must(!buf_put(&s->queue, bytes));
	if (buf_len(&s->queue) > s->queue.max / 2)
		s->over_half = true;
	body_resume(h, s);
	return 0;
}

static void trailers_keep(struct h2 *h, struct h2_stream *s,
			  const struct headers *trailers)
{
	const nghttp2_nv *items;
	size_t count;

	s->trailers = h2_fields_new(trailers);
	items = h2_fields_items(s->trailers, &count);
	secrets_note(h, items, count);
}

int h2_end(struct h2 *h, int32_t id, const struct headers *trailers)
{
	struct h2_stream *s = stream_live(h, id);

	if (!s)
		return -ENOENT;
	if (!is_writable(s))
		return -EPIPE;
	s->ended = true;
	if (!buf_len(&s->queue))
		s->moved_ms = h->now_ms;
	if (trailers && trailers->count)
		trailers_keep(h, s, trailers);
	body_resume(h, s);
	return 0;
}

void h2_reset(struct h2 *h, int32_t id, uint32_t code)
{
	struct h2_stream *s = stream_live(h, id);

	if (!s)
		return;
	s->cut = s->reset_asked = true;
	s->code = code;
	buf_wipe(&s->queue);
	h2_stream_forgive(h, s);
	(void)nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, id,
					code);
}

void h2_break(struct h2 *h, int32_t id, uint32_t code)
{
	struct h2_stream *s = stream_live(h, id);

	if (!is_writable(s) || !buf_len(&s->queue)) {
		h2_reset(h, id, code);
		return;
	}
	s->ended = s->broken = true;
	s->code = code;
	body_resume(h, s);
}

static void stream_grow(struct h2 *h, struct h2_stream *s)
{
	if (s->window >= h->limits.window_max || s->remote_ended ||
	    s->flowed < 2 * (uint64_t)s->window ||
	    s->unconsumed > s->window / 4)
		return;
	s->flowed = 0;
	s->window = MIN(2 * s->window, h->limits.window_max);
	(void)nghttp2_session_set_local_window_size(h->session, 0, s->id,
						    (int32_t)s->window);
}

static void conn_grow(struct h2 *h)
{
	if (h->window >= h->limits.conn_window_max ||
	    h->flowed < 2 * (uint64_t)h->window ||
	    h->unconsumed > h->window / 4)
		return;
	h->flowed = 0;
	h->window = MIN(2 * h->window, h->limits.conn_window_max);
	(void)nghttp2_session_set_local_window_size(h->session, 0, 0,
						    (int32_t)h->window);
}

void h2_consumed(struct h2 *h, int32_t id, size_t n)
{
	struct h2_stream *s = stream_live(h, id);

	if (!s || !n)
		return;
	n = MIN(n, s->unconsumed);
	s->unconsumed -= n;
	s->flowed += n;
	h->unconsumed -= n;
	h->flowed += n;
	(void)nghttp2_session_consume(h->session, id, n);
	stream_grow(h, s);
	conn_grow(h);
}

void h2_set_stream_data(struct h2 *h, int32_t id, void *stream_data)
{
	struct h2_stream *s = h2_stream_find(h, id);

	if (s)
		s->data = stream_data;
}

void *h2_stream_data(const struct h2 *h, int32_t id)
{
	const struct h2_stream *s = h2_stream_find(h, id);

	return s ? s->data : NULL;
}

/* An end needs no window, but nghttp2 waits for one. */
static bool end_is_due(const struct h2_stream *s)
{
	return s->ended && s->sending;
}

uint64_t h2_stalled_since(const struct h2 *h, int32_t id)
{
	const struct h2_stream *s = stream_live(h, id);

	return s && (buf_len(&s->queue) || end_is_due(s)) ? s->moved_ms : 0;
}
