/* SPDX-License-Identifier: Apache-2.0 */
/* reply.c - answers of handlers: whole, or streamed piece by piece
 *
 * A reply is composed into r->out; request_run() sends it. When the client has
 * gone (REQUEST_GONE) or the server was freed, a reply only ends the request.
 */

#include "src/httpd/request.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/text/json.h"

enum { REPLY_OVERHEAD = 4096, MESSAGE_MAX = 1024 };

static const struct {
	unsigned status;
	const char *reason;
} reasons[] = {
	{ 200, "OK" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 204, "No Content" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 412, "Precondition Failed" },
	{ 413, "Content Too Large" },
	{ 415, "Unsupported Media Type" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 503, "Service Unavailable" },
	{ 505, "HTTP Version Not Supported" },
};

static const char *reason_of(unsigned status)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Unknown";
}

/* RFC 9110 5.6.7, in C's locale. */
static void date_put(struct buf *out)
{
	time_t now = (time_t)(clock_wall_ms() / 1000);
	char text[64];
	struct tm tm;

	if (!gmtime_r(&now, &tm) ||
	    !strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm))
		return;
	(void)!buf_putf(out, "Date: %s\r\n", text);
}

/* The status line and every header but those of the body. .out has room. */
static void head_put(struct httpd_request *r, unsigned status, const char *type)
{
	struct buf *out = &r->out;
	unsigned i;

	(void)!buf_putf(out, "HTTP/1.1 %u %s\r\n", status, reason_of(status));
	date_put(out);
	if (type)
		(void)!buf_putf(out, "Content-Type: %s\r\n", type);
	(void)!buf_putf(out,
			"Cache-Control: no-store\r\n"
			"X-Content-Type-Options: nosniff\r\n"
			"X-Request-ID: %s\r\n",
			r->id);
	for (i = 0; i < r->extra_count; i++)
		(void)!buf_putf(out, "%s: %.*s\r\n", r->extra[i].name,
				SPAN_FMT(r->extra[i].value));
	if (r->last)
		(void)!buf_put(out, SPAN("Connection: close\r\n"));
}

void reply_put(struct httpd_request *r, unsigned status, const char *type,
	       struct span body)
{
	bool bodiless = status == 204;
	int failed = 0;

	if (r->state == REQUEST_BODY || !r->head.keep_alive || r->end_seen ||
	    (r->httpd && r->httpd->draining))
		r->last = true;
	r->out.max = buf_len(&r->out) + body.len + REPLY_OVERHEAD;
	head_put(r, status, type);
	if (!bodiless)
		failed |=
			buf_putf(&r->out, "Content-Length: %zu\r\n", body.len);
	failed |= buf_put(&r->out, SPAN("\r\n"));
	if (!bodiless && !span_eq(r->head.method, SPAN("HEAD")))
		failed |= buf_put(&r->out, body);
	must(!failed);
	r->state = REQUEST_REPLY;
}

void reply_put_error(struct httpd_request *r, unsigned status, const char *code,
		     const char *message)
{
	struct buf body = BUF_INIT(MESSAGE_MAX * 6 + REPLY_OVERHEAD);
	struct json_out o;

	json_start(&o, &body);
	json_open_object(&o, NULL);
	json_put_str(&o, "code", code);
	json_put_str(&o, "message", message);
	json_close(&o);
	must(!json_done(&o));
	reply_put(r, status, "application/json", buf_peek(&body));
	buf_fini(&body);
}

void httpd_reply(struct httpd_request *r, unsigned status, const char *type,
		 struct span body)
{
	must(r->state == REQUEST_HANDLER || r->state == REQUEST_GONE);

	if (r->state == REQUEST_HANDLER)
		reply_put(r, status, type, body);
	request_run(r);
	/* r may be freed */
}

void httpd_reply_json(struct httpd_request *r, unsigned status,
		      struct span body)
{
	httpd_reply(r, status, "application/json", body);
}

void httpd_reply_error(struct httpd_request *r, unsigned status,
		       const char *code, const char *fmt, ...)
{
	char message[MESSAGE_MAX];
	va_list args;

	must(r->state == REQUEST_HANDLER || r->state == REQUEST_GONE);

	va_start(args, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
	if (r->state == REQUEST_HANDLER)
		reply_put_error(r, status, code, message);
	request_run(r);
	/* r may be freed */
}

void httpd_reply_empty(struct httpd_request *r)
{
	httpd_reply(r, 204, NULL, SPAN(""));
}

void httpd_reply_ok(struct httpd_request *r)
{
	httpd_reply(r, 200, NULL, SPAN(""));
}

void httpd_set_header(struct httpd_request *r, const char *name,
		      struct span value)
{
	if (r->extra_count == HTTPD_HEADERS_EXTRA)
		return;
	value = arena_dup(&r->arena, value);
	if (!value.ptr || !header_value_is_valid(value) || value.len > 512)
		return;
	r->extra[r->extra_count++] = (struct httpd_extra){ name, value };
}

/* -- streamed ------------------------------------------------------------- */

void httpd_stream_start(struct httpd_request *r, unsigned status,
			const char *type,
			void (*gone)(void *user, struct httpd_request *r))
{
	must(r->state == REQUEST_HANDLER || r->state == REQUEST_GONE);

	if (r->state == REQUEST_GONE)
		return; /* the first write says so */
	r->gone = gone;
	r->chunks = r->head.minor >= 1;
	r->last = !r->chunks || !r->head.keep_alive || r->end_seen;
	r->out.max = buf_len(&r->out) + HTTPD_STREAM_MAX + REPLY_OVERHEAD;
	head_put(r, status, type);
	must(!buf_put_str(&r->out, r->chunks ? "Transfer-Encoding: chunked\r\n"
					       "\r\n"
					     : "\r\n"));
	r->state = REQUEST_STREAM;
	request_run(r);
}

int httpd_stream_write(struct httpd_request *r, struct span bytes)
{
	char head[H1_CHUNK_HEAD_SIZE];
	size_t head_len;

	if (r->state == REQUEST_GONE)
		return -EPIPE;
	must(r->state == REQUEST_STREAM);
	if (!bytes.len || span_eq(r->head.method, SPAN("HEAD")))
		return 0;
	if (buf_len(&r->out) + bytes.len > HTTPD_STREAM_MAX)
		return -EAGAIN;

	head_len = r->chunks ? h1_chunk_head(bytes.len, head) : 0;
	must(!buf_put(&r->out, span_of(head, head_len)));
	must(!buf_put(&r->out, bytes));
	if (r->chunks)
		must(!buf_put(&r->out, SPAN("\r\n")));
	request_run(r);
	return r->state == REQUEST_GONE ? -EPIPE : 0;
}

void httpd_stream_end(struct httpd_request *r)
{
	must(r->state == REQUEST_STREAM || r->state == REQUEST_GONE);

	if (r->state == REQUEST_STREAM) {
		if (r->chunks && !span_eq(r->head.method, SPAN("HEAD")))
			must(!buf_put(&r->out, SPAN("0\r\n\r\n")));
		r->gone = NULL;
		r->state = REQUEST_REPLY;
	}
	request_run(r);
	/* r may be freed */
}
