/* SPDX-License-Identifier: Apache-2.0 */
/* websocket.c - a WebSocket's life after its handshake, the same for both sides
 *
 * How it works: what the stream has is read in chunks, unmasked where it lies
 * and told to the owner; nothing is stored but the pieces of a message that
 * the owner wants whole. An owner that holds back leaves the rest of a chunk
 * with the stream, so a connection that nobody reads costs one chunk and then
 * the peer's patience.
 *
 * What is sent goes to the stream's queue. Messages stop at
 * WEBSOCKET_UNSENT_MAX; the space above it, up to the stream's own limit, is
 * for pongs, pings and Close, so that these can be said to a peer that has
 * stopped reading. One that sends pings and reads nothing fills that too: it
 * gets no further pongs, and in the end a plain close.
 *
 * Two timers: one sends pings; the other is restarted by every byte that comes
 * and otherwise ends the connection. A connection that broke while the owner
 * was sending is also ended by that timer, since the owner is not called back
 * from inside his own call.
 *
 * websocket_open.c has the two handshakes.
 */

#include <errno.h>
#include <sys/random.h>

#include "src/base/err.h"
#include "src/execd/websocket_inside.h"

enum { CHUNK_BYTES = 64 * 1024, CONTROL_MAX = 125 };

/* -- ending ---------------------------------------------------------------- */

static void websocket_release(struct websocket *w)
{
	if (w->stream || w->busy)
		return;
	buf_fini(&w->gathered);
	free(w);
}

/* Takes the stream away: from here on w only waits to be freed. */
static struct stream *websocket_detach(struct websocket *w)
{
	timer_stop(&w->ping);
	timer_stop(&w->silence);
	stream_set_owner(w->stream, NULL, NULL);
	return take_ptr(w->stream);
}

/* Tells the owner; the stream is closed already. */
static void websocket_tell_closed(struct websocket *w, unsigned code,
				  const char *why)
{
	w->busy++;
	w->ops->closed(w->ctx, code, why);
	w->busy--;
	websocket_release(w);
	/* w may be gone */
}

void websocket_lose(struct websocket *w, const char *why)
{
	(void)stream_close(websocket_detach(w), WEBSOCKET_LINGER_MS);
	websocket_tell_closed(w, WEBSOCKET_ABNORMAL, why);
	/* w may be gone */
}

static void websocket_put_close(struct websocket *w, unsigned code,
				struct span reason)
{
	char payload[CONTROL_MAX] = { (char)(code >> 8), (char)code };
	const size_t len = MIN(reason.len, sizeof(payload) - 2);

	if (code == WEBSOCKET_NO_STATUS) {
		(void)websocket_put(w, WS_CLOSE, SPAN_NONE);
		return;
	}
	if (len)
		memcpy(payload + 2, reason.ptr, len);
	(void)websocket_put(w, WS_CLOSE, span_of(payload, len + 2));
}

struct websocket *websocket_close(struct websocket *w, unsigned code,
				  const char *reason)
{
	if (!w || !w->stream)
		return NULL;
	if (w->open)
		websocket_put_close(w, code, span_str(reason));
	(void)stream_close(websocket_detach(w), WEBSOCKET_LINGER_MS);
	websocket_release(w);
	return NULL;
}

/* -- sending --------------------------------------------------------------- */

int websocket_put(struct websocket *w, enum ws_opcode opcode, struct span bytes)
{
	struct buf frame = BUF_INIT(bytes.len + 16);
	uint8_t mask[4];
	int r;

	if (!w->ws.is_server)
		must(getrandom(mask, sizeof(mask), 0) == sizeof(mask));
	must(ws_put(&frame, opcode, bytes, w->ws.is_server ? NULL : mask) == 0);
	r = stream_write(w->stream, buf_peek(&frame));
	buf_fini(&frame);
	return r;
}

/* Which calls of the stream are due. */
static void websocket_rearm(struct websocket *w)
{
	stream_want(w->stream, (w->held ? 0u : STREAM_READABLE) |
				       (w->full ? STREAM_WRITABLE : 0u));
}

void websocket_set_broken(struct websocket *w)
{
	w->broken = true;
	timer_start(&w->silence, 1);
}

int websocket_send(struct websocket *w, enum ws_opcode opcode,
		   struct span bytes)
{
	int r;

	if (!w->stream || !w->open || w->broken)
		return -EPIPE;
	if (bytes.len > WEBSOCKET_SEND_MAX)
		return -EMSGSIZE;
	r = stream_unsent(w->stream) >= WEBSOCKET_UNSENT_MAX
		    ? STREAM_AGAIN
		    : websocket_put(w, opcode, bytes);
	if (r == STREAM_AGAIN) {
		w->full = true;
		websocket_rearm(w);
		return -EAGAIN;
	}
	if (r) {
		websocket_set_broken(w);
		return -EPIPE;
	}
	return 0;
}

size_t websocket_unsent(const struct websocket *w)
{
	return w->stream ? stream_unsent(w->stream) : 0;
}

void websocket_hold(struct websocket *w, bool held)
{
	if (!w->stream || w->held == held)
		return;
	w->held = held;
	websocket_rearm(w);
	if (w->broken)
		return;
	if (held)
		timer_stop(&w->silence);
	else
		timer_start(&w->silence, w->limits.silence_ms);
}

/* -- receiving ------------------------------------------------------------- */

