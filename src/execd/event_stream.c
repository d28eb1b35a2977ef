/* SPDX-License-Identifier: Apache-2.0 */
/* event_stream.c - one reply that is an event stream
 *
 * How it works: frames are put into .pending, and from there into the reply as
 * far as it takes them; what is left goes when the reply has room. A stream
 * whose client reads owns no memory but itself. It is full when something is
 * left, or when so much is unsent that more would only wait.
 *
 * A stream that was ended while its client still has to read lives on alone
 * until everything was sent or the client does not move for STALL_MS.
 *
 * The client's leaving is always told from the loop: by the server, or, when a
 * write finds out first, by the timer.
 */

#include "src/execd/event_stream.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/execd/execd.h"
#include "src/io/loop.h"

enum {
	PING_MS = 3000,
	STALL_MS = 60 * 1000,
	/* one result may hold whole pictures */
	PENDING_MAX = 64 * 1024 * 1024,
	PIECE_MAX = 256 * 1024,
	/* the kernel has its own buffers; what is here costs the sandbox */
	FULL_BYTES = 64 * 1024,
	MANY_BYTES = 2 * 1024,
};

enum state {
	STATE_OPEN,
	STATE_LOST,  /* a write failed; the timer tells of it */
	STATE_GONE,  /* no client: .r is NULL, puts go nowhere */
	STATE_ENDED, /* the owner let go; the rest is being sent */
};

struct event_stream {
	struct httpd_request *r;
	const struct event_stream_ops *ops;
	void *ctx;
	struct buf pending;
	struct timer timer;
	enum state state;
	bool holding;
	uint64_t held_ms; /* since when: the time of what is put meanwhile */
	bool was_full;	  /* the owner waits for room */
};

static struct event_stream *stream_free_all(struct event_stream *s)
{
	timer_stop(&s->timer);
	buf_fini(&s->pending);
	free(s);
	return NULL;
}

static void stream_lose(struct event_stream *s)
{
	buf_fini(&s->pending);
	s->state = STATE_LOST;
	timer_start(&s->timer, 0);
}

/* The client is gone; from the loop. May free s. */
static void stream_leave(struct event_stream *s)
{
	struct httpd_request *r = s->r;
	bool ended = !s->ops;

	s->r = NULL;
	s->state = STATE_GONE;
	timer_stop(&s->timer);
	buf_fini(&s->pending);
	httpd_stream_end(r);
	if (ended)
		(void)stream_free_all(s);
	else if (s->ops->gone)
		s->ops->gone(s->ctx);
	/* s may be gone */
}

/* Moves what the reply takes. */
static void stream_flush(struct event_stream *s)
{
	struct span piece;
	size_t unsent;
	int r;

	while (buf_len(&s->pending)) {
		unsent = httpd_stream_unsent(s->r);
		if (unsent >= HTTPD_STREAM_MAX)
			return;
		piece = buf_peek(&s->pending);
		piece.len = MIN(piece.len, HTTPD_STREAM_MAX - unsent);
		piece.len = MIN(piece.len, (size_t)PIECE_MAX);
		r = httpd_stream_write(s->r, piece);
		if (r == -EAGAIN)
			return;
		if (r) {
			stream_lose(s);
			return;
		}
		buf_consume(&s->pending, piece.len);
	}
	buf_fini(&s->pending);
}

static void stream_put(struct event_stream *s, const struct event *ev)
{
	struct event stamped = *ev;
	char *room;

	if (s->state != STATE_OPEN)
		return;
	if (!stamped.timestamp)
		stamped.timestamp = s->holding ? s->held_ms : clock_wall_ms();
	/* many more will follow: not by doubling */
	if (s->holding && buf_len(&s->pending) > MANY_BYTES &&
	    s->pending.size < FULL_BYTES)
		(void)!buf_reserve(&s->pending, FULL_BYTES, &room);
	if (event_put(&s->pending, &stamped)) {
		/* a producer that did not ask whether it is full */
		httpd_stream_abort(s->r);
		s->r = NULL;
		stream_lose(s);
		return;
	}
	if (!s->holding)
		stream_flush(s);
}

/* Is the owner's part over and all of it sent? Then s is gone. */
static bool stream_finish(struct event_stream *s)
{
	if (s->state != STATE_ENDED || buf_len(&s->pending))
		return false;
	httpd_stream_end(s->r);
	(void)stream_free_all(s);
	return true;
}

