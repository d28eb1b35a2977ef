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
#include "src/execd/code/jupyter/reply.h"
#include "src/execd/code/jupyter/server.h"
#include "src/execd/execd.h"
#include "src/io/loop.h"
#include "src/io/stream.h"

enum {
	REQUEST_MAX = 64 * 1024,
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
	struct reply reply;
};

static void call_free(struct jupyter_call *c)
{
	list_remove(&c->link);
	timer_stop(&c->timeout);
	c->stream = stream_free(c->stream);
	reply_fini(&c->reply);
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

static void on_stream(struct stream *s, void *ctx, unsigned events)
{
	struct jupyter_call *c = ctx;
	enum reply_progress p = REPLY_MORE;
	ssize_t n = 1;
	char *at;

	(void)events;
	while (p == REPLY_MORE && n > 0) {
		at = reply_room(&c->reply);
		n = at ? stream_read(s, at, REPLY_READ) : 0;
		if (n == STREAM_AGAIN)
			return;
		if (!at)
			p = REPLY_BAD;
		else if (n >= 0)
			p = reply_take(&c->reply, (size_t)n);
	}
	if (p == REPLY_DONE)
		call_finish(c, c->reply.status, buf_peek(&c->reply.body));
	else if (p == REPLY_BAD)
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
	reply_init(&c->reply, c->method);
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
