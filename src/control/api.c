/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - the table of routes, who may use them, and common answers */

#include "src/control/api.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/control/control.h"

static const struct httpd_route routes[] = {
#define ROUTE(method, path, auth, handler) \
	{ method, path, HTTPD_AUTH_##auth, handler },
#include "src/control/routes.def"
#undef ROUTE
};

/* A unix socket tells who is there: root and our own user may. Over TCP a
 * token says so. */
static unsigned api_authorise(void *ctx, const struct httpd_request *r)
{
	const struct httpd_peer *peer = httpd_peer(r);
	struct control *c = ctx;
	struct span value;

	control_busy(c);
	if (peer->is_unix)
		return !peer->uid || peer->uid == geteuid() ? 0 : 403;
	value = httpd_header(r, SPAN("Authorization"));
	if (value.len <= 7 ||
	    !span_eq_nocase(span_of(value.ptr, 7), SPAN("Bearer ")))
		return 401;
	value = span_trim(span_from(value, 7));
	return tokens_have(&c->tokens, value) ? 0 : 401;
}

int api_new(struct control *c, struct httpd **ret)
{
	static const struct httpd_ops ops = { .authorise = api_authorise };

	return httpd_new(c->loop, routes, ARRAY_LEN(routes), &ops, c, ret);
}

bool api_ready(const struct control *c, struct httpd_request *r)
{
	if (c->ever_loaded)
		return true;
	httpd_reply_error(r, 503, "NOT_READY", "the vault was not read yet");
	return false;
}

void api_invalid(struct httpd_request *r, const struct diag *d)
{
	char text[sizeof(*d) + 64];

	httpd_reply_error(r, 400, "INVALID", "%s",
			  diag_text(d, text, sizeof(text)));
}

void api_not_found(struct httpd_request *r, const char *what)
{
	httpd_reply_error(r, 404, "NOT_FOUND", "there is no such %s", what);
}

void api_reply_buf(struct httpd_request *r, unsigned status, int error,
		   struct buf *out)
{
	if (error)
		httpd_reply_error(r, 500, "TOO_LARGE",
				  "the answer is larger than %d bytes",
				  API_REPLY_MAX);
	else
		httpd_reply_json(r, status, buf_peek(out));
	buf_wipe(out);
}

bool api_expected_revision(struct httpd_request *r, int64_t *ret)
{
	struct span text = httpd_query(r, "expectedRevision");
	uint64_t value;

	*ret = -1;
	if (!text.ptr)
		return true;
	if (!span_parse_u64(text, &value) || value > INT64_MAX) {
		httpd_reply_error(r, 400, "INVALID",
				  "expectedRevision: expected a whole number");
		return false;
	}
	*ret = (int64_t)value;
	return true;
}

enum change_step api_refuse(struct refusal *no, unsigned status,
			    const char *code, const char *fmt, ...)
{
	va_list args;

	no->status = status;
	no->code = code;
	va_start(args, fmt);
	(void)vsnprintf(no->diag.msg, sizeof(no->diag.msg), fmt, args);
	va_end(args);
	return CHANGE_REFUSE;
}
