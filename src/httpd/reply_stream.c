/* SPDX-License-Identifier: Apache-2.0 */
/* reply_stream.c - answers that are written piece by piece
 *
 * How it works: pieces go straight to the connection as long as that takes
 * them, so a large piece of a sized reply reaches the kernel without being
 * copied. What the connection does not take is kept in r->out, behind which
 * everything else then stands in line. HTTPD_STREAM_MAX bounds both together.
 */

#include "src/httpd/request.h"

#include <errno.h>

#include "src/base/err.h"
#include "src/io/stream.h"

/* The head, up to its last line but one. False: the client has gone. */
static bool stream_begin(struct httpd_request *r, unsigned status,
			 const char *type,
			 void (*gone)(void *user, struct httpd_request *r))
{
	if (r->state == REQUEST_GONE)
		return false; /* the first write says so */
	must(r->state == REQUEST_HANDLER);
	r->gone = gone;
	r->last = r->last || !r->head.keep_alive || r->end_seen ||
		  (!r->sized && !r->chunks);
	body_settle(r);
	reply_head_put(r, status, type, 0);
	return true;
}

void httpd_stream_start(struct httpd_request *r, unsigned status,
			const char *type,
			void (*gone)(void *user, struct httpd_request *r))
{
	r->chunks = r->head.minor >= 1;
	if (!stream_begin(r, status, type, gone))
		return;
	must(!buf_put_str(&r->out, r->chunks ? "Transfer-Encoding: chunked\r\n"
					       "\r\n"
					     : "\r\n"));
	r->state = REQUEST_STREAM;
	request_run(r);
}

void httpd_stream_start_sized(struct httpd_request *r, unsigned status,
			      const char *type, uint64_t length,
			      void (*gone)(void *user, struct httpd_request *r))
{
	r->sized = true;
	r->sized_left = length;
	if (!stream_begin(r, status, type, gone))
		return;
	must(!buf_putf(&r->out, "Content-Length: %llu\r\n\r\n",
		       (unsigned long long)length));
	r->state = REQUEST_STREAM;
	request_run(r);
}

size_t httpd_stream_unsent(const struct httpd_request *r)
{
	return buf_len(&r->out) + (r->stream ? stream_unsent(r->stream) : 0);
}

/* Straight to the connection, or behind what waits for it. */
static void piece_put(struct httpd_request *r, struct span bytes)
{
	if (!bytes.len)
		return;
	/* an error is met again by who runs the request */
	if (!buf_len(&r->out) && !stream_write(r->stream, bytes))
		return;
	r->out.max = buf_len(&r->out) + bytes.len;
	must(!buf_put(&r->out, bytes));
}

int httpd_stream_write(struct httpd_request *r, struct span bytes)
{
	char head[H1_CHUNK_HEAD_SIZE];

	if (r->state == REQUEST_GONE)
		return -EPIPE;
	must(r->state == REQUEST_STREAM);
	must(!r->sized || bytes.len <= r->sized_left);
	if (!bytes.len)
		return 0;
	if (httpd_stream_unsent(r) >= HTTPD_STREAM_MAX) {
		r->room_due = true;
		return -EAGAIN;
	}
	if (r->sized)
		r->sized_left -= bytes.len;
	if (reply_is_head(r))
		return 0;

	if (r->chunks)
		piece_put(r, span_of(head, h1_chunk_head(bytes.len, head)));
	piece_put(r, bytes);
	if (r->chunks)
		piece_put(r, SPAN("\r\n"));
	if (httpd_stream_unsent(r) >= reply_room_bytes(r))
		r->room_due = true;
	request_run(r);
	return r->state == REQUEST_GONE ? -EPIPE : 0;
}

size_t reply_room_bytes(const struct httpd_request *r)
{
	return r->room_bytes ? r->room_bytes : HTTPD_STREAM_MAX / 2;
}

void httpd_stream_set_room(struct httpd_request *r, size_t bytes)
{
	must(bytes && bytes <= HTTPD_STREAM_MAX / 2);
	r->room_bytes = bytes;
}

void httpd_stream_on_room(struct httpd_request *r,
			  void (*fn)(void *user, struct httpd_request *r))
{
	r->room = fn;
	if (r->state != REQUEST_STREAM)
		return; /* .gone tells the rest */
	r->room_due = true;
	request_run(r);
}

void httpd_stream_set_trailers(struct httpd_request *r, struct span lines)
{
	buf_clear(&r->trailers);
	if (lines.len)
		(void)!buf_put(&r->trailers, lines);
}

static void chunks_end(struct httpd_request *r)
{
	piece_put(r, SPAN("0\r\n"));
	piece_put(r, buf_peek(&r->trailers));
	piece_put(r, SPAN("\r\n"));
}

void httpd_stream_end(struct httpd_request *r)
{
	if (request_let_go(r))
		return;
	must(r->state == REQUEST_STREAM);
	if (r->sized && r->sized_left && !reply_is_head(r)) {
		httpd_stream_abort(r);
		return;
	}
	if (r->chunks && !reply_is_head(r))
		chunks_end(r);
	r->gone = NULL;
	body_settle(r);
	r->state = REQUEST_REPLY;
	body_drop(r);
	request_run(r);
	/* r may be freed */
}

void httpd_stream_abort(struct httpd_request *r)
{
	if (request_let_go(r))
		return;
	must(r->state == REQUEST_STREAM);
	/* Where only the end of the connection ends the body, an orderly one
	 * would say that it is whole. */
	if (r->chunks || r->sized)
		r->stream = stream_close(r->stream, HTTPD_LINGER_MS);
	else
		r->stream = stream_reset(r->stream);
	r->state = REQUEST_OVER;
	request_run(r);
	/* r may be freed */
}
