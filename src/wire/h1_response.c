/* SPDX-License-Identifier: Apache-2.0 */
/* h1_response.c - a response head, read once it is whole (RFC 9112 4 and 6.3)
 */

#include "src/wire/h1.h"

#include "src/wire/bytes.h"
#include "src/wire/h1_head.h"

/* "HTTP/1.1 200 OK"; the reason may be empty, and then its space may be
 * missing too: many servers forget it and nothing depends on it. */
static enum h1_error parse_status(struct span line, struct h1_response *resp)
{
	enum h1_error error;
	uint64_t status;

	if (line.len < 12 || line.ptr[8] != ' ')
		return H1_E_START_LINE;
	error = h1_parse_version(span_of(line.ptr, 8), &resp->minor);
	if (error)
		return error;
	if (!span_parse_u64(span_of(line.ptr + 9, 3), &status) || status < 100)
		return H1_E_STATUS;
	if (line.len > 12 && line.ptr[12] != ' ')
		return H1_E_STATUS;
	resp->status = (uint16_t)status;
	resp->reason = span_from(line, 13);
	return H1_OK;
}

static enum h1_body body_of(const struct h1_response *resp, struct span method,
			    const struct h1_facts *facts)
{
	if (resp->status == 101)
		return H1_BODY_TUNNEL;
	if (resp->status < 200 || resp->status == 204 || resp->status == 304)
		return H1_BODY_NONE;
	if (span_eq(method, SPAN("HEAD")))
		return H1_BODY_NONE;
	if (span_eq(method, SPAN("CONNECT")) && resp->status < 300)
		return H1_BODY_TUNNEL;
	if (facts->has_coding)
		return H1_BODY_CHUNKED;
	return facts->has_length ? H1_BODY_LENGTH : H1_BODY_CLOSE;
}

/* A 1xx or 204 that announces a body may well send one: what follows it on the
 * connection cannot be trusted. */
static bool promises_too_much(const struct h1_response *resp,
			      const struct h1_facts *facts)
{
	return (resp->status < 200 || resp->status == 204) &&
	       (facts->has_coding || facts->length);
}

enum h1_error h1_parse_response(struct span head, struct span method,
				struct h1_response *ret)
{
	struct h1_facts facts;
	enum h1_error error;
	struct span line;

	memset(ret, 0, offsetof(struct h1_response, headers));
	error = h1_take_line(&head, &line);
	if (!error)
		error = parse_status(line, ret);
	if (!error)
		error = h1_parse_fields(head, ret->minor, &ret->headers,
					&facts);
	if (error)
		return error;

	ret->body = body_of(ret, method, &facts);
	if (ret->body == H1_BODY_LENGTH)
		ret->length = facts.length;
	ret->keep_alive = h1_keeps_alive(&facts, ret->minor) &&
			  ret->body != H1_BODY_CLOSE &&
			  ret->body != H1_BODY_TUNNEL &&
			  !promises_too_much(ret, &facts);
	return H1_OK;
}
