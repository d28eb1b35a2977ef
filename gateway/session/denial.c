/* SPDX-License-Identifier: Apache-2.0 */
/* denial.c - write a refusal as an HTTP response */

#include "gateway/session/denial.h"

#include <stdio.h>

#include "gateway/audit/audit.h"
#include "gateway/session/leg.h"
#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/text/json.h"

/* However long what the sandbox sent is, and were every byte of it escaped, the
 * body fits. */
enum { TEXT_BYTES = 256, DETAIL_BYTES = 512 };

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

static void put_known(struct json_out *o, const char *name, struct span text)
{
	if (text.len)
		json_put_text(o, name,
			      span_of(text.ptr, MIN(text.len, TEXT_BYTES)));
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

static int body_emit(const struct audit *a, const char *reason,
		     struct buf *body)
{
	struct json_out o;

	json_start(&o, body);
	json_open_object(&o, NULL);
	json_put_str(&o, "error", a->status >= 500 ? "failed" : "denied");
	json_put_str(&o, "reason", reason);
	json_put_str(&o, "message", audit_reason_text(a->reason));
	if (a->detail.len)
		json_put_text(&o, "detail",
			      span_of(a->detail.ptr,
				      MIN(a->detail.len, DETAIL_BYTES)));
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
	return json_done(&o);
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

int denial_compose(const struct audit *a, struct buf *body,
		   char length_text[DENIAL_LENGTH_SIZE], struct response *ret)
{
	struct span reason = reason_span(a->reason);
	int r;

	r = body_emit(a, reason.ptr, body);
	if (!r)
		r = buf_put_str(body, "\n");
	if (r)
		return r;
	(void)snprintf(length_text, DENIAL_LENGTH_SIZE, "%zu", buf_len(body));
	ret->status = a->status;
	ret->reason = span_str(status_text(a->status));
	ret->content = CONTENT_LENGTH;
	ret->length = buf_len(body);
	ret->headers.count = 0;
	put_header(ret, HEADER_CONTENT_TYPE, SPAN("Content-Type"),
		   SPAN("application/json"));
	put_header(ret, HEADER_CONTENT_LENGTH, SPAN("Content-Length"),
		   span_str(length_text));
	put_header(ret, HEADER_CACHE_CONTROL, SPAN("Cache-Control"),
		   SPAN("no-store"));
	put_header(ret, HEADER_OTHER, SPAN("Sallyport-Denied"), reason);
	return 0;
}
