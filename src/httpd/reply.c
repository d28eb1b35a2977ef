/* SPDX-License-Identifier: Apache-2.0 */
/* reply.c - answers of handlers, whole
 *
 * A reply is composed into r->out; request_run() sends it. When the client has
 * gone (REQUEST_GONE) or the server was freed, a reply only ends the request.
 */

#include "src/httpd/request.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "src/base/civil.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/io/stream.h"
#include "src/text/json.h"

enum {
	REPLY_OVERHEAD = 4096,
	MESSAGE_MAX = 1024,
	EXTRA_VALUE_MAX = 16 * 1024,
	INTERIM_OVERHEAD = 64,
};

static const struct {
	unsigned status;
	const char *reason;
} reasons[] = {
	{ 101, "Switching Protocols" },
	{ 102, "Processing" },
	{ 103, "Early Hints" },
	{ 200, "OK" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 204, "No Content" },
	{ 206, "Partial Content" },
	{ 301, "Moved Permanently" },
	{ 302, "Found" },
	{ 303, "See Other" },
	{ 304, "Not Modified" },
	{ 307, "Temporary Redirect" },
	{ 308, "Permanent Redirect" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 406, "Not Acceptable" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 410, "Gone" },
	{ 412, "Precondition Failed" },
	{ 413, "Content Too Large" },
	{ 415, "Unsupported Media Type" },
	{ 416, "Range Not Satisfiable" },
	{ 417, "Expectation Failed" },
	{ 422, "Unprocessable Content" },
	{ 426, "Upgrade Required" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" },
	{ 505, "HTTP Version Not Supported" },
	{ 507, "Insufficient Storage" },
};

static const char *reason_of(unsigned status)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Unknown";
}

/* RFC 9110 5.6.7 */
static void date_put(struct buf *out)
{
	static const char days[][4] = { "Sun", "Mon", "Tue", "Wed",
					"Thu", "Fri", "Sat" };
	static const char months[][4] = { "Jan", "Feb", "Mar", "Apr",
					  "May", "Jun", "Jul", "Aug",
					  "Sep", "Oct", "Nov", "Dec" };
	struct civil c;

	civil_from_unix(clock_wall_ms() / 1000, &c);
	(void)!buf_putf(out, "Date: %s, %02u %s %04u %02u:%02u:%02u GMT\r\n",
			days[c.weekday], c.day, months[c.month - 1], c.year,
			c.hour, c.minute, c.second);
}

bool reply_is_head(const struct httpd_request *r)
{
	return span_eq(r->head.method, SPAN("HEAD"));
}

/* The handler's own word on a header of ours. */
static bool extra_has(const struct httpd_request *r, const char *name)
{
	const struct httpd_extra *x;

	for (x = r->extra; x; x = x->next)
		if (span_eq_nocase(x->name, span_str(name)))
			return true;
	return false;
}

static void default_put(struct httpd_request *r, const char *name,
			const char *value)
{
	if (!extra_has(r, name))
		(void)!buf_putf(&r->out, "%s: %s\r\n", name, value);
}

static void extras_put(struct httpd_request *r)
{
	const struct httpd_extra *x;

	for (x = r->extra; x; x = x->next) {
		if (!x->value.ptr ||
		    (r->last && span_eq_nocase(x->name, SPAN("Connection"))))
			continue;
		(void)!buf_put(&r->out, x->name);
		(void)!buf_put(&r->out, SPAN(": "));
		(void)!buf_put(&r->out, x->value);
		(void)!buf_put(&r->out, SPAN("\r\n"));
	}
}

