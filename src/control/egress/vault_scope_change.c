/* SPDX-License-Identifier: Apache-2.0 */
/* vault_scope_change.c - created, patched, deleted
 *
 * Each goes alone in the queue, since each is a transaction of a scope of its
 * own. A vault that is deleted goes with its revision: the next one begins at
 * 1 again.
 */

#include "src/control/egress/vault_scope_change.h"

#include <stdlib.h>

#include "policy/binding.h"
#include "src/base/err.h"
#include "src/control/api.h"
#include "src/control/control.h"
#include "src/control/egress/coverage.h"
#include "src/control/egress/egress_inside.h"
#include "src/control/egress/vault_show.h"
#include "src/control/lifecycle/lifecycle.h"
#include "src/control/publish.h"
#include "src/control/vault_change.h"
#include "src/control/vault_link.h"
#include "src/control/vault_state.h"

struct wish {
	struct vault_change *change; /* NULL: the whole vault goes */
	struct vault_state *fresh;   /* the vault that is created, until then */
	changed_fn *fn;		     /* who asked from inside, or NULL */
	void *ctx;
	char id[BOX_ID_SIZE];
};

static struct wish *wish_new(struct span id)
{
	struct wish *w = must_alloc(sizeof(*w));

	(void)span_copy(id, w->id, sizeof(w->id));
	return w;
}

static void wish_free(void *data)
{
	struct wish *w = data;

	vault_change_free(w->change);
	vault_state_free(w->fresh);
	free(w);
}

/* The one that the change is made to, or NULL. */
static struct vault_state *wish_state(const struct control *c,
				      const struct wish *w)
{
	return vault_scopes_find(&c->scopes, span_str(w->id));
}

/* -- may it be ------------------------------------------------------------ */

static int binding_check(const struct binding *b, const struct net_policy *p,
			 const struct policy_opened *overlay,
			 const struct policy_opened *policy, struct diag *d)
{
	int r = coverage_check_ports(b, d);

	return r ? r
		 : coverage_check(b, p, policy_opened_get(overlay),
				  policy_opened_get(policy), d);
}

/* The bindings that it brings; those that are there were checked with the
 * policy. */
static int bindings_check(const struct control *c, const struct wish *w,
			  struct diag *d)
{
	const struct net_policy *p =
		net_policies_find(&c->net_policies, span_str(w->id));
	struct policy_opened overlay, policy;
	char name[NET_POLICY_NAME_SIZE];
	unsigned i;
	int r = 0;

	if (!p)
		return diag_set(d, 0, 0, EGRESS_NO_POLICY);
	net_policies_name(span_str(w->id), name);
	policy_entry_open(c->policies.overlay, &overlay);
	policy_entry_open(policies_find(&c->policies, span_str(name)), &policy);
	for (i = 0; i < w->change->binding_count && !r; i++)
		if (w->change->bindings[i].binding)
			r = binding_check(w->change->bindings[i].binding, p,
					  &overlay, &policy, d);
	policy_opened_fini(&overlay);
	policy_opened_fini(&policy);
	return r;
}

static const struct box *box_of(const struct control *c, const struct wish *w)
{
	return c->lifecycle ? boxes_find(&c->lifecycle->boxes, span_str(w->id))
			    : NULL;
}

static enum change_step wish_store(struct control *c, const struct wish *w,
				   const struct vault_state *s,
				   struct refusal *no)
{
	int r = vault_change_check(w->change, s, &no->diag);

	if (r && w->change->expected >= 0 &&
	    (uint64_t)w->change->expected != s->revision) {
		no->status = 409;
		return CHANGE_REFUSE;
	}
	if (!r)
		r = bindings_check(c, w, &no->diag);
	if (r)
		return CHANGE_REFUSE; /* 400 */
	vault_link_begin(c->vault, w->id, (int64_t)s->revision);
	vault_change_store(w->change, c->vault);
	return CHANGE_STORE;
}

static enum change_step create_check(struct control *c, void *data,
				     struct refusal *no)
{
	struct wish *w = data;
	const struct box *b = box_of(c, w);

