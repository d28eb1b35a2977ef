/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - how this daemon says yes and no (contract 5.1)
 *
 * Errors are {"code","message"} with the codes below; an empty success is 200
 * with Content-Length: 0, never 204, never chunked: clients depend on it.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;
struct httpd_request;
struct json;

enum answer_code {
	ANSWER_INVALID_REQUEST_BODY,
	ANSWER_MISSING_QUERY,
	ANSWER_RUNTIME_ERROR,
	ANSWER_INVALID_FILE,
	ANSWER_INVALID_FILE_CONTENT,
	ANSWER_INVALID_FILE_METADATA,
	ANSWER_FILE_NOT_FOUND,
	ANSWER_UNKNOWN,
	ANSWER_CONTEXT_NOT_FOUND,
	ANSWER_NOT_SUPPORTED,
	ANSWER_SESSION_NOT_FOUND,
	ANSWER_SERVICE_UNAVAILABLE,
	ANSWER_CODE_NUM,
};

/* Each ends the request. */
void answer_ok(struct httpd_request *r);
void answer_json(struct httpd_request *r, unsigned status, struct buf *json);
void answer_error(struct httpd_request *r, unsigned status,
		  enum answer_code code, const char *fmt, ...) PRINTF(4, 5);

/* The body as a JSON object; an empty body is an empty object when `optional`.
 * NULL: answered with 400 INVALID_REQUEST_BODY. Free with json_free(). */
struct json *answer_body(struct httpd_request *r, bool optional);
/* The same of an array. */
struct json *answer_body_array(struct httpd_request *r);
