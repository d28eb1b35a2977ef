/* SPDX-License-Identifier: Apache-2.0 */
/* h2_stream.c - the streams of a connection, and what is told of them
 *
 * How it works: nghttp2 says that a stream is gone while it sends or receives,
 * at moments when the owner is in the middle of something. So what happens to
 * a stream is noted in h->events and told when nghttp2 is at rest, at the end
 * of h2_input() and h2_output(). Until then the stream can still be found, and
 * every call for it does nothing.
 */

#include "src/wire/h2_conn.h"

#include "src/base/blocks.h"

static struct h2_stream **slot_of(const struct h2 *h, int32_t id)
{
	/* ids of one side are all odd */
	return (struct h2_stream **)&h->slots[((uint32_t)id >> 1) % H2_SLOTS];
}

struct h2_stream *h2_stream_find(const struct h2 *h, int32_t id)
{
	struct h2_stream *s = *slot_of(h, id);

	while (s && s->id != id)
		s = s->next;
	return s;
}

struct h2_stream *h2_stream_new(struct h2 *h, int32_t id)
{
	struct h2_stream *s = block_take_zeroed(sizeof(*s)),
			 **slot = slot_of(h, id);

	s->id = id;
	s->window = h->limits.window;
	buf_init(&s->queue, h->limits.queue_bytes);
	list_init(&s->event);
	s->next = *slot;
	*slot = s;
	return s;
}

void h2_stream_forget(struct h2 *h, struct h2_stream *s)
{
	struct h2_stream **at = slot_of(h, s->id);

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	list_remove(&s->event);
	buf_wipe(&s->queue);
	h2_fields_free(s->trailers);
	block_give(s, sizeof(*s));
}

static void event_note(struct h2 *h, struct h2_stream *s)
{
	if (list_is_empty(&s->event))
		list_push(&h->events, &s->event);
}

void h2_stream_gone(struct h2 *h, struct h2_stream *s, uint32_t code)
{
	if (s->gone)
		return;
	s->gone = true;
	s->cut = true;
	s->code = code;
	s->sending = false;
	s->direct = SPAN_NONE;
	if (s->remote_ended)
		h2_guard_finished(&h->guard, s->id);
	if (h->block && h->block->stream == s)
		h2_block_free(h);
	h2_stream_forgive(h, s);
	event_note(h, s);
}

void h2_stream_tell_room(struct h2 *h, struct h2_stream *s)
{
	s->tell_room = true;
	event_note(h, s);
}

void h2_stream_forgive(struct h2 *h, struct h2_stream *s)
{
	size_t n = s->unconsumed;

	if (!n)
		return;
	s->unconsumed = 0;
	h->unconsumed -= n;
	if (s->gone)
		(void)nghttp2_session_consume_connection(h->session, n);
	else
		(void)nghttp2_session_consume(h->session, s->id, n);
}

/* Returns true while s lives. */
static bool stream_tell_end(struct h2 *h, struct h2_stream *s)
{
	if (!s->gone)
		return true;
	if (s->told) {
		h->open--;
		if (h->ops->closed)
			h->ops->closed(h->ctx, s->id, s->code);
	} else if (h->ops->refused) {
		h->ops->refused(h->ctx, s->id,
				s->why ?: "the request is malformed");
	}
	h2_stream_forget(h, s);
	return false;
}

void h2_events_tell(struct h2 *h)
{
	struct h2_stream *s;

	while ((s = list_first(&h->events, struct h2_stream, event))) {
		list_remove(&s->event);
		if (!stream_tell_end(h, s) || !s->tell_room)
			continue;
		s->tell_room = false;
		if (h->ops->room && !s->ended)
			h->ops->room(h->ctx, s->id);
	}
}

void h2_streams_lose(struct h2 *h, uint32_t code)
{
	struct h2_stream *s;
	unsigned i;

	for (i = 0; i < H2_SLOTS; i++)
		for (s = h->slots[i]; s; s = s->next) {
			s->why = s->why ?: "the connection ended";
			h2_stream_gone(h, s, code);
		}
	h2_events_tell(h);
}

void h2_streams_free(struct h2 *h)
{
	unsigned i;

	for (i = 0; i < H2_SLOTS; i++)
		while (h->slots[i])
			h2_stream_forget(h, h->slots[i]);
}

size_t h2_streams_memory(const struct h2 *h)
{
	const struct h2_stream *s;
	size_t bytes = 0;
	unsigned i;

	for (i = 0; i < H2_SLOTS; i++)
		for (s = h->slots[i]; s; s = s->next)
			bytes += sizeof(*s) + s->queue.size +
				 h2_fields_size(s->trailers);
	return bytes;
}
