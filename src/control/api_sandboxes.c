/* SPDX-License-Identifier: Apache-2.0 */
/* api_sandboxes.c - routes of the registry of sandboxes */

#include "src/control/api.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/changes.h"
#include "src/control/control.h"
#include "src/control/gateway_link.h"
#include "src/control/publish.h"
#include "src/control/vault_link.h"
#include "src/role/config.h"

struct wish {
	struct sandbox *sandbox; /* NULL: remove; or already applied */
	bool must_be_new;
	bool is_new;
	struct change *change; /* while its lock is asked for */
	changed_fn *fn;	       /* who asked from inside, or NULL */
	void *ctx;
	char id[SANDBOX_ID_MAX + 1];
};

static const char not_locked[] =
	"the sandbox is registered and stays cut off: it could not be locked "
	"to its interface";

/* -- reading -------------------------------------------------------------- */

/* usage: JSON, or SPAN_NONE where it was not asked for. */
static void sandbox_show(struct json_out *o, const struct control *c,
			 const struct sandbox *s, struct span usage)
{
	const struct policy_entry *e = policies_select(&c->policies, s);

	json_open_object(o, NULL);
	sandbox_emit(o, s);
	sandbox_emit_lock(o, s);
	if (e && e->id == s->policy)
		json_put_text(o, "policy", e->model->name);
	else
		json_put_null(o, "policy");
	if (usage.len)
		json_put_raw(o, "usage", usage);
	json_close(o);
}

void api_sandboxes_list(void *ctx, struct httpd_request *r)
{
	struct buf out = BUF_INIT(API_REPLY_MAX);
	struct control *c = ctx;
	struct sandbox **items;
	struct json_out o;
	unsigned count, i;

	if (!api_ready(c, r))
		return;
	items = sandboxes_sorted(&c->sandboxes, &count);
	json_start(&o, &out);
	json_open_object(&o, NULL);
	json_open_array(&o, "sandboxes");
	for (i = 0; i < count; i++)
		sandbox_show(&o, c, items[i], SPAN_NONE);
	json_close(&o);
	json_close(&o);
	free(items);
	api_reply_buf(r, 200, json_done(&o), &out);
}

static void reply_sandbox(struct control *c, struct httpd_request *r,
			  struct span id, unsigned status, struct span usage)
{
	const struct sandbox *s = sandboxes_find(&c->sandboxes, id);
	struct buf out = BUF_INIT(API_REPLY_MAX);
	struct json_out o;

	if (!s) {
		api_not_found(r, "sandbox");
		return;
	}
	json_start(&o, &out);
	sandbox_show(&o, c, s, usage);
	api_reply_buf(r, status, json_done(&o), &out);
}

/* A sandbox that is shown once the gateway has said what it uses. */
struct usage_call {
	struct control *control;
	struct httpd_request *request;
	char id[SANDBOX_ID_MAX + 1];
};

/* Shown without when the gateway says nothing, or no JSON. */
static void on_usage(void *ctx, int status, const char *text, struct span tail)
{
	struct buf usage CLEANUP(buf_fini) = BUF_INIT(MSG_TAIL_MAX);
	struct json *j CLEANUP_JSON = NULL;
	struct usage_call *call = ctx;

	(void)text;
	if (status || json_parse(tail, &j, NULL) || json_emit(&usage, j))
		buf_clear(&usage);
	reply_sandbox(call->control, call->request, span_str(call->id), 200,
		      buf_len(&usage) ? buf_peek(&usage) : SPAN("null"));
	free(call);
}

void api_sandbox_get(void *ctx, struct httpd_request *r)
{
	struct span id = httpd_param(r, "id");
	struct usage_call *call;
	struct control *c = ctx;

	if (!api_ready(c, r))
		return;
	if (!sandboxes_find(&c->sandboxes, id)) {
		api_not_found(r, "sandbox");
		return;
	}
	call = must_alloc(sizeof(*call));
	call->control = c;
	call->request = r;
	must(span_copy(id, call->id, sizeof(call->id)));
	gateway_link_usage(c->gateway, id, on_usage, call);
}

/* -- changing ------------------------------------------------------------- */

static bool addresses_claim(const struct sandbox *s, struct map *claims)
{
	bool mine = true;
	unsigned i;

	for (i = 0; i < s->addr_count; i++)
		mine &= change_claim(
			claims, 'a',
			span_of(s->addrs[i].ip, sizeof(s->addrs[i].ip)));
	return mine;
}

