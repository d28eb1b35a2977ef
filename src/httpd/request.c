/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - the life of a connection and its requests, one after the other
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

#include "src/httpd/request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "src/base/err.h"
#include "src/io/stream.h"

enum { READ_BYTES = 16 * 1024, BODY_FIRST_BYTES = 64 * 1024 };

enum step { STEP_WAIT, STEP_AGAIN, STEP_FREED };

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
	r->body_left = r->dropped = 0;
	r->body_fn = NULL;
	r->expected = r->body_told = false;
	r->chunks = r->sized = r->room_due = false;
	r->room = NULL;
	r->room_bytes = 0;
	r->user = NULL;
	r->gone = NULL;
	buf_wipe(&r->body);
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

/* -- the head ------------------------------------------------------------- */

static bool id_is_fine(struct span id)
{
	size_t i;
	char c;

	for (i = 0; i < id.len; i++) {
		c = span_lower_char(id.ptr[i]);
		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') &&
		    c != '-' && c != '_' && c != '.')
			return false;
	}
	return id.len > 0 && id.len <= HTTPD_ID_MAX;
}

static void request_set_id(struct httpd_request *r)
{
	struct span given = httpd_header(r, SPAN("X-Request-ID"));
	uint64_t words[2] = { 0 };

	if (id_is_fine(given) && span_copy(given, r->id, sizeof(r->id)))
		return;
	must(getrandom(words, sizeof(words), 0) == sizeof(words));
	(void)snprintf(r->id, sizeof(r->id), "%016llx%016llx",
		       (unsigned long long)words[0],
		       (unsigned long long)words[1]);
}

static enum step refuse(struct httpd_request *r, unsigned status,
			const char *code, const char *message)
{
	r->last = true;
	if (!r->id[0])
		request_set_id(r);
	reply_put_error(r, status, code, message);
	return STEP_AGAIN;
}

static enum step refuse_body(struct httpd_request *r)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "the body is larger than %zu bytes",
		       r->httpd->limits.body);
	return refuse(r, 413, "BODY_TOO_LARGE", text);
}

static enum step refuse_head(struct httpd_request *r, enum h1_error error)
{
	memset(&r->head, 0, sizeof(r->head)); /* half-parsed */
	if (error == H1_E_TOO_LARGE)
		return refuse(r, 431, "HEAD_TOO_LARGE", h1_error_text(error));
	return refuse(r, 400, "BAD_REQUEST", h1_error_text(error));
}

/* Whom httpd_ops.authorise turned away; in the program's own words if it has
 * any. */
static enum step refuse_peer(struct httpd_request *r, unsigned status)
{
	const struct httpd *h = r->httpd;
	const char *body = NULL;

	if (h->ops->refusal)
		body = h->ops->refusal(h->ctx, status);
	if (body) {
		r->last = true;
		reply_put(r, status, "application/json", span_str(body));
		return STEP_AGAIN;
	}
	if (status == 401)
		httpd_set_header(r, "WWW-Authenticate", SPAN("Bearer"));
	return refuse(r, status, status == 401 ? "UNAUTHORIZED" : "FORBIDDEN",
		      status == 401 ? "a valid token is needed"
				    : "this peer may not use the API");
}

/* Routed and authorised, in that order of work; but who may not ask does not
 * learn which paths there are. True: go on; false: *ret is the step. */
static bool request_admit(struct httpd_request *r, enum step *ret)
{
	struct httpd *h = r->httpd;
	struct span allow = SPAN_NONE;
	unsigned status = 0;
	int found;

	found = route_find(h, r, &allow);
	if (!r->route || r->route->auth != HTTPD_AUTH_OPEN)
		status = h->ops->authorise(h->ctx, r);
	if (found == ROUTE_E_METHOD && !status)
		httpd_set_header(r, "Allow", allow);

	if (status)
		*ret = refuse_peer(r, status);
	else if (found == ROUTE_E_METHOD)
		*ret = refuse(r, 405, "METHOD_NOT_ALLOWED",
			      "this path has no such method");
	else if (found == ROUTE_E_BAD_PARAM)
		*ret = refuse(r, 400, "BAD_PATH",
			      "the path holds a broken percent-escape");
	else if (found)
		*ret = refuse(r, 404, "NOT_FOUND", "there is no such path");
	else
		return true;
	return false;
}

static enum step request_hand_over(struct httpd_request *r)
{
	timer_stop(&r->timer);
	if (!buf_len(&r->in))
		buf_wipe(&r->in); /* it may be long until the next request */
	r->state = REQUEST_HANDLER;
	r->route->fn(r->httpd->ctx, r);
	return r->state == REQUEST_HANDLER ? STEP_WAIT : STEP_AGAIN;
}

static enum step request_begin_body(struct httpd_request *r)
{
	size_t max = r->httpd->limits.body, room_bytes;
	char *room;

