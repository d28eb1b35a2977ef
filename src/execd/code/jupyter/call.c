/* SPDX-License-Identifier: Apache-2.0 */
/* call.c - one HTTP call to the Jupyter server (server.h)
 *
 * One connection per call, closed afterwards: calls are few, the work goes over
 * the WebSocket of each kernel. The reply is bounded in size and time.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/execd/code/jupyter/server.h"
#include "src/execd/execd.h"
#include "src/io/loop.h"
#include "src/io/stream.h"
#include "src/wire/h1.h"

enum {
	HEAD_MAX = 32 * 1024,
	REQUEST_MAX = 64 * 1024,
	READ_SIZE = 16 * 1024,
	SOON_MS = 1,
};

struct jupyter_call {
	struct list link; /* jupyter.calls */
	struct jupyter *jupyter;
	jupyter_fn *fn;
	void *ctx;
	struct stream *stream;
	struct timer timeout;
	char method[8];
	char why[512]; /* it failed before it began */
	struct buf in, body;
	struct h1_scan scan;
	bool has_head;
	struct h1_chunked chunked;
	uint64_t left;
	enum h1_body kind;
	unsigned status;
};

static void call_free(struct jupyter_call *c)
{
	list_remove(&c->link);
	timer_stop(&c->timeout);
	c->stream = stream_free(c->stream);
	buf_fini(&c->in);
	buf_fini(&c->body);
	free(c);
}

/* Tells and frees: c is gone when this returns. */
static void call_finish(struct jupyter_call *c, unsigned status,
			struct span text)
{
	jupyter_fn *fn = c->fn;

	c->fn = NULL; /* a cancel from inside frees nothing twice */
	if (fn)
		fn(c->ctx, status, text);
	call_free(c);
}

static void call_fail(struct jupyter_call *c, const char *why)
{
	char text[1024];
	int len;

	len = snprintf(text, sizeof(text), "the Jupyter server at %s: %s",
		       c->jupyter->host, why);
	call_finish(c, 0, span_of(text, MIN((size_t)len, sizeof(text) - 1)));
}

static void on_timeout(struct timer *t)
{
	struct jupyter_call *c = container_of(t, struct jupyter_call, timeout);

	if (c->why[0])
		call_finish(c, 0, span_str(c->why));
	else
		call_fail(c, "no reply in time");
}

/* -- the reply ------------------------------------------------------------ */

enum progress { PROGRESS_MORE, PROGRESS_DONE, PROGRESS_BAD };

static enum progress take_head(struct jupyter_call *c)
{
	struct h1_response head;
	struct span bytes = buf_peek(&c->in);
	int len = h1_scan(&c->scan, bytes, HEAD_MAX);

	if (len <= 0)
		return len ? PROGRESS_BAD : PROGRESS_MORE;
	if (h1_parse_response(span_of(bytes.ptr, (size_t)len),
			      span_str(c->method), &head) != H1_OK)
		return PROGRESS_BAD;
	c->status = head.status;
	c->kind = head.body;
	c->left = head.length;
	c->has_head = true;
	buf_consume(&c->in, (size_t)len);
	return PROGRESS_DONE;
}

static enum progress take_chunks(struct jupyter_call *c)
{
	struct span in = buf_peek(&c->in), piece;
	size_t before = in.len;
	enum progress p = PROGRESS_MORE;

	while (p == PROGRESS_MORE && !c->chunked.done) {
		if (h1_chunked_next(&c->chunked, &in, &piece, NULL) != H1_OK ||
		    buf_put(&c->body, piece))
			p = PROGRESS_BAD;
		else if (!piece.len && !c->chunked.done)
			break; /* all that came */
	}
	buf_consume(&c->in, before - in.len);
	return c->chunked.done ? PROGRESS_DONE : p;
}

static enum progress take_body(struct jupyter_call *c, bool ended)
{
	struct span in = buf_peek(&c->in);
	size_t n;

	switch (c->kind) {
	case H1_BODY_NONE:
		return PROGRESS_DONE;
	case H1_BODY_CHUNKED:
		return take_chunks(c);
	case H1_BODY_LENGTH:
		n = MIN(in.len, c->left);
		break;
	case H1_BODY_CLOSE:
		n = in.len;
		break;
	default:
		return PROGRESS_BAD;
	}
	if (buf_put(&c->body, span_of(in.ptr, n)))
		return PROGRESS_BAD;
	buf_consume(&c->in, n);
	c->left -= c->kind == H1_BODY_LENGTH ? n : 0;
	if (c->kind == H1_BODY_CLOSE)
		return ended ? PROGRESS_DONE : PROGRESS_MORE;
	return c->left ? PROGRESS_MORE : PROGRESS_DONE;
}

