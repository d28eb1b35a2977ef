/* SPDX-License-Identifier: Apache-2.0 */
/* denial.c - write a refusal as an HTTP response */

#include "gateway/session/denial.h"

#include <errno.h>
#include <stdio.h>

#include "gateway/audit/audit.h"
#include "gateway/session/leg.h"
#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/text/json.h"

/* However long what the sandbox sent is, and were every byte of it escaped, the
 * body fits. */
enum { TEXT_BYTES = 256, DETAIL_BYTES = 512, SENTENCE_BYTES = 2048 };

static const struct {
	uint16_t status;
	const char *text;
} statuses[] = {
	{ 400, "Bad Request" },
	{ 403, "Forbidden" },
	{ 405, "Method Not Allowed" },
	{ 408, "Request Timeout" },
	{ 421, "Misdirected Request" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 502, "Bad Gateway" },
	{ 504, "Gateway Timeout" },
};

static const char *status_text(uint16_t status)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(statuses); i++)
		if (statuses[i].status == status)
			return statuses[i].text;
	return "Refused";
}

static void lower(const char *name, char *dst, size_t size)
{
	size_t i;

	for (i = 0; name[i] && i + 1 < size; i++)
		dst[i] = span_lower_char(name[i]);
	dst[i] = '\0';
}

static struct span cut(struct span text, size_t most)
{
	return span_of(text.ptr, MIN(text.len, most));
}

static void put_known(struct json_out *o, const char *name, struct span text)
{
	if (text.len)
		json_put_text(o, name, cut(text, TEXT_BYTES));
}

/* What an agent, or the person behind it, can do about it. */
static const char *hint(const struct audit *a)
{
	switch (a->reason) {
	case AUDIT_REASON_POLICY:
		return "ask the operator of this sandbox to allow this host, "
		       "port, method or path in its policy";
	case AUDIT_REASON_MISDIRECTED:
		return "open a connection of its own for each host";
	case AUDIT_REASON_AMBIGUOUS_BINDING:
		return "ask the operator to make one of the bindings narrower";
	default:
		return NULL;
	}
}

/* "GET api.example.com:443 was refused: ...": one sentence that says what, and
 * which rule or what else was in the way. A '?' is what cannot be printed: it
 * quotes what the sandbox sent. */
static void sentence_make(const struct audit *a, char dst[SENTENCE_BYTES])
{
	const char *end = a->status >= 500 ? "failed" : "was refused";
	struct span method = cut(a->method, TEXT_BYTES);
	struct span host = cut(a->host, TEXT_BYTES);
	struct span detail = cut(a->detail, DETAIL_BYTES);
	const char *why = audit_reason_text(a->reason);
	char port[8] = "";
	size_t i;

	if (a->reason == AUDIT_REASON_POLICY && detail.len)
		why = ""; /* the detail begins with "denied" */
	if (host.len && a->port)
		(void)snprintf(port, sizeof(port), ":%u", a->port);
	if (!method.len && !host.len)
		method = SPAN("the request");
	(void)snprintf(dst, SENTENCE_BYTES, "%.*s%s%.*s%s %s: %s%s%.*s",
		       SPAN_FMT(method), method.len && host.len ? " " : "",
		       SPAN_FMT(host), port, end, why,
		       *why && detail.len ? ", " : "", SPAN_FMT(detail));
	for (i = 0; dst[i]; i++)
		if (dst[i] < ' ' || dst[i] > '~')
			dst[i] = '?';
}

static int text_emit(const struct audit *a, const char *sentence,
		     struct buf *body)
{
	int r = buf_putf(body, "%s\n", sentence);

	if (!r && hint(a))
		r = buf_putf(body, "%s\n", hint(a));
	return r;
}

static int object_emit(const struct audit *a, const char *reason,
		       const char *sentence, struct buf *body)
{
	struct json_out o;

	json_start(&o, body);
	json_open_object(&o, NULL);
	json_put_str(&o, "error", a->status >= 500 ? "failed" : "denied");
	json_put_str(&o, "reason", reason);
	json_put_str(&o, "message", sentence);
	if (a->detail.len)
		json_put_text(&o, "detail", cut(a->detail, DETAIL_BYTES));
	put_known(&o, "sandbox", a->sandbox);
	put_known(&o, "host", a->host);
	json_put_u64(&o, "port", a->port);
	put_known(&o, "method", a->method);
	put_known(&o, "policy", a->policy);
	put_known(&o, "rule", a->rule);
	put_known(&o, "binding", a->binding);
	if (hint(a))
		json_put_str(&o, "hint", hint(a));
	json_close(&o);
	if (json_done(&o))
		return -ENOBUFS;
	return buf_put_str(body, "\n");
}

static bool mentions(struct span field, struct span type)
{
	size_t i;

	for (i = 0; i + type.len <= field.len; i++)
		if (span_eq_nocase(span_of(field.ptr + i, type.len), type))
			return true;
	return false;
}

/* JSON, but for who asks for text and says nothing of JSON: browsers, and
 * people who write the field by hand. Weights do not matter. */
static bool wants_text(struct span accept)
{
	if (mentions(accept, SPAN("application/json")) ||
	    mentions(accept, SPAN("+json")))
		return false;
	return mentions(accept, SPAN("text/plain")) ||
	       mentions(accept, SPAN("text/html"));
}

static void put_header(struct response *r, enum header_id id, struct span name,
		       struct span value)
{
	r->headers.items[r->headers.count++] = (struct header){
		.name = name,
		.value = value,
		.id = id,
	};
}

/* Names of reasons in lower case, for the header: static storage. */
static struct span reason_span(enum audit_reason reason)
{
	static _Thread_local char text[48];

	lower(audit_reason_name(reason), text, sizeof(text));
	return span_str(text);
}

int denial_compose(const struct audit *a, struct span accept, struct buf *body,
		   char length_text[DENIAL_LENGTH_SIZE], struct response *ret)
{
	struct span reason = reason_span(a->reason);
	char sentence[SENTENCE_BYTES];
	bool text = wants_text(accept);
	int r;

	sentence_make(a, sentence);
	r = text ? text_emit(a, sentence, body)
		 : object_emit(a, reason.ptr, sentence, body);
	if (r)
		return r;
	(void)snprintf(length_text, DENIAL_LENGTH_SIZE, "%zu", buf_len(body));
	ret->status = a->status;
	ret->reason = span_str(status_text(a->status));
	ret->content = CONTENT_LENGTH;
	ret->length = buf_len(body);
	ret->headers.count = 0;
	put_header(ret, HEADER_CONTENT_TYPE, SPAN("Content-Type"),
		   text ? SPAN("text/plain; charset=utf-8")
			: SPAN("application/json"));
	put_header(ret, HEADER_CONTENT_LENGTH, SPAN("Content-Length"),
		   span_str(length_text));
	put_header(ret, HEADER_CACHE_CONTROL, SPAN("Cache-Control"),
		   SPAN("no-store"));
	put_header(ret, HEADER_OTHER, SPAN("Sallyport-Denied"), reason);
	return 0;
}