static void on_gone(void *user, struct httpd_request *r)
{
	(void)r;
	stream_leave(user);
}

static void on_room(void *user, struct httpd_request *r)
{
	struct event_stream *s = user;

	(void)r;
	if (s->state != STATE_OPEN && s->state != STATE_ENDED)
		return;
	stream_flush(s);
	if (stream_finish(s))
		return;
	if (s->state == STATE_ENDED)
		timer_start(&s->timer, STALL_MS);
	if (s->was_full && !event_stream_is_full(s)) {
		s->was_full = false;
		if (s->ops && s->ops->room)
			s->ops->room(s->ctx);
		/* s may be gone */
	}
}

static void stream_ping(struct event_stream *s)
{
	const struct event ping = { .type = EVENT_PING, .text = SPAN("pong") };

	if (!event_stream_is_full(s))
		stream_put(s, &ping);
	if (s->state == STATE_OPEN)
		timer_start(&s->timer, PING_MS);
}

static void on_timer(struct timer *t)
{
	struct event_stream *s = container_of(t, struct event_stream, timer);
	struct httpd_request *r = s->r;

	switch (s->state) {
	case STATE_OPEN:
		stream_ping(s);
		return;
	case STATE_LOST:
		if (r) {
			stream_leave(s);
			return; /* s may be gone */
		}
		s->state = STATE_GONE;
		if (s->ops && s->ops->gone)
			s->ops->gone(s->ctx);
		return;	  /* s may be gone */
	case STATE_ENDED: /* it did not move */
		httpd_stream_abort(r);
		(void)stream_free_all(s);
		return;
	case STATE_GONE:
		return;
	}
	abort();
}

struct event_stream *event_stream_new(struct execd *e, struct httpd_request *r,
				      struct span id,
				      const struct event_stream_ops *ops,
				      void *ctx)
{
	struct event_stream *s = must_alloc(sizeof(*s));

	must(ops);
	s->r = r;
	s->ops = ops;
	s->ctx = ctx;
	s->pending = (struct buf)BUF_INIT(PENDING_MAX);
	timer_init(&s->timer, e->loop, on_timer);
	httpd_set_user(r, s);
	httpd_set_header(r, "Cache-Control", SPAN("no-cache"));
	httpd_set_header(r, "Connection", SPAN("keep-alive"));
	httpd_set_header(r, "X-Accel-Buffering", SPAN("no"));
	httpd_stream_start(r, 200, "text/event-stream", on_gone);
	httpd_stream_set_room(r, FULL_BYTES);
	httpd_stream_on_room(r, on_room);
	event_stream_hold(s);
	event_stream_text(s, EVENT_INIT, id);
	stream_ping(s);
	event_stream_release(s);
	return s;
}

void event_stream_put(struct event_stream *s, const struct event *ev)
{
	stream_put(s, ev);
}

void event_stream_text(struct event_stream *s, enum event_type type,
		       struct span text)
{
	const struct event ev = { .type = type, .text = text };

	stream_put(s, &ev);
}

void event_stream_hold(struct event_stream *s)
{
	must(!s->holding);
	s->holding = true;
	s->held_ms = clock_wall_ms();
}

void event_stream_release(struct event_stream *s)
{
	must(s->holding);
	s->holding = false;
	if (s->state == STATE_OPEN)
		stream_flush(s);
}

bool event_stream_is_full(struct event_stream *s)
{
	if (s->state != STATE_OPEN ||
	    httpd_stream_unsent(s->r) + buf_len(&s->pending) < FULL_BYTES)
		return false;
	s->was_full = true;
	return true;
}

struct event_stream *event_stream_end(struct event_stream *s,
				      const struct event *last)
{
	if (last)
		stream_put(s, last);
	timer_stop(&s->timer);
	s->ops = NULL;
	switch (s->state) {
	case STATE_OPEN:
		s->state = STATE_ENDED;
		if (!stream_finish(s))
			timer_start(&s->timer, STALL_MS);
		return NULL;
	case STATE_LOST:
		if (s->r)
			httpd_stream_end(s->r);
		return stream_free_all(s);
	case STATE_GONE:
		return stream_free_all(s);
	case STATE_ENDED:
		break;
	}
	abort();
}
