/* SPDX-License-Identifier: Apache-2.0 */
/* stage_destination.c - is this request for where its connection goes?
 *
 * The one comparison that rivals were broken for want of: the authority of
 * every request against the destination that the connection proved. Also makes
 * the canonical path that later stages compare.
 */

#include "gateway/pipeline/stages.h"

#include "src/wire/url.h"

static enum step refuse(struct request *req, enum audit_reason reason,
			uint16_t status)
{
	req->audit->reason = reason;
	req->audit->status = status;
	return STEP_DENY;
}

/* 421 tells a client to make another connection for it: so not for what is a
 * host on none. */
static enum step check_authority(struct request *req)
{
	const struct destination *d = req->destination;
	struct authority a;

	if (!authority_parse(req->authority, scheme_port(d->scheme), &a)) {
		req->audit->detail = SPAN("the request's authority is no host");
		return refuse(req, AUDIT_REASON_MALFORMED, 400);
	}
	if (destination_is_authority(d, &a))
		return STEP_NEXT;
	req->audit->detail =
		arena_printf(req->arena, "the request is for \"%.*s\"",
			     SPAN_FMT(req->authority));
	return refuse(req, AUDIT_REASON_MISDIRECTED, 421);
}

/* "*" of OPTIONS has no path; it is compared as such. */
static enum step canon_path(struct request *req)
{
	struct span raw = req->target;

	req->audit->path =
		arena_dup(req->arena, span_of(raw.ptr, span_find(raw, '?')));
	if (span_eq(raw, SPAN("*"))) {
		req->path = SPAN("*");
		return STEP_NEXT;
	}
	switch (url_canon_path(req->arena, raw, &req->path)) {
	case URL_PATH_OK:
		return STEP_NEXT;
	case URL_PATH_AMBIGUOUS:
		req->path_ambiguous = true;
		req->path = req->audit->path;
		return STEP_NEXT;
	case URL_PATH_BAD:
		return refuse(req, AUDIT_REASON_MALFORMED, 400);
	case URL_PATH_NO_MEMORY:
		return STEP_FAIL;
	}
	return STEP_FAIL;
}

enum step stage_destination(struct request *req)
{
	enum step step = check_authority(req);

	req->audit->method = arena_dup(req->arena, req->method);
	return step == STEP_NEXT ? canon_path(req) : step;
}