static enum progress take(struct jupyter_call *c, bool ended)
{
	enum progress p = c->has_head ? PROGRESS_DONE : take_head(c);

	return p == PROGRESS_DONE ? take_body(c, ended) : p;
}

static void on_stream(struct stream *s, void *ctx, unsigned events)
{
	struct jupyter_call *c = ctx;
	enum progress p = PROGRESS_MORE;
	ssize_t n = 1;
	char *at;

	(void)events;
	while (p == PROGRESS_MORE && n > 0) {
		if (buf_reserve(&c->in, READ_SIZE, &at)) {
			p = PROGRESS_BAD;
			break;
		}
		n = stream_read(s, at, READ_SIZE);
		if (n == STREAM_AGAIN)
			return;
		if (n > 0)
			buf_commit(&c->in, (size_t)n);
		p = take(c, n == 0);
	}
	if (p == PROGRESS_DONE)
		call_finish(c, c->status, buf_peek(&c->body));
	else if (p == PROGRESS_BAD)
		call_fail(c, "its reply is not HTTP, or too large");
	else
		call_fail(c, n ? err_text((int)n) : "it closed the connection");
}

/* -- the request ---------------------------------------------------------- */

static int put_request(struct jupyter_call *c, struct buf *out,
		       const char *path, struct span body)
{
	const struct jupyter *j = c->jupyter;
	int r;

	r = buf_putf(out,
		     "%s %s%s HTTP/1.1\r\nHost: %s\r\nAccept: "
		     "application/json\r\nConnection: close\r\n",
		     c->method, j->base, path, j->host);
	if (!r)
		r = jupyter_put_token(j, out);
	if (!r && body.len)
		r = buf_put_str(out, "Content-Type: application/json\r\n");
	if (!r)
		r = buf_putf(out, "Content-Length: %zu\r\n\r\n", body.len);
	return r ? r : buf_put(out, body);
}

static int send_request(struct jupyter_call *c, const char *path,
			struct span body, struct diag *d)
{
	struct buf request = BUF_INIT(REQUEST_MAX);
	struct addr at;
	int r;

	r = jupyter_resolve(c->jupyter, &at, d);
	if (r)
		return r;
	r = stream_connect(c->jupyter->execd->loop, &at, &c->stream);
	if (!r)
		r = put_request(c, &request, path, body);
	if (!r)
		r = stream_write(c->stream, buf_peek(&request));
	buf_wipe(&request);
	if (r)
		(void)diag_set(d, 0, 0, "the Jupyter server at %s: %s",
			       c->jupyter->host, err_text(r));
	return r;
}

struct jupyter_call *jupyter_call(struct jupyter *j, const char *method,
				  const char *path, struct span body,
				  jupyter_fn *fn, void *ctx)
{
	struct jupyter_call *c = must_alloc(sizeof(*c));
	struct diag d = { 0 };

	c->jupyter = j;
	c->fn = fn;
	c->ctx = ctx;
	(void)snprintf(c->method, sizeof(c->method), "%s", method);
	buf_init(&c->in, HEAD_MAX + JUPYTER_REPLY_MAX);
	buf_init(&c->body, JUPYTER_REPLY_MAX);
	list_init(&c->link);
	list_push(&j->calls, &c->link);
	timer_init(&c->timeout, j->execd->loop, on_timeout);
	if (send_request(c, path, body, &d)) {
		(void)snprintf(c->why, sizeof(c->why), "%s", d.msg);
		timer_start(&c->timeout, SOON_MS); /* told from the loop */
		return c;
	}
	timer_start(&c->timeout, JUPYTER_CALL_MS);
	stream_set_owner(c->stream, on_stream, c);
	stream_want(c->stream, STREAM_READABLE);
	return c;
}

void jupyter_call_give(struct jupyter_call *c, jupyter_fn *fn, void *ctx)
{
	c->fn = fn;
	c->ctx = ctx;
}

struct jupyter_call *jupyter_call_cancel(struct jupyter_call *c)
{
	if (c)
		call_free(c);
	return NULL;
}

struct jupyter *jupyter_free(struct jupyter *j)
{
	if (!j)
		return NULL;
	list_for_each(it, &j->calls)
		call_free(container_of(it, struct jupyter_call, link));
	free(j);
	return NULL;
}
