/* SPDX-License-Identifier: Apache-2.0 */
/* net_policy_change.c - made, checked against bindings, stored, answered */

#include "src/control/egress/net_policy_change.h"

#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/control/api.h"
#include "src/control/control.h"
#include "src/control/egress/coverage.h"
#include "src/control/egress/egress_inside.h"
#include "src/control/lifecycle/box.h"
#include "src/control/vault_link.h"
#include "src/control/vault_state.h"

enum verb { VERB_SET, VERB_PATCH, VERB_DELETE };

struct wish {
	enum verb verb;
	struct json *body;	    /* of a patch, of a deletion */
	struct net_policy *next;    /* NULL: not made yet, or applied */
	struct policy_entry *entry; /* it, compiled */
	unsigned pieces;
	bool in_vain; /* a deletion that found nothing */
	enum net_policy_said said;
	changed_fn *fn; /* who asked from inside, or NULL */
	void *ctx;
	bool is_asked; /* by the egress API */
	char id[BOX_ID_SIZE];
};

static struct wish *wish_new(enum verb verb, struct span id)
{
	struct wish *w = must_alloc(sizeof(*w));

	w->verb = verb;
	(void)span_copy(id, w->id, sizeof(w->id));
	return w;
}

static void wish_free(void *data)
{
	struct wish *w = data;

	json_free(w->body);
	net_policy_free(w->next);
	policy_entry_free(w->entry);
	free(w);
}

static void wish_done(struct control *c, void *data, const struct refusal *why)
{
	struct wish *w = data;

	(void)c;
	if (w->fn)
		w->fn(w->ctx, why);
}

static bool wish_claim(struct control *c, const void *data, struct map *claims)
{
	const struct wish *w = data;
	char name[NET_POLICY_NAME_SIZE];

	net_policies_name(span_str(w->id), name);
	return change_claim(claims, 'p', span_str(name)) &&
	       c->policies.api_count + CHANGES_TOGETHER_MAX <= POLICY_API_MAX;
}

/* -- the policy that is to be --------------------------------------------- */

static enum change_step refuse_many(unsigned total, struct refusal *no)
{
	return api_refuse(no, 413, "TOO_MANY_RULES",
			  "egress rule total count %u exceeds limit %d", total,
			  NET_RULES_MAX);
}

/* CHANGE_STORE: go on. CHANGE_APPLY: there is nothing to do. */
static enum change_step next_make(const struct net_policy *now, struct wish *w,
				  struct refusal *no)
{
	struct diag d = { 0 };
	unsigned count = 0;
	int r;

	if (w->verb == VERB_SET)
		return CHANGE_STORE;
	w->next = net_policy_free(w->next);
	if (w->verb == VERB_PATCH) {
		r = net_policy_patch(now, w->body, &w->next, &count, &d);
		if (r == NET_POLICY_E_MANY)
			return refuse_many(count, no);
		return !r ? CHANGE_STORE
			  : api_refuse(no, 400, "INVALID",
				       "invalid patch rules: %s", d.msg);
	}
	if (net_policy_remove(now, w->body, &w->next, &count, &d))
		return api_refuse(no, 400, "INVALID",
				  "invalid delete targets: %s", d.msg);
	w->in_vain = !count;
	return count ? CHANGE_STORE : CHANGE_APPLY;
}

static int next_compile(struct control *c, struct wish *w, struct diag *d)
{
	struct buf text CLEANUP(buf_fini) = BUF_INIT(NET_POLICY_OWN_MAX);
	char name[NET_POLICY_NAME_SIZE];
	struct json_out o;
	int r;

	w->entry = policy_entry_free(w->entry);
	net_policies_name(span_str(w->id), name);
	json_start(&o, &text);
	net_policy_emit_own(&o, w->next, span_str(w->id));
	if (json_done(&o))
		return diag_set(d, 0, 0, "larger than %d bytes",
				NET_POLICY_OWN_MAX);
	r = policies_make(&c->policies, buf_peek(&text), span_str(name),
			  &w->entry, NULL, d);
	return r ? r : policies_check(&c->policies, w->entry, d);
}

/* Every binding of the sandbox under the policy that is to be. */
static int bindings_check(const struct control *c, const struct wish *w,
			  struct diag *d)
{
	const struct vault_state *s =
		vault_scopes_find(&c->scopes, span_str(w->id));
	struct policy_opened overlay, policy;
	const struct binding *b;
	size_t cursor = 0;
	int r = 0;

	if (!s || !map_count(&s->bindings))
		return 0;
	policy_entry_open(c->policies.overlay, &overlay);
	policy_entry_open(w->entry, &policy);
	while (!r && (b = map_next(&s->bindings, &cursor, NULL)))
		r = coverage_check(b, w->next, policy_opened_get(&overlay),
				   policy_opened_get(&policy), d);
	policy_opened_fini(&overlay);
	policy_opened_fini(&policy);
	return r;
}

static enum change_step next_store(struct control *c, struct wish *w,
				   struct refusal *no)
{
	struct buf text CLEANUP(buf_fini) = BUF_INIT(NET_POLICY_TEXT_MAX);
	struct json_out o;

	json_start(&o, &text);
	net_policy_emit(&o, NULL, w->next);
	if (json_done(&o))
		return api_refuse(no, 413, "TOO_LARGE",
				  "a policy of more than %d bytes",
				  NET_POLICY_TEXT_MAX);
	change_store_begin(c);
	w->pieces = net_policies_store(&c->net_policies, span_str(w->id),
				       buf_peek(&text), c->vault);
	return CHANGE_STORE;
}

