/* SPDX-License-Identifier: Apache-2.0 */
/* denial.c - write a refusal as an HTTP response */

#include "gateway/session/denial.h"

#include "gateway/audit/audit.h"
#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/text/json.h"

/* However long what the sandbox sent is, and were every byte of it escaped, the
 * body fits. */
enum { BODY_BYTES = 14 * 1024, TEXT_BYTES = 256, DETAIL_BYTES = 512 };

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

int denial_emit(const struct audit *a, bool close, bool head_only,
		struct buf *out)
{
	CLEANUP(buf_fini) struct buf body = BUF_INIT(BODY_BYTES);
	char reason[48];
	int r;

	lower(audit_reason_name(a->reason), reason, sizeof(reason));
	r = body_emit(a, reason, &body);
	if (!r)
		r = buf_put_str(&body, "\n");
	if (r)
		return r;
	r = buf_putf(out,
		     "HTTP/1.1 %u %s\r\n"
		     "Content-Type: application/json\r\n"
		     "Content-Length: %zu\r\n"
		     "Cache-Control: no-store\r\n"
		     "Sallyport-Denied: %s\r\n"
		     "%s\r\n",
		     a->status, status_text(a->status), buf_len(&body), reason,
		     close ? "Connection: close\r\n" : "");
	if (!r && !head_only)
		r = buf_put(out, buf_peek(&body));
	return r;
}