	if (r->route->body == HTTPD_BODY_STREAMED) {
		body_begin(r);
		return request_hand_over(r);
	}
	r->body.max = max;
	r->body_left = r->head.body == H1_BODY_LENGTH ? r->head.length : 0;
	r->state = REQUEST_BODY;
	if (r->body_left > max)
		return refuse_body(r);
	/* memory for what is only announced comes with the bytes */
	room_bytes =
		r->head.body == H1_BODY_CHUNKED ? max : (size_t)r->body_left;
	room_bytes = MIN(room_bytes, (size_t)BODY_FIRST_BYTES);
	must(!room_bytes || !buf_reserve(&r->body, room_bytes, &room));
	if (r->head.expect_continue && r->head.body != H1_BODY_NONE &&
	    stream_write(r->stream, SPAN("HTTP/1.1 100 Continue\r\n\r\n")) < 0)
		return STEP_WAIT; /* the read fails next */
	return STEP_AGAIN;
}

static enum step request_head_done(struct httpd_request *r, size_t len)
{
	struct span bytes = span_of(buf_peek(&r->in).ptr, len);
	enum h1_error error;
	enum step step;
	size_t cut;

	r->head_bytes = must_alloc(len);
	r->head_len = len;
	memcpy(r->head_bytes, bytes.ptr, len);
	explicit_bzero((char *)(uintptr_t)bytes.ptr, len);
	buf_consume(&r->in, len);
	error = h1_parse_request(span_of(r->head_bytes, len), &r->head);
	if (error)
		return refuse_head(r, error);

	cut = span_find(r->head.path, '?');
	r->path = span_of(r->head.path.ptr, cut);
	r->query = span_from(r->head.path, cut + 1);
	request_set_id(r);
	if (!request_admit(r, &step))
		return step;
	return request_begin_body(r);
}

static enum step step_head(struct httpd_request *r)
{
	int len;

	if (r->httpd->draining && !buf_len(&r->in)) {
		request_drop(r);
		return STEP_FREED;
	}
	len = h1_scan(&r->scan, buf_peek(&r->in), HTTPD_HEAD_MAX);
	if (len > 0)
		return request_head_done(r, (size_t)len);
	if (len < 0)
		return refuse_head(r, (enum h1_error) - len);
	if (r->end_seen) {
		request_drop(r);
		return STEP_FREED;
	}
	if (!r->timer.due_ms || !buf_len(&r->in))
		timer_start(&r->timer,
			    buf_len(&r->in) ? HTTPD_HEAD_MS : HTTPD_IDLE_MS);
	return STEP_WAIT;
}

/* -- the body ------------------------------------------------------------- */

/* 1 whole, 0 more is needed, or -(enum h1_error), or -ENOBUFS. */
static int body_take_chunks(struct httpd_request *r)
{
	struct span in = buf_peek(&r->in), data;
	enum h1_error error = H1_OK;
	size_t before = in.len;
	int r2 = 0;

	while (!error && !r2 && in.len && !r->chunked.done) {
		error = h1_chunked_next(&r->chunked, &in, &data, NULL);
		if (!error)
			r2 = buf_put(&r->body, data);
	}
	buf_consume(&r->in, before - in.len);
	if (error)
		return -(int)error;
	return r2 ? r2 : r->chunked.done;
}

static int body_take_length(struct httpd_request *r)
{
	struct span in = buf_peek(&r->in);
	int r2;

	in.len = (size_t)MIN((uint64_t)in.len, r->body_left);
	r2 = buf_put(&r->body, in);
	if (r2)
		return r2;
	buf_consume(&r->in, in.len);
	r->body_left -= in.len;
	return !r->body_left;
}

static enum step step_body(struct httpd_request *r)
{
	int taken = 1;

	if (r->head.body == H1_BODY_CHUNKED)
		taken = body_take_chunks(r);
	else if (r->head.body == H1_BODY_LENGTH)
		taken = body_take_length(r);

	if (taken == -ENOBUFS)
		return refuse_body(r);
	if (taken < 0)
		return refuse(r, 400, "BAD_REQUEST",
			      h1_error_text((enum h1_error) - taken));
	if (taken)
		return request_hand_over(r);
	if (r->end_seen) {
		request_drop(r);
		return STEP_FREED;
	}
	timer_start(&r->timer, HTTPD_SILENCE_MS);
	return STEP_WAIT;
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
		return step_head(r);
	case REQUEST_BODY:
		return step_body(r);
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
		(void)refuse(r, 408, "TIMEOUT",
			     "the request did not arrive in time");
		request_run(r);
		return; /* r may be freed */
	}
	request_drop(r);
}

void request_new(struct httpd *h, struct stream *stream,
		 const struct httpd_peer *peer)
{
	struct httpd_request *r = must_alloc(sizeof(*r));

	r->httpd = h;
	r->stream = stream;
	r->peer = *peer;
	/* and what a piece held behind the end of a body */
	r->in.max = HTTPD_IN_MAX + HTTPD_PIECE_MAX;
	arena_init(&r->arena, HTTPD_ARENA_MAX);
	timer_init(&r->timer, h->loop, on_timer);
	timer_init(&r->body_timer, h->loop, on_body_timer);
	list_init(&r->link);
	list_push(&h->requests, &r->link);
	h->request_count++;
	stream_set_owner(stream, on_stream, r);
	request_run(r);
}