void reply_head_put(struct httpd_request *r, unsigned status, const char *type,
		    size_t len)
{
	struct buf *out = &r->out;

	out->max = buf_len(out) + len + r->extra_bytes + r->reason.len +
		   REPLY_OVERHEAD;
	if (r->reason.ptr)
		(void)!buf_putf(out, "HTTP/1.1 %u %.*s\r\n", status,
				SPAN_FMT(r->reason));
	else
		(void)!buf_putf(out, "HTTP/1.1 %u %s\r\n", status,
				reason_of(status));
	if (!extra_has(r, "Date"))
		date_put(out);
	if (type)
		default_put(r, "Content-Type", type);
	default_put(r, "Cache-Control", "no-store");
	default_put(r, "X-Content-Type-Options", "nosniff");
	default_put(r, "X-Request-ID", r->id);
	extras_put(r);
	if (r->last)
		(void)!buf_put(out, SPAN("Connection: close\r\n"));
}

void reply_put(struct httpd_request *r, unsigned status, const char *type,
	       struct span body)
{
	bool bodiless = status == 204 || status == 304;
	int failed = 0;

	if (r->state == REQUEST_BODY || !r->head.keep_alive || r->end_seen ||
	    (r->httpd && r->httpd->draining))
		r->last = true;
	body_settle(r);
	reply_head_put(r, status, type, body.len);
	if (!bodiless)
		failed |=
			buf_putf(&r->out, "Content-Length: %zu\r\n", body.len);
	failed |= buf_put(&r->out, SPAN("\r\n"));
	if (!bodiless && !reply_is_head(r))
		failed |= buf_put(&r->out, body);
	must(!failed);
	r->state = REQUEST_REPLY;
	body_drop(r);
}

const char *reply_error_type(const struct httpd_request *r)
{
	return r->httpd && r->httpd->ops->text_errors
		       ? "text/plain; charset=utf-8"
		       : "application/json";
}

static void error_put_text(struct httpd_request *r, unsigned status,
			   const char *message)
{
	struct buf body = BUF_INIT(MESSAGE_MAX + REPLY_OVERHEAD);

	must(!buf_putf(&body, "%.*s\n", MESSAGE_MAX, message));
	reply_put(r, status, reply_error_type(r), buf_peek(&body));
	buf_fini(&body);
}

void reply_put_error(struct httpd_request *r, unsigned status, const char *code,
		     const char *message)
{
	struct buf body = BUF_INIT(MESSAGE_MAX * 6 + REPLY_OVERHEAD);
	struct json_out o;

	if (r->httpd && r->httpd->ops->text_errors) {
		error_put_text(r, status, message);
		return;
	}
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
	if (request_let_go(r))
		return;
	must(r->state == REQUEST_HANDLER);
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

	if (request_let_go(r))
		return;
	must(r->state == REQUEST_HANDLER);
	va_start(args, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
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
	struct span copy = arena_dup(&r->arena, span_str(name));
	struct httpd_extra *x = arena_alloc(&r->arena, sizeof(*x));

	if (!header_name_is_valid(span_str(name)) ||
	    (value.ptr && !header_value_is_valid(value)) ||
	    value.len > EXTRA_VALUE_MAX)
		return;
	if (value.ptr)
		value = arena_dup(&r->arena, value);
	if (!x || arena_overflowed(&r->arena))
		return;
	x->name = copy;
	x->value = value;
	*(r->extra ? r->extra_end : &r->extra) = x;
	r->extra_end = &x->next;
	r->extra_bytes += copy.len + value.len + sizeof(": \r\n");
}

void httpd_interim(struct httpd_request *r, unsigned status, struct span lines)
{
	struct buf out CLEANUP(buf_fini) =
		BUF_INIT(lines.len + INTERIM_OVERHEAD);

	must(status > 101 && status < 200);
	if (r->state != REQUEST_HANDLER || !r->head.minor)
		return;
	if (buf_putf(&out, "HTTP/1.1 %u %s\r\n", status, reason_of(status)) ||
	    (lines.len && buf_put(&out, lines)) || buf_put_str(&out, "\r\n"))
		return;
	/* one that is not taken is met again by the reply */
	(void)!stream_write(r->stream, buf_peek(&out));
}

void httpd_set_reason(struct httpd_request *r, struct span reason)
{
	if (header_value_is_valid(reason) && reason.len <= EXTRA_VALUE_MAX)
		r->reason = arena_dup(&r->arena, reason);
}
