/* SPDX-License-Identifier: Apache-2.0 */
/* request_body.c - a body that its handler reads piece by piece
 *
 * How it works: body_pump() runs in the loop's callback of the connection and
 * nowhere else, so a handler is never called from inside one of its own calls;
 * httpd_body_read() and httpd_body_resume() only kick the stream. Bytes come
 * from the socket into one piece of memory of the server (a piece is borrowed
 * for the call), and straight from there to the handler. They are copied only
 * when he pauses, or the body ends, amid what was received: the rest goes to
 * r->in, which is emptied first the next time.
 *
 * While the handler holds the body nothing is read, and TCP makes the client
 * wait. A client that leaves meanwhile is noticed when the handler goes on.
 */

#include "src/httpd/request.h"

#include <errno.h>

#include "src/base/err.h"
#include "src/io/stream.h"

/* Pieces in one call, so that one upload does not hold up the others. */
enum { PUMP_PIECES = 4 };

void body_begin(struct httpd_request *r)
{
	r->body_left = r->head.body == H1_BODY_LENGTH ? r->head.length : 0;
	r->body_state = BODY_HELD;
	r->expected = r->head.expect_continue && r->head.body != H1_BODY_NONE;
}

static bool body_is_whole(const struct httpd_request *r)
{
	if (r->head.body == H1_BODY_CHUNKED)
		return r->chunked.done;
	return !r->body_left;
}

/* Calls the reader, who may end the request. */
static void body_tell(struct httpd_request *r, enum httpd_piece kind,
		      struct span bytes)
{
	if (kind != HTTPD_PIECE)
		r->body_told = true;
	r->body_fn(r->user, r, kind, bytes);
}

static void body_end(struct httpd_request *r)
{
	bool tell = r->body_state == BODY_READ;

	timer_stop(&r->body_timer);
	r->body_state = BODY_OVER;
	if (tell)
		body_tell(r, HTTPD_PIECE_END, SPAN_NONE);
}

void body_cut(struct httpd_request *r)
{
	timer_stop(&r->body_timer);
	r->body_state = BODY_OVER;
	r->last = true;
	if (r->body_fn && !r->body_told)
		body_tell(r, HTTPD_PIECE_CUT, SPAN_NONE);
}

/* Takes one piece off the front of *in; it is empty when only framing was
 * there. False: the framing is broken. */
static bool body_take(struct httpd_request *r, struct span *in,
		      struct span *ret)
{
	if (r->head.body == H1_BODY_CHUNKED)
		return h1_chunked_next(&r->chunked, in, ret,
				       &r->body_trailers) == H1_OK;
	*ret = span_of(in->ptr, (size_t)MIN((uint64_t)in->len, r->body_left));
	*in = span_from(*in, ret->len);
	r->body_left -= ret->len;
	return true;
}

static bool body_is_moving(const struct httpd_request *r)
{
	return r->body_state == BODY_READ || r->body_state == BODY_DROP;
}

/* Tells what is in `in` until it is used up, the body is over, or the handler
 * stops. Returns what is left of it. */
static struct span body_feed(struct httpd_request *r, struct span in)
{
	struct span piece;

	while (in.len && body_is_moving(r) && !body_is_whole(r)) {
		if (!body_take(r, &in, &piece)) {
			body_cut(r);
			break;
		}
		if (r->body_state == BODY_DROP)
			r->dropped += piece.len;
		else if (piece.len) {
			r->ahead = in;
			body_tell(r, HTTPD_PIECE, piece);
		}
	}
	r->ahead = SPAN_NONE;
	return in;
}

/* What was received before: the rest stays there. */
static void body_feed_in(struct httpd_request *r)
{
	size_t had = buf_len(&r->in);
	struct span rest;

	if (!had)
		return;
	rest = body_feed(r, buf_peek(&r->in));
	if (r->state != REQUEST_OVER) /* else its bytes went along */
		buf_consume(&r->in, had - rest.len);
}

/* > 0: something was read; 0: wait; < 0: the connection failed. */
static int body_feed_socket(struct httpd_request *r)
{
	struct httpd *h = r->httpd;
	struct span rest;
	size_t want = HTTPD_PIECE_MAX;
	ssize_t n;

	if (!h->piece)
		h->piece = must_realloc(NULL, HTTPD_PIECE_MAX);
	/* not a byte of the next request, when that is known beforehand */
	if (r->head.body == H1_BODY_LENGTH)
		want = (size_t)MIN((uint64_t)want, r->body_left);
	n = stream_read(r->stream, h->piece, want);
	if (n == STREAM_AGAIN)
		return 0;
	if (n <= 0) {
		r->end_seen = true;
		return n ? -1 : (body_cut(r), 0);
	}
	rest = body_feed(r, span_of(h->piece, (size_t)n));
	if (rest.len && r->state != REQUEST_OVER)
		must(!buf_put(&r->in, rest));
	return 1;
}

bool body_pump(struct httpd_request *r)
{
	int pieces, got = 1;

	if (body_is_moving(r))
		body_feed_in(r);
	for (pieces = 0; pieces < PUMP_PIECES && got > 0; pieces++) {
		if (!body_is_moving(r) || body_is_whole(r))
			break;
		got = body_feed_socket(r);
	}
	if (got < 0)
		return false;
	if (body_is_moving(r) && body_is_whole(r))
		body_end(r);
	if (r->dropped > HTTPD_DROP_MAX)
		body_cut(r);
	if (body_is_moving(r))
		timer_start(&r->body_timer,
			    r->httpd ? r->httpd->limits.silence_ms
				     : HTTPD_SILENCE_MS);
	return true;
}

void body_settle(struct httpd_request *r)
{
	if (r->body_state == BODY_OVER || body_is_whole(r))
		return;
	if (r->expected || r->body_left > HTTPD_DROP_MAX)
		r->last = true;
}

void body_drop(struct httpd_request *r)
{
	if (r->body_state == BODY_OVER)
		return;
	r->body_fn = NULL;
	timer_stop(&r->body_timer);
	if (r->last) {
		r->body_state = BODY_OVER;
		return;
	}
	r->body_state = BODY_DROP;
	stream_kick(r->stream);
}

/* -- the handler's calls -------------------------------------------------- */

void httpd_body_read(struct httpd_request *r, httpd_body_fn *fn)
{
	must(!r->body_fn && r->route->body == HTTPD_BODY_STREAMED);

	r->body_fn = fn;
	httpd_body_resume(r);
}

void httpd_body_pause(struct httpd_request *r)
{
	timer_stop(&r->body_timer);
	if (r->body_state == BODY_READ)
		r->body_state = BODY_HELD;
}

void httpd_body_resume(struct httpd_request *r)
{
	must(r->body_fn != NULL);

	if (r->state == REQUEST_GONE) {
		timer_start(&r->timer, 0); /* tells that it was cut */
		return;
	}
	if (r->body_state != BODY_HELD)
		return;
	r->body_state = BODY_READ;
	if (r->expected && !body_is_whole(r))
		/* a failure is met by the read that follows */
		(void)!stream_write(r->stream,
				    SPAN("HTTP/1.1 100 Continue\r\n\r\n"));
	r->expected = false;
	stream_kick(r->stream);
	request_run(r);
}

struct span httpd_body_trailers(const struct httpd_request *r)
{
	return buf_peek(&r->body_trailers);
}

int64_t httpd_body_length(const struct httpd_request *r)
{
	if (r->head.body == H1_BODY_CHUNKED)
		return -1;
	return r->head.body == H1_BODY_LENGTH ? (int64_t)r->head.length : 0;
}
