/* SPDX-License-Identifier: Apache-2.0 */
/* connection.c - the life of a connection and its requests, one after the other
 *
 * How it works: request_run() takes steps while they lead somewhere; each
 * state has one step function. Callbacks (readable, writable, timer) only note
 * what happened and call it; replies call it too, and when that happens from
 * inside a handler that a step called, the loop already on the stack goes on.
 *
 * Nothing frees a request that a handler has: when its client leaves, the
 * stream is closed and the state becomes REQUEST_GONE; the handler's reply (or
 * httpd_stream_end) then frees it. A handler that streams the reply, or has
 * called httpd_on_gone(), hears of it by .gone, and one that reads the body by
 * a last call of .body_fn, always from the loop and never from inside one of
 * its own calls.
 */

#include <stdlib.h>

#include "src/base/err.h"
#include "src/httpd/request.h"
#include "src/io/stream.h"

enum { READ_BYTES = 16 * 1024 };

/* -- ends ----------------------------------------------------------------- */

/* Forgets the request, so that the next one finds everything clear. */
static void request_forget(struct httpd_request *r)
{
	if (r->head_bytes)
		explicit_bzero(r->head_bytes, r->head_len);
	free(r->head_bytes);
	r->head_bytes = NULL;
	memset(&r->head, 0, sizeof(r->head));
	r->path = r->query = SPAN_NONE;
	r->route = NULL;
	r->param_count = 0;
	r->extra = NULL;
	r->extra_bytes = 0;
	r->reason = SPAN_NONE;
	r->id[0] = '\0';
	arena_fini(&r->arena);
	r->chunked = (struct h1_chunked){ 0 };
	r->scan = (struct h1_scan){ 0 };
	r->head_begun = false;
	r->body_left = r->dropped = 0;
	r->body_fn = NULL;
	r->expected = r->body_told = false;
	r->chunks = r->sized = r->room_due = false;
	r->room = NULL;
	r->room_bytes = 0;
	r->user = NULL;
	r->gone = NULL;
	buf_wipe(&r->body);
	buf_wipe(&r->body_trailers);
	buf_fini(&r->trailers);
	if (!buf_len(&r->in))
		buf_wipe(&r->in);
	if (!buf_len(&r->out))
		buf_wipe(&r->out);
}

static void request_free(struct httpd_request *r)
{
	struct httpd *h = r->httpd;

	timer_stop(&r->timer);
	timer_stop(&r->body_timer);
	list_remove(&r->link);
	r->stream = stream_free(r->stream);
	buf_wipe(&r->in);
	buf_wipe(&r->out);
	request_forget(r);
	free(r);
	if (h) {
		h->request_count--;
		httpd_request_left(h);
	}
}

void request_drop(struct httpd_request *r)
{
	r->stream = stream_free(r->stream);
	switch (r->state) {
	case REQUEST_HEAD:
	case REQUEST_BODY:
	case REQUEST_REPLY:
		request_free(r);
		return;
	case REQUEST_HANDLER:
	case REQUEST_STREAM:
		r->state = REQUEST_GONE;
		r->body_state = BODY_OVER;
		timer_stop(&r->timer);
		timer_stop(&r->body_timer);
		if (r->gone || (r->body_fn && !r->body_told))
			timer_start(&r->timer, 0);
		return;
	case REQUEST_GONE:
	case REQUEST_OVER:
	case REQUEST_STATE_NUM:
		return;
	}
}

bool request_let_go(struct httpd_request *r)
{
	if (r->state != REQUEST_GONE)
		return false;
	r->state = REQUEST_OVER;
	request_run(r);
	return true; /* r may be freed */
}

/* -- bytes in and out ----------------------------------------------------- */

/* Reads until the client has sent no more or .in is full. False: an error.
 * Buffers are allocated whole: one that grows leaves copies behind, and what
 * comes here may be a credential. */
