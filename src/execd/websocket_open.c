/* SPDX-License-Identifier: Apache-2.0 */
/* websocket_open.c - the opening handshakes (RFC 6455 4), server and client
 *
 * The server's is one reply. The client writes its request before the
 * connection is there (the stream queues it), gathers the head of the reply
 * and checks it as 4.1 demands; what came behind the head are frames already,
 * and goes back into the stream. Extensions and subprotocols are neither asked
 * for nor agreed to.
 */

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

#include "src/base/base64.h"
#include "src/base/err.h"
#include "src/execd/answer.h"
#include "src/execd/websocket_inside.h"
#include "src/httpd/httpd.h"
#include "src/wire/header.h"

enum {
	VERSION = 13,
	REQUEST_MAX = 32 * 1024,
	REPLY_HEAD_MAX = 16 * 1024,
	KEY_BYTES = 16,
};

/* -- server ---------------------------------------------------------------- */

static bool websocket_is_asked(const struct httpd_request *r)
{
	const struct h1_request *head = httpd_head(r);

	return span_eq(head->method, SPAN("GET")) && head->minor == 1 &&
	       head->upgrade &&
	       headers_have_token(&head->headers, HEADER_UPGRADE,
				  SPAN("websocket"));
}

bool websocket_check(struct httpd_request *r)
{
	const struct span key = SPAN("Sec-WebSocket-Key");
	const struct span version = SPAN("Sec-WebSocket-Version");
	char accept[WS_ACCEPT_SIZE];

	if (!websocket_is_asked(r)) {
		httpd_set_header(r, "Upgrade", SPAN("websocket"));
		answer_error(r, 426, ANSWER_INVALID_REQUEST_BODY,
			     "this path is a WebSocket: \"Connection: "
			     "Upgrade\" and \"Upgrade: websocket\" are "
			     "needed");
		return false;
	}
	if (!span_eq(httpd_header(r, version), SPAN("13"))) {
		httpd_set_header(r, "Sec-WebSocket-Version", SPAN("13"));
		answer_error(r, 426, ANSWER_INVALID_REQUEST_BODY,
			     "Sec-WebSocket-Version is not %d", VERSION);
		return false;
	}
	if (!ws_accept(httpd_header(r, key), accept)) {
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY,
			     "Sec-WebSocket-Key is not 16 bytes of base64");
		return false;
	}
	return true;
}

int websocket_accept(struct httpd_request *r,
		     const struct websocket_limits *limits,
		     const struct websocket_ops *ops, void *ctx,
		     struct websocket **ret)
{
	char accept[WS_ACCEPT_SIZE], head[256];
	struct stream *s;
	int len;

	must(ws_accept(httpd_header(r, SPAN("Sec-WebSocket-Key")), accept));
	s = httpd_take_stream(r); /* r is over */
	if (!s)
		return -EPIPE;
	len = snprintf(head, sizeof(head),
		       "HTTP/1.1 101 Switching Protocols\r\n"
		       "Upgrade: websocket\r\n"
		       "Connection: Upgrade\r\n"
		       "Sec-WebSocket-Accept: %.*s\r\n\r\n",
		       WS_ACCEPT_SIZE, accept);
	must(len > 0 && (size_t)len < sizeof(head));
	*ret = websocket_new(s, true, limits, ops, ctx);
	websocket_set_open(*ret);
	if (stream_write(s, span_of(head, (size_t)len)))
		websocket_set_broken(*ret);
	return 0;
}

/* -- client: the request --------------------------------------------------- */

/* May it stand in a request line, or in a Host field? */
static bool websocket_is_word(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.ptr[i] <= ' ' || s.ptr[i] == 0x7f)
			return false;
	return s.len;
}

static bool websocket_are_lines(struct span lines)
{
	struct span line, name;

	if (lines.len && !span_ends(lines, SPAN("\r\n")))
		return false;
	while (lines.len) {
		line = span_cut(&lines, '\n');
		if (!span_ends(line, SPAN("\r")))
			return false;
		line.len--;
		if (span_find(line, ':') == line.len)
			return false;
		name = span_cut(&line, ':');
		if (!header_name_is_valid(name) || !header_value_is_valid(line))
			return false;
	}
	return true;
}

