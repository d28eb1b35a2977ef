/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - common answers of the lifecycle API */

#include "src/control/lifecycle/ask.h"

#include <stdlib.h>

#include "src/base/err.h"
#include "src/control/change.h"
#include "src/control/lifecycle/list_query.h"
#include "src/text/json.h"
#include "src/wire/h1.h"

void lifecycle_refuse(struct httpd_request *r, const struct lifecycle_error *no)
{
	httpd_reply_error(r, no->status, no->code, "%s", no->message);
}

struct ask *ask_new(struct lifecycle *l, struct httpd_request *r,
		    struct span id)
{
	struct ask *a = must_alloc(sizeof(*a));

	a->lifecycle = l;
	a->request = r;
	(void)span_copy(id, a->id, sizeof(a->id));
	return a;
}

void ask_refuse_unknown(struct httpd_request *r)
{
	httpd_reply_error(r, 404, "DOCKER::SANDBOX_NOT_FOUND",
			  "there is no such sandbox");
}

struct box *ask_box(struct lifecycle *l, struct httpd_request *r)
{
	struct box *b = boxes_find(&l->boxes, httpd_param(r, "id"));

	if (!b)
		ask_refuse_unknown(r);
	return b;
}

void ask_refuse_change(struct httpd_request *r, const struct refusal *why,
		       const char *conflict)
{
	if (why->status == 404)
		ask_refuse_unknown(r);
	else
		httpd_reply_error(r, why->status,
				  why->status == 409 ? conflict : why->code,
				  "%s", why->diag.msg);
}

void ask_on_accepted(void *ctx, const struct lifecycle_error *no)
{
	struct ask *a = ctx;

	if (no)
		lifecycle_refuse(a->request, no);
	else
		httpd_reply(a->request, 202, NULL, SPAN(""));
	free(a);
}

void ask_on_removed(void *ctx, const struct lifecycle_error *no)
{
	struct ask *a = ctx;

	if (no)
		lifecycle_refuse(a->request, no);
	else
		httpd_reply_empty(a->request);
	free(a);
}

void ask_reply(struct httpd_request *r, unsigned status, int error,
	       struct buf *out)
{
	if (error)
		httpd_reply_error(r, 500, "SANDBOX::UNKNOWN_ERROR",
				  "the answer is larger than %d bytes",
				  ASK_REPLY_MAX);
	else
		httpd_reply_json(r, status, buf_peek(out));
	buf_wipe(out);
}

void ask_reply_box(struct httpd_request *r, const struct box *b)
{
	struct buf out = BUF_INIT(ASK_REPLY_MAX);
	struct json_out o;

	json_start(&o, &out);
	box_emit(&o, b, true);
	ask_reply(r, 200, json_done(&o), &out);
}

bool ask_list(struct httpd_request *r, struct list_query *ret)
{
	struct span path = httpd_head(r)->path;
	struct lifecycle_error no = { 0 };

	if (!list_query_parse(span_from(path, span_find(path, '?') + 1), ret,
			      &no))
		return true;
	list_query_fini(ret);
	lifecycle_refuse(r, &no);
	return false;
}
