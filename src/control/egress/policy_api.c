/* SPDX-License-Identifier: Apache-2.0 */
/* policy_api.c - /policy of one sandbox (contract 1.2-1.4) */

#include "src/control/egress/egress_inside.h"

#include "src/base/diag.h"
#include "src/control/control.h"
#include "src/control/egress/net_policy_change.h"

static bool is_white(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Without the white space of JSON around it. */
static struct span body_of(const struct httpd_request *r)
{
	struct span body = httpd_body(r);

	while (body.len && is_white(body.ptr[0]))
		body = span_from(body, 1);
	while (body.len && is_white(body.ptr[body.len - 1]))
		body.len--;
	return body;
}

static void policy_get(struct control *c, const struct box *b,
		       struct httpd_request *r)
{
	const struct net_policy *p =
		net_policies_find(&c->net_policies, span_str(b->id));
	struct buf out = BUF_INIT(EGRESS_REPLY_MAX);
	struct json_out o;

	if (!p) {
		egress_refuse(r, 404, EGRESS_NO_POLICY);
		return;
	}
	json_start(&o, &out);
	json_open_object(&o, NULL);
	json_put_str(&o, "status", "ok");
	json_put_str(&o, "mode", net_policy_mode(p));
	json_put_str(&o, "enforcementMode", EGRESS_ENFORCEMENT);
	net_policy_emit(&o, "policy", p);
	json_close(&o);
	egress_reply_json(r, 200, json_done(&o), &out);
}

/* An empty body sets the policy that denies everything. */
static void policy_set(struct control *c, const struct box *b,
		       struct httpd_request *r)
{
	struct span body = body_of(r);
	struct json *j CLEANUP_JSON = NULL;
	struct diag d = { 0 };
	struct net_policy *p;
	unsigned total;
	int error = 0;

	if (body.len)
		error = json_parse(body, &j, &d);
	if (!error)
		error = net_policy_parse(j, &p, &total, &d);
	if (error == NET_POLICY_E_MANY)
		egress_refuse(r, 413,
			      "egress rule total count %u exceeds limit %d",
			      total, NET_RULES_MAX);
	else if (error)
		egress_refuse(r, 400, "invalid policy: %s", d.msg);
	else
		net_policy_change_set(c, span_str(b->id), p,
				      body.len ? NET_POLICY_SAY_FORCED
					       : NET_POLICY_SAY_RESET,
				      r);
}

/* A list that is looked at when its turn comes. */
static void policy_edit(struct control *c, const struct box *b,
			struct httpd_request *r, bool removes)
{
	const char *what = removes ? "delete targets" : "patch rules";
	struct span body = body_of(r);
	struct diag d = { 0 };
	struct json *j;

	if (!body.len)
		egress_refuse(r, 400, "empty body");
	else if (json_parse(body, &j, &d))
		egress_refuse(r, 400, "invalid %s: %s", what, d.msg);
	else if (removes)
		net_policy_change_delete(c, span_str(b->id), j, r);
	else
		net_policy_change_patch(c, span_str(b->id), j, r);
}

void egress_policy(void *ctx, struct httpd_request *r)
{
	struct span method = httpd_method(r);
	const struct box *b = egress_box(ctx, r);

	if (!b)
		return;
	if (span_eq(method, SPAN("GET")))
		policy_get(ctx, b, r);
	else if (span_eq(method, SPAN("POST")) || span_eq(method, SPAN("PUT")))
		policy_set(ctx, b, r);
	else if (span_eq(method, SPAN("PATCH")))
		policy_edit(ctx, b, r, false);
	else if (span_eq(method, SPAN("DELETE")))
		policy_edit(ctx, b, r, true);
	else
		egress_refuse_method(r, "GET, POST, PUT, PATCH, DELETE");
}