static bool request_fill(struct httpd_request *r)
{
	char *room;
	ssize_t n;

	if (!r->in.size && buf_reserve(&r->in, HTTPD_IN_MAX, &room))
		return false;

	while (buf_len(&r->in) < HTTPD_IN_MAX && !r->end_seen) {
		if (buf_reserve(&r->in,
				MIN((size_t)READ_BYTES,
				    HTTPD_IN_MAX - buf_len(&r->in)),
				&room))
			return false;
		n = stream_read(r->stream, room,
				MIN((size_t)READ_BYTES,
				    HTTPD_IN_MAX - buf_len(&r->in)));
		if (n == STREAM_AGAIN)
			return true;
		if (n < 0)
			return false;
		if (n == 0)
			r->end_seen = true;
		buf_commit(&r->in, (size_t)n);
	}
	return true;
}

/* Gives of .out what the stream takes; the loop sends it at the end of its
 * round. False: an error. */
static bool request_pump(struct httpd_request *r)
{
	struct span piece;
	int n;

	while (buf_len(&r->out)) {
		piece = buf_peek(&r->out);
		piece.len = MIN(piece.len, (size_t)HTTPD_PIECE_MAX);
		n = stream_write(r->stream, piece);
		if (n == STREAM_AGAIN)
			return true;
		if (n < 0)
			return false;
		buf_consume(&r->out, piece.len);
	}
	return true;
}

/* -- the reply ------------------------------------------------------------ */

static enum step step_reply(struct httpd_request *r)
{
	if (!request_pump(r)) {
		request_drop(r);
		return STEP_FREED;
	}
	if (buf_len(&r->out)) {
		timer_start(&r->timer, HTTPD_SILENCE_MS);
		return STEP_WAIT;
	}
	if (!r->last && r->body_state == BODY_DROP) {
		timer_stop(&r->timer); /* that of the body runs */
		return STEP_WAIT;
	}
	if (r->last) {
		r->stream = stream_close(r->stream, HTTPD_LINGER_MS);
		request_free(r);
		return STEP_FREED;
	}
	timer_stop(&r->timer);
	request_forget(r);
	r->state = REQUEST_HEAD;
	return STEP_AGAIN;
}

/* Who has asked for it hears that nobody waits for the reply any more. */
static enum step step_handler(struct httpd_request *r)
{
	if (r->gone && r->end_seen)
		request_drop(r);
	return STEP_WAIT;
}

static enum step step_stream(struct httpd_request *r)
{
	size_t before = buf_len(&r->out);

	if (!request_pump(r) || r->end_seen)
		request_drop(r);
	else if (!buf_len(&r->out) || r->room)
		timer_stop(&r->timer);
	else if (buf_len(&r->out) < before || !r->timer.due_ms)
		timer_start(&r->timer, HTTPD_SILENCE_MS);
	return STEP_WAIT;
}

/* -- the runner ----------------------------------------------------------- */

static enum step request_step(struct httpd_request *r)
{
	switch (r->state) {
	case REQUEST_HEAD:
		return request_step_head(r);
	case REQUEST_BODY:
		return request_step_body(r);
	case REQUEST_HANDLER:
		return step_handler(r);
	case REQUEST_STREAM:
		return step_stream(r);
	case REQUEST_REPLY:
		return step_reply(r);
	case REQUEST_GONE:
		return STEP_WAIT;
	case REQUEST_OVER:
		request_free(r);
		return STEP_FREED;
	case REQUEST_STATE_NUM:
		break;
	}
	abort();
}

/* A refused client may still be sending: its bytes are not ours any more. */
static bool request_wants_bytes(const struct httpd_request *r)
{
	if (r->body_state == BODY_READ || r->body_state == BODY_DROP)
		return true;
	return !r->end_seen && buf_len(&r->in) < HTTPD_IN_MAX &&
	       r->state != REQUEST_REPLY && r->body_state != BODY_HELD;
}

/* Room was asked for, or much was unsent, and now it is not. */
static bool request_has_room(const struct httpd_request *r)
{
	return r->state == REQUEST_STREAM && r->room && r->room_due &&
	       httpd_stream_unsent(r) < reply_room_bytes(r);
}