/* Its id, the addresses that it gets, and those that it gives up. */
static bool wish_claim(struct control *c, const void *data, struct map *claims)
{
	const struct wish *w = data;
	struct span id = span_str(w->id);
	const struct sandbox *former = sandboxes_find(&c->sandboxes, id);
	unsigned i, k;
	bool mine;

	mine = change_claim(claims, 's', id) &&
	       map_count(&c->sandboxes.by_id) + CHANGES_TOGETHER_MAX <=
		       SANDBOXES_MAX;
	if (w->sandbox)
		mine &= addresses_claim(w->sandbox, claims);
	for (i = 0; former && i < former->addr_count; i++) {
		for (k = 0; w->sandbox && k < w->sandbox->addr_count; k++)
			if (addr_eq_ip(&former->addrs[i],
				       &w->sandbox->addrs[k]))
				break;
		if (!w->sandbox || k == w->sandbox->addr_count)
			mine &= change_claim(claims, 'a',
					     span_of(former->addrs[i].ip, 16));
	}
	return mine;
}

/* False: labels that are too large when written. */
static bool sandbox_store(struct control *c, const struct sandbox *s)
{
	struct buf text = BUF_INIT(MSG_TAIL_MAX);
	struct json_out o;
	bool fits;

	json_start(&o, &text);
	json_open_object(&o, NULL);
	sandbox_emit(&o, s);
	json_close(&o);
	fits = !json_done(&o);
	if (fits) {
		change_store_begin(c);
		vault_link_put(c->vault, RECORD_SANDBOX, s->id,
			       buf_peek(&text));
	}
	buf_fini(&text);
	return fits;
}

static enum change_step put_check(struct control *c, void *data,
				  struct refusal *no)
{
	struct wish *w = data;
	const struct sandbox *other;
	const struct addr *address;
	char text[ADDR_TEXT_SIZE];

	w->is_new = !sandboxes_find(&c->sandboxes, w->sandbox->id);
	if (w->must_be_new && !w->is_new)
		return api_refuse(no, 409, "EXISTS",
				  "sandbox \"%s\" already exists", w->id);
	if (w->is_new && map_count(&c->sandboxes.by_id) >= SANDBOXES_MAX)
		return api_refuse(no, 409, "TOO_MANY",
				  "%d sandboxes are the most", SANDBOXES_MAX);
	if (w->sandbox->iface[0] &&
	    !config_has_interface(c->config, w->sandbox->iface))
		return api_refuse(no, 400, "INVALID",
				  "sandbox: interface \"%s\" is none that "
				  "sandboxInterfaces names: nothing from it "
				  "would be under policy",
				  w->sandbox->iface);
	other = sandboxes_conflict(&c->sandboxes, w->sandbox, &address);
	if (other)
		return api_refuse(
			no, 409, "ADDRESS_TAKEN",
			"address %s belongs to sandbox \"%s\" on %s",
			addr_text(address, text, sizeof(text)), other->id.ptr,
			other->iface[0] ? other->iface : "every interface");
	if (!sandbox_store(c, w->sandbox))
		return api_refuse(no, 400, "INVALID",
				  "sandbox: the labels are too large");
	return CHANGE_STORE;
}

static void on_put_locked(void *ctx, const struct msg_locked *reply)
{
	struct wish *w = ctx;

	sandbox_set_lock(w->sandbox, reply);
	if (reply->status)
		log_error("sandbox %s is cut off: %s", w->id, reply->text);
	change_locked(w->change);
}

static void put_lock(struct control *c, void *data, struct change *ch)
{
	struct wish *w = data;

	w->change = ch;
	locks_put(c, w->sandbox, on_put_locked, w);
}

static void put_apply(struct control *c, void *data, uint64_t revision)
{
	struct wish *w = data;
	struct sandbox *s = take_ptr(w->sandbox);
	const struct sandbox *former = sandboxes_find(&c->sandboxes, s->id);

	(void)revision;
	if (former && !s->ingress.is_open)
		publish_ingress_drop(c->gateway, former);
	sandboxes_put(&c->sandboxes, s);
	publish_sandbox(c->gateway, &c->policies, s);
}

