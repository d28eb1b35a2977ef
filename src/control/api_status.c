/* SPDX-License-Identifier: Apache-2.0 */
/* api_status.c - the routes that only tell: status, explain, audit, the CA
 *
 * A status is put together from the answers of the supervisor and the gateway,
 * both asked at once; who does not answer in time is shown as null.
 */

#include "src/control/api.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/control/audit_tail.h"
#include "src/control/control.h"
#include "src/control/explain.h"
#include "src/control/gateway_link.h"
#include "src/control/status.h"
#include "src/control/vault_link.h"
#include "src/control/vault_state.h"
#include "src/control/webhook.h"
#include "src/io/chan.h"
#include "src/role/config.h"

enum { STATUS_MS = 2000 };

struct status_call {
	struct control *control;
	struct list link;
	struct httpd_request *request;
	struct timer timer;
	uint32_t serial; /* of the question to the supervisor; 0 = answered */
	struct msg_roles roles;
	bool has_roles, gateway_done;
	bool exhausted;	    /* the gateway lacks descriptors */
	struct buf gateway; /* JSON, or empty */
};

/* -- status --------------------------------------------------------------- */

/* What UDP and ICMP need of the node. */
static void flows_put(struct json_out *o, const struct msg_roles *roles)
{
	json_open_object(o, "flows");
	if (roles) {
		json_put_str(o, "queue",
			     queue_kind_name((enum queue_kind)roles->queue));
		json_put_bool(o, "forwardsIPv4", roles->forwards & 1);
		json_put_bool(o, "forwardsIPv6", roles->forwards & 2);
	}
	json_close(o);
}

static void roles_put(struct json_out *o, const struct msg_roles *roles)
{
	char when[CLOCK_TEXT_SIZE];
	unsigned i;

	json_open_array(o, "roles");
	for (i = ROLE_SUPERVISOR; roles && i < ROLE_NUM; i++) {
		json_open_object(o, NULL);
		json_put_str(o, "role", role_name((enum role)i));
		json_put_u64(o, "pid", roles->roles[i].pid);
		json_put_bool(o, "ready", roles->roles[i].ready);
		json_put_u64(o, "restarts", roles->roles[i].restarts);
		clock_text(roles->roles[i].since_ms, when, sizeof(when));
		if (roles->roles[i].since_ms)
			json_put_str(o, "since", when);
		else
			json_put_null(o, "since");
		json_close(o);
	}
	json_close(o);
	if (roles)
		json_put_bool(o, "rulesInstalled", roles->table_ok);
	else
		json_put_null(o, "rulesInstalled");
	flows_put(o, roles);
}

static void vault_put(struct json_out *o, const struct control *c)
{
	json_open_object(o, "vault");
	json_put_bool(o, "up", vault_link_is_up(c->vault));
	json_put_u64(o, "revision", c->node ? c->node->revision : 0);
	json_put_u64(o, "credentials",
		     c->node ? map_count(&c->node->credentials) : 0);
	json_put_u64(o, "bindings",
		     c->node ? map_count(&c->node->bindings) : 0);
	json_close(o);
}

static void status_put(struct json_out *o, const struct status_call *call)
{
	const struct control *c = call->control;

	json_open_object(o, NULL);
	json_put_str(o, "version", SALLYPORT_VERSION);
	json_put_bool(o, "ready",
		      c->loaded && gateway_link_is_up(c->gateway) &&
			      !call->exhausted);
	roles_put(o, call->has_roles ? &call->roles : NULL);
	vault_put(o, c);
	policies_status_put(o, "policies", &c->policies);
	json_put_u64(o, "sandboxes", map_count(&c->sandboxes.by_id));
	webhook_status_put(o, "webhook", c->webhook);
	if (buf_len(&call->gateway))
		json_put_raw(o, "gateway", buf_peek(&call->gateway));
	else
		json_put_null(o, "gateway");
	json_close(o);
}

/* Answers once both have spoken, or when it must. */
static void status_finish(struct status_call *call, bool anyway)
{
	struct buf out = BUF_INIT(API_REPLY_MAX);
	struct httpd_request *r = call->request;
	struct json_out o;

	if (r && (anyway || (call->gateway_done && !call->serial))) {
		json_start(&o, &out);
		status_put(&o, call);
		timer_stop(&call->timer);
		call->request = NULL;
		call->serial = 0;
		api_reply_buf(r, 200, json_done(&o), &out);
	}
	if (call->request || !call->gateway_done)
		return; /* the gateway's callback is still to come */
	list_remove(&call->link);
	buf_fini(&call->gateway);
	free(call);
}

static void on_status_timer(struct timer *t)
{
	status_finish(container_of(t, struct status_call, timer), true);
}

/* The gateway's text is kept only if it is JSON. */
static void on_gateway_status(void *ctx, int status, const char *text,
			      struct span tail)
{
	struct json *j CLEANUP_JSON = NULL;
	struct status_call *call = ctx;

	(void)text;
	call->gateway_done = true;
	if (!status && !json_parse(tail, &j, NULL))
		(void)!json_emit(&call->gateway, j);
	call->exhausted = json_bool(json_find(j, "outOfDescriptors"));
	status_finish(call, false);
}