static void request_set_wants(struct httpd_request *r)
{
	unsigned wants = STREAM_KICKED;

	if (request_wants_bytes(r))
		wants |= STREAM_READABLE;
	if (buf_len(&r->out) ||
	    (r->room && r->room_due && !request_has_room(r)))
		wants |= STREAM_WRITABLE;
	stream_want(r->stream, wants);
	if (request_has_room(r))
		stream_kick(r->stream);
}

/* False: r was freed. */
static bool request_go(struct httpd_request *r)
{
	enum step step;

	r->running = true;
	do {
		step = request_step(r);
	} while (step == STEP_AGAIN);
	if (step == STEP_FREED)
		return false;
	r->running = false;
	if (r->stream)
		request_set_wants(r);
	return true;
}

void request_run(struct httpd_request *r)
{
	if (!r->running)
		(void)request_go(r);
}

/* What the client sent goes to who reads it now. False: an error. */
static bool request_receive(struct httpd_request *r, unsigned events)
{
	bool fine;

	if (r->body_state == BODY_READ || r->body_state == BODY_DROP) {
		r->running = true;
		fine = body_pump(r);
		r->running = false;
		return fine;
	}
	if (events & STREAM_READABLE && request_wants_bytes(r))
		return request_fill(r);
	return true;
}

static void on_stream(struct stream *s, void *ctx, unsigned events)
{
	struct httpd_request *r = ctx;

	(void)s;
	if (events & (STREAM_READABLE | STREAM_KICKED) &&
	    !request_receive(r, events)) {
		request_drop(r);
		return; /* r may be freed */
	}
	if (!request_go(r))
		return; /* r was freed */
	if (request_has_room(r)) {
		r->room_due = false;
		r->room(r->user, r);
		/* r may be freed */
	}
}

void httpd_on_gone(struct httpd_request *r,
		   void (*fn)(void *user, struct httpd_request *r))
{
	r->gone = fn;
	if (r->state == REQUEST_GONE)
		timer_start(&r->timer, 0);
	else if (r->end_seen)
		stream_kick(r->stream);
}

/* The client has gone: its handler hears of it, from the loop. */
static void request_tell_gone(struct httpd_request *r)
{
	void (*gone)(void *, struct httpd_request *) = r->gone;

	r->running = true; /* so that r outlives the first call */
	body_cut(r);
	if (gone && r->state == REQUEST_GONE) {
		r->gone = NULL;
		gone(r->user, r);
	}
	(void)request_go(r);
	/* r may be freed */
}

static void on_body_timer(struct timer *t)
{
	struct httpd_request *r =
		container_of(t, struct httpd_request, body_timer);

	r->running = true;
	body_cut(r);
	(void)request_go(r);
	/* r may be freed */
}

static void on_timer(struct timer *t)
{
	struct httpd_request *r = container_of(t, struct httpd_request, timer);

	if (r->state == REQUEST_GONE) {
		request_tell_gone(r);
		return; /* r may be freed */
	}
	if ((r->state == REQUEST_HEAD && buf_len(&r->in)) ||
	    r->state == REQUEST_BODY) {
		(void)request_refuse(r, 408, "TIMEOUT",
				     "the request did not arrive in time");
		request_run(r);
		return; /* r may be freed */
	}
	request_drop(r);
}

void request_new(struct httpd *h, struct stream *stream,
		 const struct httpd_peer *peer, bool last)
{
	struct httpd_request *r = must_alloc(sizeof(*r));

	r->httpd = h;
	r->stream = stream;
	r->peer = *peer;
	r->last = last;
	/* and what a piece held behind the end of a body */
	r->in.max = HTTPD_IN_MAX + HTTPD_PIECE_MAX;
	r->trailers.max = r->body_trailers.max = H1_TRAILER_MAX;
	arena_init(&r->arena, HTTPD_ARENA_MAX);
	timer_init(&r->timer, h->loop, on_timer);
	timer_init(&r->body_timer, h->loop, on_body_timer);
	list_init(&r->link);
	list_push(&h->requests, &r->link);
	h->request_count++;
	stream_set_owner(stream, on_stream, r);
	request_run(r);
}