static int websocket_put_request(struct buf *out, struct websocket *w,
				 const struct websocket_target *t)
{
	char key[WS_KEY_SIZE];
	uint8_t nonce[KEY_BYTES];

	must(getrandom(nonce, sizeof(nonce), 0) == sizeof(nonce));
	base64_encode(span_of(nonce, sizeof(nonce)), key);
	must(ws_accept(span_of(key, sizeof(key)), w->accept));
	return buf_putf(out,
			"GET %.*s HTTP/1.1\r\n"
			"Host: %.*s\r\n"
			"Upgrade: websocket\r\n"
			"Connection: Upgrade\r\n"
			"Sec-WebSocket-Key: %.*s\r\n"
			"Sec-WebSocket-Version: %d\r\n"
			"%.*s\r\n",
			SPAN_FMT(t->path), SPAN_FMT(t->host), WS_KEY_SIZE, key,
			VERSION, (int)t->headers.len,
			t->headers.ptr ? t->headers.ptr : "");
}

int websocket_connect(struct stream *s, const struct websocket_target *target,
		      const struct websocket_limits *limits,
		      const struct websocket_ops *ops, void *ctx,
		      struct websocket **ret)
{
	struct buf request = BUF_INIT(REQUEST_MAX);
	struct websocket *w;
	int r;

	if (!websocket_is_word(target->host) ||
	    !websocket_is_word(target->path) ||
	    !websocket_are_lines(target->headers)) {
		(void)stream_free(s);
		return -EINVAL;
	}
	w = websocket_new(s, false, limits, ops, ctx);
	r = websocket_put_request(&request, w, target);
	if (!r)
		r = stream_write(s, buf_peek(&request));
	buf_wipe(&request); /* a credential may have been in it */
	if (r) {
		(void)websocket_close(w, WEBSOCKET_ABNORMAL, "");
		return r;
	}
	timer_start(&w->silence, WEBSOCKET_OPEN_MS);
	*ret = w;
	return 0;
}

/* -- client: the reply ----------------------------------------------------- */

/* NULL: it agrees; else why not. */
static const char *websocket_reply_error(const struct websocket *w,
					 const struct h1_response *head)
{
	const struct headers *h = &head->headers;
	const struct header *accept;

	if (!headers_have_token(h, HEADER_UPGRADE, SPAN("websocket")) ||
	    !headers_have_token(h, HEADER_CONNECTION, SPAN("upgrade")))
		return "the server switched to another protocol";
	accept = headers_find_name(h, SPAN("Sec-WebSocket-Accept"));
	if (!accept ||
	    !span_eq(accept->value, span_of(w->accept, sizeof(w->accept))))
		return "the server's Sec-WebSocket-Accept is wrong";
	if (headers_find_name(h, SPAN("Sec-WebSocket-Extensions")) ||
	    headers_find_name(h, SPAN("Sec-WebSocket-Protocol")))
		return "the server chose an extension nobody asked for";
	return NULL;
}

/* The head is whole: the first `len` bytes of .gathered. */
static void websocket_on_reply(struct websocket *w, size_t len)
{
	const struct span all = buf_peek(&w->gathered);
	struct h1_response head;
	const char *error;
	char why[64];

	if (h1_parse_response(span_of(all.ptr, len), SPAN("GET"), &head)) {
		websocket_lose(w, "the server's reply is not HTTP");
		return;
	}
	if (head.status != 101) {
		(void)snprintf(why, sizeof(why), "the server answered %u",
			       head.status);
		websocket_lose(w, why);
		return;
	}
	error = websocket_reply_error(w, &head);
	if (!error && stream_unread(w->stream, span_from(all, len)))
		error = "the server sent too much behind its reply";
	if (error) {
		websocket_lose(w, error);
		return;
	}
	buf_fini(&w->gathered);
	buf_init(&w->gathered, w->limits.message_max);
	websocket_set_open(w);
	w->ops->open(w->ctx);
}

static void websocket_read_reply(struct websocket *w)
{
	char *room;
	ssize_t n;
	int len;

	w->gathered.max = REPLY_HEAD_MAX;
	if (buf_reserve(&w->gathered, REPLY_HEAD_MAX - buf_len(&w->gathered),
			&room)) {
		websocket_lose(w, "the server's reply has no end");
		return;
	}
	n = stream_read(w->stream, room,
			REPLY_HEAD_MAX - buf_len(&w->gathered));
	if (n == STREAM_AGAIN)
		return;
	if (n <= 0) {
		websocket_lose(w, n ? err_text((int)n)
				    : "the server ended without a reply");
		return;
	}
	buf_commit(&w->gathered, (size_t)n);
	len = h1_scan(&w->scan, buf_peek(&w->gathered), REPLY_HEAD_MAX);
	if (len < 0 || (!len && buf_len(&w->gathered) == REPLY_HEAD_MAX))
		websocket_lose(w, "the server's reply is not HTTP");
	else if (len)
		websocket_on_reply(w, (size_t)len);
}

void websocket_open_step(struct websocket *w, unsigned events)
{
	if (events & STREAM_READABLE)
		websocket_read_reply(w);
}