static void put_reply(struct control *c, void *data, struct httpd_request *r)
{
	const struct wish *w = data;
	const struct sandbox *s =
		sandboxes_find(&c->sandboxes, span_str(w->id));

	if (s && s->lock == LOCK_FAILED) {
		httpd_reply_error(r, 503, "NOT_LOCKED", "%s", not_locked);
		return;
	}
	reply_sandbox(c, r, span_str(w->id), w->is_new ? 201 : 200, SPAN_NONE);
}

static enum change_step delete_check(struct control *c, void *data,
				     struct refusal *no)
{
	struct wish *w = data;

	if (!sandboxes_find(&c->sandboxes, span_str(w->id)))
		return api_refuse(no, 404, "NOT_FOUND",
				  "there is no such sandbox");
	change_store_begin(c);
	vault_link_remove(c->vault, RECORD_SANDBOX, span_str(w->id));
	return CHANGE_STORE;
}

static void delete_apply(struct control *c, void *data, uint64_t revision)
{
	struct wish *w = data;
	const struct sandbox *s =
		sandboxes_find(&c->sandboxes, span_str(w->id));

	(void)revision;
	publish_sandbox_drop(c->gateway, s);
	locks_drop(c, s->id);
	sandboxes_remove(&c->sandboxes, span_str(w->id));
}

static void delete_reply(struct control *c, void *data, struct httpd_request *r)
{
	(void)c;
	(void)data;
	httpd_reply_empty(r);
}

static void wish_free(void *data)
{
	struct wish *w = data;

	sandbox_free(w->sandbox);
	free(w);
}

static void wish_done(struct control *c, void *data, const struct refusal *why)
{
	const struct sandbox *s;
	struct refusal cut_off = { .status = 503, .code = "NOT_LOCKED" };
	struct wish *w = data;

	if (!w->fn)
		return;
	s = sandboxes_find(&c->sandboxes, span_str(w->id));
	if (!why->status && s && s->lock == LOCK_FAILED) {
		(void)diag_set(&cut_off.diag, 0, 0, "%s", not_locked);
		why = &cut_off;
	}
	w->fn(w->ctx, why);
}

static const struct change_ops put_ops = {
	.claim = wish_claim,
	.check = put_check,
	.lock = put_lock,
	.apply = put_apply,
	.reply = put_reply,
	.done = wish_done,
	.free = wish_free,
};

static const struct change_ops delete_ops = {
	.claim = wish_claim,
	.check = delete_check,
	.apply = delete_apply,
	.reply = delete_reply,
	.done = wish_done,
	.free = wish_free,
};

static void sandbox_put(struct control *c, struct httpd_request *r,
			bool must_be_new)
{
	struct wish *w = must_alloc(sizeof(*w));
	struct diag d = { 0 };

	w->must_be_new = must_be_new;
	if (sandbox_parse(httpd_body(r), httpd_param(r, "id"), &w->sandbox,
			  &d)) {
		api_invalid(r, &d);
		free(w);
		return;
	}
	(void)span_copy(w->sandbox->id, w->id, sizeof(w->id));
	change_submit(c, &put_ops, w, r);
}

void sandbox_change_put(struct control *c, struct sandbox *s, changed_fn *fn,
			void *ctx)
{
	struct wish *w = must_alloc(sizeof(*w));

	w->sandbox = s;
	w->fn = fn;
	w->ctx = ctx;
	(void)span_copy(s->id, w->id, sizeof(w->id));
	change_submit(c, &put_ops, w, NULL);
}

static struct wish *wish_of(struct span id)
{
	struct wish *w = must_alloc(sizeof(*w));

	(void)span_copy(id, w->id, sizeof(w->id));
	return w;
}

void sandbox_change_remove(struct control *c, struct span id, changed_fn *fn,
			   void *ctx)
{
	struct wish *w = wish_of(id);

	w->fn = fn;
	w->ctx = ctx;
	change_submit(c, &delete_ops, w, NULL);
}

void api_sandboxes_post(void *ctx, struct httpd_request *r)
{
	sandbox_put(ctx, r, true);
}

void api_sandbox_put(void *ctx, struct httpd_request *r)
{
	sandbox_put(ctx, r, false);
}

void api_sandbox_delete(void *ctx, struct httpd_request *r)
{
	struct span id = httpd_param(r, "id");

	if (!sandbox_id_is_valid(id)) {
		api_not_found(r, "sandbox");
		return;
	}
	change_submit(ctx, &delete_ops, wish_of(id), r);
}
