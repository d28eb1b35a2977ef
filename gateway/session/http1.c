/* SPDX-License-Identifier: Apache-2.0 */
/* http1.c - read request heads, one exchange at a time, in order
 *
 * Pipelined requests wait in s->in, unread beyond one head's worth, until the
 * exchange before them is done: answers cannot overtake each other.
 */

#include "gateway/session/http1.h"

#include "gateway/session/exchange.h"
#include "gateway/session/session.h"
#include "gateway/worker.h"
#include "src/base/err.h"
#include "src/io/stream.h"
#include "src/role/config.h"

enum { HEAD_READ_BYTES = 16 * 1024 };

static void http1_refuse_head(struct session *s, enum h1_error error)
{
	bool large = error == H1_E_TOO_LARGE;

	worker_counted(s->worker, malformed);
	exchange_refuse(s, AUDIT_REASON_MALFORMED, large ? 431 : 400,
			h1_error_text(error));
}

/* Bytes of a head into s->in. False: nothing came, or the session ended. */
static bool http1_read(struct session *s)
{
	char *scratch = s->worker->scratch;
	ssize_t n;

	n = stream_read(s->client, scratch, HEAD_READ_BYTES);
	if (n == STREAM_AGAIN) {
		if (!buf_len(&s->in))
			buf_fini(&s->in); /* idle connections hold nothing */
		stream_want(s->client, STREAM_READABLE);
		return false;
	}
	if (n < 0) {
		session_free(s);
		return false;
	}
	if (n == 0) {
		session_finish(s);
		return false;
	}
	if (!buf_len(&s->in))
		session_deadline(s, s->worker->config->head_ms);
	if (buf_put(&s->in, span_of(scratch, (size_t)n))) {
		http1_refuse_head(s, H1_E_TOO_LARGE);
		return false;
	}
	return true;
}

/* Reads until a head is whole, then begins its exchange. */
static void http1_head(struct session *s)
{
	uint32_t limit = s->worker->config->head_bytes;
	struct span head;
	int len;

	for (;;) {
		len = h1_scan(&s->scan, buf_peek(&s->in), limit);
		if (len)
			break;
		if (!http1_read(s))
			return; /* s may be gone */
	}
	if (len < 0) {
		http1_refuse_head(s, (enum h1_error) - len);
		return;
	}
	s->scan = (struct h1_scan){ 0 };
	head = span_of(buf_peek(&s->in).ptr, (size_t)len);
	exchange_begin(s, head);
}

/* Heads in turn. An exchange that ends before exchange_begin() returns sets
 * s->again instead of calling back in here, so that a thousand pipelined
 * requests need no deeper stack than one; `gone` tells when the session ended
 * below us. */
static void http1_heads(struct session *s)
{
	bool gone = false;

	s->gone = &gone;
	do {
		s->again = false;
		stream_want(s->client, 0);
		s->scan = (struct h1_scan){ 0 };
		session_deadline(s, buf_len(&s->in)
					    ? s->worker->config->head_ms
					    : s->worker->config->idle_ms);
		http1_head(s);
		if (gone)
			return;
	} while (s->again);
	s->gone = NULL;
}

/* More bytes of a head that was begun, or of the next one. */
static void http1_more(struct session *s)
{
	bool gone = false;

	s->gone = &gone;
	s->again = false;
	http1_head(s);
	if (gone)
		return;
	s->gone = NULL;
	if (s->again)
		http1_heads(s);
}

void http1_start(struct session *s)
{
	http1_heads(s);
}

void http1_next(struct session *s, bool keep)
{
	if (!keep || s->worker->draining || s->sandbox->gone) {
		session_finish(s);
		return;
	}
	if (s->gone)
		s->again = true;
	else
		http1_heads(s);
}

void http1_on_client(struct session *s, unsigned events)
{
	if (s->exchange)
		exchange_on_client(s->exchange, events);
	else
		http1_more(s);
}

void http1_timeout(struct session *s)
{
	if (s->exchange) {
		exchange_timeout(s->exchange);
		return;
	}
	if (buf_len(&s->in)) /* a head was begun and not finished */
		exchange_refuse(s, AUDIT_REASON_CLIENT_TIMEOUT, 408,
				"the request head was not complete in time");
	else
		session_finish(s);
}

void http1_cut(struct session *s)
{
	if (s->exchange)
		exchange_cut(s->exchange);
	else
		session_finish(s);
}

void http1_drain(struct session *s)
{
	if (!s->exchange)
		session_finish(s);
	/* else http1_next() sees that the worker drains */
}

void http1_abandon(struct session *s)
{
	if (s->exchange)
		exchange_free(s->exchange);
	s->exchange = NULL;
}
