/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - how this daemon says yes and no (contract 5.1) */

#include "src/execd/answer.h"

#include <stdarg.h>
#include <stdio.h>

#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/execd/body.h"
#include "src/httpd/httpd.h"
#include "src/text/json.h"

enum { SENTENCE_MAX = 1024 };

static const char *const code_names[ANSWER_CODE_NUM] = {
	[ANSWER_INVALID_REQUEST_BODY] = "INVALID_REQUEST_BODY",
	[ANSWER_MISSING_QUERY] = "MISSING_QUERY",
	[ANSWER_RUNTIME_ERROR] = "RUNTIME_ERROR",
	[ANSWER_INVALID_FILE] = "INVALID_FILE",
	[ANSWER_INVALID_FILE_CONTENT] = "INVALID_FILE_CONTENT",
	[ANSWER_INVALID_FILE_METADATA] = "INVALID_FILE_METADATA",
	[ANSWER_FILE_NOT_FOUND] = "FILE_NOT_FOUND",
	[ANSWER_UNKNOWN] = "UNKNOWN",
	[ANSWER_CONTEXT_NOT_FOUND] = "CONTEXT_NOT_FOUND",
	[ANSWER_NOT_SUPPORTED] = "NOT_SUPPORTED",
	[ANSWER_SESSION_NOT_FOUND] = "SESSION_NOT_FOUND",
	[ANSWER_SERVICE_UNAVAILABLE] = "SERVICE_UNAVAILABLE",
};

void answer_ok(struct httpd_request *r)
{
	httpd_reply_ok(r);
}

void answer_json(struct httpd_request *r, unsigned status, struct buf *json)
{
	httpd_reply_json(r, status, buf_peek(json));
}

void answer_error(struct httpd_request *r, unsigned status,
		  enum answer_code code, const char *fmt, ...)
{
	char sentence[SENTENCE_MAX];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(sentence, sizeof(sentence), fmt, args);
	va_end(args);
	httpd_reply_error(r, status, code_names[code], "%s", sentence);
}

/* The body, which must be of the kind. NULL: answered. */
static struct json *body_parse(struct httpd_request *r, struct span text,
			       enum json_kind kind)
{
	char why[sizeof(struct diag) + 64];
	struct json *j = NULL;
	struct diag d = { 0 };

	if (!text.len) {
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY,
			     "the body is empty, expected JSON: %s",
			     json_kind_name(kind));
		return NULL;
	}
	if (body_take(r, text, &j, &d) || json_want(j, kind, "body", &d)) {
		j = json_free(j);
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY, "%s",
			     diag_text(&d, why, sizeof(why)));
	}
	return j;
}

struct json *answer_body(struct httpd_request *r, bool optional)
{
	struct span text = span_trim(httpd_body(r));

	if (!text.len && optional)
		text = SPAN("{}");
	return body_parse(r, text, JSON_KIND_OBJECT);
}

struct json *answer_body_array(struct httpd_request *r)
{
	return body_parse(r, span_trim(httpd_body(r)), JSON_KIND_ARRAY);
}