static void websocket_on_close(struct websocket *w, struct span payload)
{
	unsigned code = WEBSOCKET_NO_STATUS;
	char why[CONTROL_MAX + 1] = "";

	if (payload.len >= 2) {
		code = (unsigned)(uint8_t)payload.ptr[0] << 8 |
		       (uint8_t)payload.ptr[1];
		(void)span_copy(span_from(payload, 2), why, sizeof(why));
	}
	websocket_put_close(w, code, SPAN_NONE);
	(void)stream_close(websocket_detach(w), WEBSOCKET_LINGER_MS);
	websocket_tell_closed(w, code, why);
}

/* For an owner that wants whole messages. */
static void websocket_gather(struct websocket *w, const struct ws_event *ev)
{
	struct span whole = ev->bytes;

	if (!ev->last || buf_len(&w->gathered)) {
		/* the parser has counted against message_max */
		must(buf_put(&w->gathered, ev->bytes) == 0);
		if (!ev->last)
			return;
		whole = buf_peek(&w->gathered);
	}
	w->ops->message(w->ctx, ev->opcode, whole, true);
	buf_fini(&w->gathered);
}

static void websocket_on_event(struct websocket *w, const struct ws_event *ev)
{
	switch (ev->opcode) {
	case WS_PING:
		/* no room: it does not read, and will not miss it */
		(void)websocket_put(w, WS_PONG, ev->bytes);
		return;
	case WS_PONG:
		return;
	case WS_CLOSE:
		websocket_on_close(w, ev->bytes);
		return;
	case WS_TEXT:
	case WS_BINARY:
		if (w->limits.whole)
			websocket_gather(w, ev);
		else
			w->ops->message(w->ctx, ev->opcode, ev->bytes,
					ev->last);
		return;
	case WS_CONTINUATION:
		break;
	}
	must(!"a message of no kind");
}

static void websocket_refuse(struct websocket *w, unsigned code)
{
	websocket_put_close(w, code, SPAN_NONE);
	(void)stream_close(websocket_detach(w), WEBSOCKET_LINGER_MS);
	websocket_tell_closed(w, code, "the peer broke the protocol");
}

/* What stream_read() gave, up to where the owner holds back. */
static void websocket_parse(struct websocket *w, char *p, size_t len)
{
	struct ws_event ev;
	int r = 1;

	while (r > 0 && w->stream && !w->held) {
		r = ws_next(&w->ws, &p, &len, &ev);
		if (r > 0)
			websocket_on_event(w, &ev);
		else if (r < 0)
			websocket_refuse(w, (unsigned)-r);
	}
	if (w->stream && len && stream_unread(w->stream, span_of(p, len)))
		websocket_lose(w, "there was no room for what it sent");
}

static void websocket_read(struct websocket *w)
{
	char chunk[CHUNK_BYTES];
	ssize_t n;

	n = stream_read(w->stream, chunk, sizeof(chunk));
	if (n == STREAM_AGAIN)
		return;
	if (n <= 0) {
		websocket_lose(w, n ? err_text((int)n)
				    : "the peer ended without Close");
		return;
	}
	if (!w->broken)
		timer_start(&w->silence, w->limits.silence_ms);
	websocket_parse(w, chunk, (size_t)n);
}

/* -- the loop's calls ------------------------------------------------------ */

static void websocket_on_stream(struct stream *s, void *ctx, unsigned events)
{
	struct websocket *w = ctx;

	w->busy++;
	if (!w->open)
		websocket_open_step(w, events);
	else if (events & STREAM_READABLE)
		websocket_read(w);
	if (w->stream && w->full && events & STREAM_WRITABLE &&
	    stream_unsent(s) < WEBSOCKET_UNSENT_MAX) {
		w->full = false;
		websocket_rearm(w);
		if (w->ops->room)
			w->ops->room(w->ctx);
	}
	w->busy--;
	websocket_release(w);
	/* w may be gone */
}

static void websocket_on_silence(struct timer *t)
{
	struct websocket *w = container_of(t, struct websocket, silence);

	if (w->broken)
		websocket_lose(w, "the connection broke");
	else
		websocket_lose(w, w->open ? "nothing was heard for too long"
					  : "the handshake took too long");
	/* w is gone */
}

static void websocket_on_ping(struct timer *t)
{
	struct websocket *w = container_of(t, struct websocket, ping);
	int r;

	r = websocket_put(w, WS_PING, SPAN_NONE);
	if (r && r != STREAM_AGAIN) {
		websocket_lose(w, err_text(r));
		return; /* w is gone */
	}
	timer_start(t, w->limits.ping_ms);
}

struct websocket *websocket_new(struct stream *s, bool is_server,
				const struct websocket_limits *limits,
				const struct websocket_ops *ops, void *ctx)
{
	struct websocket *w = must_alloc(sizeof(*w));

	if (limits)
		w->limits = *limits;
	if (!w->limits.ping_ms)
		w->limits.ping_ms = WEBSOCKET_PING_MS;
	if (!w->limits.silence_ms)
		w->limits.silence_ms = WEBSOCKET_SILENCE_MS;
	if (!w->limits.message_max)
		w->limits.message_max = WEBSOCKET_MESSAGE_MAX;
	w->stream = s;
	w->ops = ops;
	w->ctx = ctx;
	w->ws = (struct ws){ .is_server = is_server,
			     .message_max = w->limits.message_max };
	buf_init(&w->gathered, w->limits.message_max);
	timer_init(&w->ping, stream_loop(s), websocket_on_ping);
	timer_init(&w->silence, stream_loop(s), websocket_on_silence);
	stream_set_owner(s, websocket_on_stream, w);
	websocket_rearm(w);
	return w;
}

void websocket_set_open(struct websocket *w)
{
	w->open = true;
	timer_start(&w->ping, w->limits.ping_ms);
	timer_start(&w->silence, w->limits.silence_ms);
}