static enum change_step put_check(struct control *c, void *data,
				  struct refusal *no)
{
	struct wish *w = data;
	const struct net_policy *now =
		net_policies_find(&c->net_policies, span_str(w->id));
	enum change_step step;
	struct diag d = { 0 };

	if (w->is_asked && !now)
		return api_refuse(no, 404, "NOT_FOUND", EGRESS_NO_POLICY);
	step = next_make(now, w, no);
	if (step != CHANGE_STORE)
		return step;
	if (next_compile(c, w, &d))
		return api_refuse(no, 400, "INVALID", "invalid %spolicy: %s",
				  w->verb == VERB_PATCH ? "merged " : "",
				  d.msg);
	if (bindings_check(c, w, &d))
		return api_refuse(no, 400, "INVALID",
				  "credential vault policy validation: %s",
				  d.msg);
	return next_store(c, w, no);
}

static void put_apply(struct control *c, void *data, uint64_t revision)
{
	struct wish *w = data;

	(void)revision;
	if (w->in_vain)
		return;
	policies_put(&c->policies, take_ptr(w->entry));
	net_policies_put(&c->net_policies, span_str(w->id), take_ptr(w->next),
			 w->pieces);
	change_publish_policies(c);
}

/* -- answers -------------------------------------------------------------- */

static void put_reply(struct control *c, void *data, struct httpd_request *r)
{
	const struct wish *w = data;
	const struct net_policy *now =
		net_policies_find(&c->net_policies, span_str(w->id));
	struct buf out = BUF_INIT(EGRESS_REPLY_MAX);
	struct json_out o;

	if (!now) { /* a later change has removed it by now */
		egress_refuse(r, 404, EGRESS_NO_POLICY);
		return;
	}
	json_start(&o, &out);
	json_open_object(&o, NULL);
	json_put_str(&o, "status", "ok");
	json_put_str(&o, "mode", net_policy_mode(now));
	if (w->said == NET_POLICY_SAY_RESET)
		json_put_str(&o, "reason", "policy reset to default deny-all");
	else
		json_put_str(&o, "enforcementMode", EGRESS_ENFORCEMENT);
	if (w->in_vain)
		json_put_str(&o, "reason", "no matching targets found");
	json_close(&o);
	egress_reply_json(r, 200, json_done(&o), &out);
}

/* -- who asks ------------------------------------------------------------- */

static const struct change_ops put_ops = {
	.claim = wish_claim,
	.check = put_check,
	.apply = put_apply,
	.reply = put_reply,
	.done = wish_done,
	.free = wish_free,
};

/* May have nothing to store, so it goes alone. */
static const struct change_ops delete_ops = {
	.check = put_check,
	.apply = put_apply,
	.reply = put_reply,
	.free = wish_free,
};

void net_policy_change_put(struct control *c, struct span id,
			   struct net_policy *p, changed_fn *fn, void *ctx)
{
	struct wish *w = wish_new(VERB_SET, id);

	w->next = p;
	w->fn = fn;
	w->ctx = ctx;
	change_submit(c, &put_ops, w, NULL);
}

void net_policy_change_set(struct control *c, struct span id,
			   struct net_policy *p, enum net_policy_said said,
			   struct httpd_request *r)
{
	struct wish *w = wish_new(VERB_SET, id);

	w->next = p;
	w->said = said;
	w->is_asked = true;
	change_submit(c, &put_ops, w, r);
}

void net_policy_change_patch(struct control *c, struct span id,
			     struct json *body, struct httpd_request *r)
{
	struct wish *w = wish_new(VERB_PATCH, id);

	w->body = body;
	w->is_asked = true;
	change_submit(c, &put_ops, w, r);
}

void net_policy_change_delete(struct control *c, struct span id,
			      struct json *body, struct httpd_request *r)
{
	struct wish *w = wish_new(VERB_DELETE, id);

	w->body = body;
	w->is_asked = true;
	change_submit(c, &delete_ops, w, r);
}

/* -- its end -------------------------------------------------------------- */

static enum change_step remove_check(struct control *c, void *data,
				     struct refusal *no)
{
	const struct wish *w = data;
	struct span id = span_str(w->id);

	if (!net_policies_find(&c->net_policies, id))
		return api_refuse(no, 404, "NOT_FOUND",
				  "there is no such policy");
	change_store_begin(c);
	net_policies_store_none(&c->net_policies, id, c->vault);
	return CHANGE_STORE;
}

static void remove_apply(struct control *c, void *data, uint64_t revision)
{
	const struct wish *w = data;
	char name[NET_POLICY_NAME_SIZE];

	(void)revision;
	net_policies_name(span_str(w->id), name);
	(void)policies_remove(&c->policies, span_str(name));
	net_policies_remove(&c->net_policies, span_str(w->id));
	change_publish_policies(c);
}

void net_policy_change_remove(struct control *c, struct span id, changed_fn *fn,
			      void *ctx)
{
	static const struct change_ops ops = {
		.claim = wish_claim,
		.check = remove_check,
		.apply = remove_apply,
		.done = wish_done,
		.free = wish_free,
	};
	struct wish *w = wish_new(VERB_SET, id);

	w->fn = fn;
	w->ctx = ctx;
	change_submit(c, &ops, w, NULL);
}