	if (!b)
		return api_refuse(no, 404, "NOT_FOUND", "sandbox not found");
	/* its vault is deleted, or soon will be: another one would outlive it
	 */
	if (b->state == BOX_STOPPING)
		return api_refuse(no, 409, "STOPPING",
				  "the sandbox is being removed");
	if (wish_state(c, w))
		return api_refuse(no, 409, "EXISTS",
				  "credential vault already exists");
	if (!w->fresh)
		w->fresh = vault_state_new(w->id);
	return wish_store(c, w, w->fresh, no);
}

static enum change_step patch_check(struct control *c, void *data,
				    struct refusal *no)
{
	const struct wish *w = data;
	const struct vault_state *s = wish_state(c, w);

	if (!s)
		return api_refuse(no, 404, "NOT_FOUND",
				  "credential vault not found");
	return wish_store(c, w, s, no);
}

static enum change_step remove_check(struct control *c, void *data,
				     struct refusal *no)
{
	const struct wish *w = data;

	if (!wish_state(c, w))
		return api_refuse(no, 404, "NOT_FOUND",
				  "credential vault not found");
	vault_link_begin(c->vault, w->id, -1);
	vault_link_remove(c->vault, RECORD_NONE, SPAN(""));
	return CHANGE_STORE;
}

/* -- it is ---------------------------------------------------------------- */

static void put_apply(struct control *c, void *data, uint64_t revision)
{
	struct wish *w = data;
	struct vault_state *s = w->fresh;

	if (s)
		vault_scopes_put(&c->scopes, take_ptr(w->fresh));
	else
		s = wish_state(c, w);
	vault_change_apply(w->change, s, revision);
	publish_bindings(c->gateway, s);
}

static void remove_apply(struct control *c, void *data, uint64_t revision)
{
	const struct wish *w = data;
	struct vault_state *none = vault_state_new(w->id);

	(void)revision;
	vault_state_free(vault_scopes_take(&c->scopes, span_str(w->id)));
	publish_bindings(c->gateway, none);
	vault_state_free(none);
}

static void reply(struct control *c, const struct wish *w, unsigned status,
		  struct httpd_request *r)
{
	const struct vault_state *s = wish_state(c, w);

	if (s)
		vault_show(r, status, s, VAULT_SHOW_ALL);
	else /* a later change has deleted it by now */
		egress_refuse(r, 404, "credential vault not found");
}

static void create_reply(struct control *c, void *data, struct httpd_request *r)
{
	reply(c, data, 201, r);
}

static void patch_reply(struct control *c, void *data, struct httpd_request *r)
{
	reply(c, data, 200, r);
}

static void remove_reply(struct control *c, void *data, struct httpd_request *r)
{
	(void)c;
	(void)data;
	httpd_reply_empty(r);
}

static void wish_done(struct control *c, void *data, const struct refusal *why)
{
	const struct wish *w = data;

	(void)c;
	if (w->fn)
		w->fn(w->ctx, why);
}

/* -- who asks ------------------------------------------------------------- */

static const struct change_ops put_ops[] = {
	[VAULT_SCOPE_CREATE] = {
		.check = create_check,
		.apply = put_apply,
		.reply = create_reply,
		.free = wish_free,
	},
	[VAULT_SCOPE_PATCH] = {
		.check = patch_check,
		.apply = put_apply,
		.reply = patch_reply,
		.free = wish_free,
	},
};

static const struct change_ops remove_ops = {
	.check = remove_check,
	.apply = remove_apply,
	.reply = remove_reply,
	.done = wish_done,
	.free = wish_free,
};

void vault_scope_change_put(struct control *c, struct span id,
			    enum vault_scope_verb verb,
			    struct vault_change *change,
			    struct httpd_request *r)
{
	struct wish *w = wish_new(id);

	w->change = change;
	change_submit(c, &put_ops[verb], w, r);
}

void vault_scope_change_delete(struct control *c, struct span id,
			       struct httpd_request *r)
{
	change_submit(c, &remove_ops, wish_new(id), r);
}

void vault_scope_change_remove(struct control *c, struct span id,
			       changed_fn *fn, void *ctx)
{
	struct wish *w = wish_new(id);

	w->fn = fn;
	w->ctx = ctx;
	change_submit(c, &remove_ops, w, NULL);
}