void status_on_roles(struct control *c, uint32_t serial,
		     const struct msg_roles *roles)
{
	struct status_call *call;

	list_for_each(it, &c->status_calls)
	{
		call = container_of(it, struct status_call, link);
		if (!call->serial || call->serial != serial)
			continue;
		call->serial = 0;
		call->roles = *roles;
		call->has_roles = true;
		status_finish(call, false);
		return;
	}
}

void status_fini(struct control *c)
{
	list_for_each(it, &c->status_calls)
	{
		status_finish(container_of(it, struct status_call, link), true);
	}
}

static void status_ask(struct status_call *call)
{
	struct control *c = call->control;
	const struct msg_roles body = { 0 };

	if (!c->supervisor)
		return;
	call->serial = chan_serial(c->supervisor);
	if (chan_send(c->supervisor, MSG_CONTROL_ROLES, call->serial, &body,
		      sizeof(body), SPAN_NONE, NULL, 0))
		call->serial = 0;
}

void api_status_get(void *ctx, struct httpd_request *r)
{
	struct status_call *call = must_alloc(sizeof(*call));
	struct control *c = ctx;

	call->control = c;
	call->request = r;
	buf_init(&call->gateway, MSG_TAIL_MAX);
	timer_init(&call->timer, c->loop, on_status_timer);
	list_init(&call->link);
	list_push(&c->status_calls, &call->link);
	timer_start(&call->timer, STATUS_MS);
	status_ask(call);
	gateway_link_status(c->gateway, on_gateway_status, call);
}

/* -- explain -------------------------------------------------------------- */

static void reply_explanation(struct control *c, struct httpd_request *r,
			      struct span sandbox, struct explain_query *q)
{
	struct buf out = BUF_INIT(API_REPLY_MAX);
	struct diag d = { 0 };
	int error;

	if (!api_ready(c, r))
		return;
	q->sandbox = sandboxes_find(&c->sandboxes, sandbox);
	if (!q->sandbox) {
		api_not_found(r, "sandbox");
		return;
	}
	q->foreign_allowed = c->config->dns_allow_foreign_resolvers;
	error = explain(q, &c->policies, c->node, &out, &d);
	if (error == -EINVAL) {
		buf_fini(&out);
		api_invalid(r, &d);
		return;
	}
	api_reply_buf(r, 200, error, &out);
}

void api_explain_get(void *ctx, struct httpd_request *r)
{
	struct explain_query q = {
		.url = httpd_query(r, "url"),
		.method = httpd_query(r, "method"),
		.address = httpd_query(r, "address"),
		.words = httpd_query(r, "words"),
	};

	reply_explanation(ctx, r, httpd_query(r, "sandbox"), &q);
}

void api_explain_post(void *ctx, struct httpd_request *r)
{
	static const char *const known[] = { "sandbox", "url",	 "method",
					     "address", "words", NULL };
	struct json *j CLEANUP_JSON = NULL;
	struct explain_query q = { 0 };
	struct span sandbox = SPAN_NONE;
	struct diag d = { 0 };

	if (json_parse(httpd_body(r), &j, &d) ||
	    json_want(j, JSON_KIND_OBJECT, "question", &d) ||
	    json_refuse_unknown(j, "question", known, &d) ||
	    json_get_text(j, "question", "sandbox", &sandbox, &d) < 0 ||
	    json_get_text(j, "question", "url", &q.url, &d) < 0 ||
	    json_get_text(j, "question", "method", &q.method, &d) < 0 ||
	    json_get_text(j, "question", "address", &q.address, &d) < 0 ||
	    json_get_text(j, "question", "words", &q.words, &d) < 0) {
		api_invalid(r, &d);
		return;
	}
	reply_explanation(ctx, r, sandbox, &q);
}

/* -- audit, CA ------------------------------------------------------------ */

static bool is_true(struct span text)
{
	return span_eq(text, SPAN("true")) || span_eq(text, SPAN("1"));
}

void api_audit_tail(void *ctx, struct httpd_request *r)
{
	struct audit_question q = {
		.sandbox = httpd_query(r, "sandbox"),
		.follow = is_true(httpd_query(r, "follow")),
		.lines = AUDIT_LINES_DEFAULT,
	};
	struct span lines = httpd_query(r, "lines");
	struct control *c = ctx;
	uint64_t value = 0;

	if (lines.ptr &&
	    (!span_parse_u64(lines, &value) || value > AUDIT_LINES_MAX)) {
		httpd_reply_error(r, 400, "INVALID",
				  "lines: expected a number up to %d",
				  AUDIT_LINES_MAX);
		return;
	}
	if (lines.ptr)
		q.lines = (unsigned)value;
	audit_tail_start(c->tails, &q, r);
}

static void reply_pem(struct httpd_request *r, const struct buf *pem)
{
	if (buf_len(pem))
		httpd_reply(r, 200, "application/x-pem-file", buf_peek(pem));
	else
		httpd_reply_error(r, 503, "NOT_READY",
				  "the vault has not given the certificate "
				  "yet");
}

void api_ca_get(void *ctx, struct httpd_request *r)
{
	struct control *c = ctx;

	reply_pem(r, &c->ca_pem);
}

void api_ca_bundle_get(void *ctx, struct httpd_request *r)
{
	struct control *c = ctx;

	reply_pem(r, &c->ca_bundle);
}
