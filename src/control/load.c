/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - a chain of readings from the vault, then one exchange */

#include "src/control/load.h"

#include <stdlib.h>

#include "policy/binding.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/control.h"
#include "src/control/egress/net_policies.h"
#include "src/control/gateway_link.h"
#include "src/control/lifecycle/lifecycle.h"
#include "src/control/publish.h"
#include "src/control/vault_link.h"
#include "src/control/vault_scopes.h"
#include "src/control/vault_state.h"
#include "src/text/json.h"

/* Freed late: a reading that was given up still has callbacks to come. */
struct load {
	struct control *control; /* NULL: given up */
	unsigned step;
	struct vault_state *node;
	struct vault_state *reading; /* credentials and bindings go there */
	struct vault_scopes scopes;
	const char *scope;   /* the one being read; of a box */
	size_t scope_cursor; /* of the boxes whose scopes were read */
	struct net_policy_texts net_texts;
	struct net_policies net_policies;
	struct sandboxes sandboxes;
	struct tokens tokens;
	struct boxes boxes;
	struct captures captures;
	struct list policies; /* struct stored_policy */
};

struct stored_policy {
	struct list link;
	struct span name, text; /* in bytes */
	char bytes[];
};

static void stored_policies_free(struct list *all)
{
	struct stored_policy *p;

	while ((p = list_first(all, struct stored_policy, link))) {
		list_remove(&p->link);
		free(p);
	}
}

static void load_destroy(struct load *l)
{
	vault_state_free(l->node);
	vault_scopes_fini(&l->scopes);
	net_policy_texts_fini(&l->net_texts);
	net_policies_fini(&l->net_policies);
	sandboxes_fini(&l->sandboxes);
	tokens_fini(&l->tokens);
	boxes_fini(&l->boxes);
	captures_fini(&l->captures);
	stored_policies_free(&l->policies);
	free(l);
}

/* -- records -------------------------------------------------------------- */

static void complain(const char *what, const struct msg_record *record,
		     const struct diag *d)
{
	char name[128];

	log_error("a stored %s (\"%s\") could not be read and is left out: %s",
		  what, log_escape(span_str(record->name), name, sizeof(name)),
		  d->msg[0] ? d->msg : "it is damaged");
}

static void on_credential(void *ctx, const struct msg_record *record,
			  struct span value)
{
	struct load *l = ctx;

	(void)value; /* never there */
	vault_state_put_credential(l->reading, span_str(record->name),
				   record->revision);
}

static void on_binding(void *ctx, const struct msg_record *record,
		       struct span value)
{
	struct json *j CLEANUP_JSON = NULL;
	struct load *l = ctx;
	struct diag d = { 0 };
	struct binding *b;

	if (json_parse(value, &j, &d) || binding_parse(j, &b, &d))
		complain("binding", record, &d);
	else
		vault_state_put_binding(l->reading, b, record->revision);
}

static void on_sandbox(void *ctx, const struct msg_record *record,
		       struct span value)
{
	struct load *l = ctx;
	struct diag d = { 0 };
	struct sandbox *s;

	if (sandbox_parse(value, span_str(record->name), &s, &d))
		complain("sandbox", record, &d);
	else
		sandboxes_put(&l->sandboxes, s);
}

static void policy_keep(struct load *l, struct span name, struct span value)
{
	struct stored_policy *p = must_alloc(sizeof(*p) + name.len + value.len);

	memcpy(p->bytes, name.ptr, name.len);
	memcpy(p->bytes + name.len, value.ptr, value.len);
	p->name = span_of(p->bytes, name.len);
	p->text = span_of(p->bytes + name.len, value.len);
	list_init(&p->link);
	list_push(&l->policies, &p->link);
}

static void on_policy(void *ctx, const struct msg_record *record,
		      struct span value)
{
	policy_keep(ctx, span_str(record->name), value);
}

static void on_net_policy(void *ctx, const struct msg_record *record,
			  struct span value)
{
	const struct diag none = { 0 };
	struct load *l = ctx;

	if (!net_policy_texts_add(&l->net_texts, span_str(record->name), value))
		complain("network policy", record, &none);
}

static void on_token(void *ctx, const struct msg_record *record,
		     struct span value)
{
	const struct diag none = { 0 };
	struct load *l = ctx;
	struct token *t;

	if (token_parse_record(span_str(record->name), value, &t))
		complain("token", record, &none);
	else
		tokens_put(&l->tokens, t);
}

static void on_box(void *ctx, const struct msg_record *record,
		   struct span value)
{
	struct load *l = ctx;
	struct diag d = { 0 };
	struct box *b;

	if (box_parse(value, &b, &d))
		complain("box", record, &d);
	else
		boxes_put(&l->boxes, b);
}

static void on_capture(void *ctx, const struct msg_record *record,
		       struct span value)
{
	struct load *l = ctx;
	struct diag d = { 0 };
	struct capture *s;

	if (capture_parse(value, &s, &d))
		complain("snapshot", record, &d);
	else
		captures_put(&l->captures, s);
}

/* -- the exchange --------------------------------------------------------- */

static bool was_read(const struct list *policies, struct span name)
{
	list_for_each(it, policies)
	{
		if (span_eq(container_of(it, struct stored_policy, link)->name,
			    name))
			return true;
	}
	return false;
}

static void exchange_policies(struct control *c, const struct load *l)
{
	struct stored_policy *stored;
	struct policy_entry *e;
	struct diag d;
	int r;
	unsigned i = 0;

	while (i < c->policies.api_count) {
		e = c->policies.entries[i];
		if (was_read(&l->policies, e->model->name))
			i++;
		else
			policies_remove(&c->policies, e->model->name);
	}
	list_for_each(it, &l->policies)
	{
		stored = container_of(it, struct stored_policy, link);
		d = (struct diag){ 0 };
		e = NULL;
		r = policies_make(&c->policies, stored->text, stored->name, &e,
				  NULL, &d);
		if (!r)
			r = policies_check(&c->policies, e, &d);
		if (!r)
			policies_put(&c->policies, take_ptr(e));
		else
			log_error("stored policy \"%.*s\" is not in force: %s",
				  SPAN_FMT(stored->name), d.msg);
		policy_entry_free(e);
	}
}

/* What is enforced of the network policies of sandboxes. */
static void net_policies_apply(struct load *l)
{
	struct buf text CLEANUP(buf_fini) = BUF_INIT(NET_POLICY_OWN_MAX);
	const struct net_policy *p;
	char name[NET_POLICY_NAME_SIZE];
	size_t cursor = 0;
	struct json_out o;
	struct span id;

	net_policy_texts_parse(&l->net_texts, &l->net_policies);
	while (map_next(&l->net_policies.by_id, &cursor, &id)) {
		p = net_policies_find(&l->net_policies, id);
		net_policies_name(id, name);
		buf_clear(&text);
		json_start(&o, &text);
		net_policy_emit_own(&o, p, id);
		if (!json_done(&o))
			policy_keep(l, span_str(name), buf_peek(&text));
	}
}

static void exchange_net_policies(struct control *c, struct load *l)
{
	struct net_policies old = c->net_policies;

	c->net_policies = l->net_policies;
	l->net_policies = old;
}

/* Vaults that are not there any more are empty at the gateway. */
static void exchange_scopes(struct control *c, struct load *l)
{
	struct vault_scopes old = c->scopes;

	c->scopes = l->scopes;
	l->scopes = old;
	vault_scopes_publish_ends(&c->scopes, &l->scopes, c->gateway);
}

/* Sandboxes that are not there any more are dropped at the gateway, and their
 * locks end: those that this control put are not ended by restoring others. */
static void exchange_sandboxes(struct control *c, struct load *l)
{
	struct sandboxes old = c->sandboxes;
	struct sandbox *s;
	struct span id;
	size_t cursor = 0;

	c->sandboxes = l->sandboxes;
	sandboxes_init(&l->sandboxes);
	while ((s = map_next(&old.by_id, &cursor, &id)))
		if (!sandboxes_find(&c->sandboxes, id)) {
			publish_sandbox_drop(c->gateway, s);
			locks_drop(c, id);
		}
	sandboxes_fini(&old);
}

static void load_finish(struct load *l)
{
	struct control *c = l->control;

	net_policies_apply(l);
	exchange_policies(c, l);
	exchange_net_policies(c, l);
	exchange_sandboxes(c, l);
	exchange_scopes(c, l);
	vault_state_free(c->node);
	c->node = take_ptr(l->node);
	tokens_fini(&c->tokens);
	c->tokens = l->tokens;
	tokens_init(&l->tokens);
	lifecycle_loaded(c->lifecycle, &l->boxes, &l->captures);
	c->load = NULL;
	load_destroy(l);
	control_loaded(c);
}

/* -- the chain ------------------------------------------------------------ */

static const struct {
	enum record_kind kind;
	const char *scope;
	vault_record_fn *record;
} steps[] = {
	{ RECORD_CREDENTIAL, "", on_credential },
	{ RECORD_BINDING, "", on_binding },
	{ RECORD_SANDBOX, VAULT_SCOPE_CONTROL, on_sandbox },
	{ RECORD_POLICY, VAULT_SCOPE_CONTROL, on_policy },
	{ RECORD_TOKEN, VAULT_SCOPE_CONTROL, on_token },
	{ RECORD_BOX, VAULT_SCOPE_CONTROL, on_box },
	{ RECORD_SNAPSHOT, VAULT_SCOPE_CONTROL, on_capture },
	{ RECORD_NET_POLICY, VAULT_SCOPE_CONTROL, on_net_policy },
};

static void on_step_done(void *ctx, int status);

static void load_step(struct load *l)
{
	vault_link_read(l->control->vault, steps[l->step].kind,
			steps[l->step].scope, steps[l->step].record,
			on_step_done, l);
}

/* The reading is over before its end. */
static void load_give_up(struct load *l, int status)
{
	if (l->control) {
		log_error("the vault could not be read: %s", err_text(status));
		l->control->load = NULL;
	}
	load_destroy(l);
}

/* -- the vaults of sandboxes ---------------------------------------------- */

static void scope_next(struct load *l);

static void on_scope_bindings(void *ctx, int status)
{
	struct load *l = ctx;

	if (status || !l->control) {
		load_give_up(l, status);
		return;
	}
	scope_next(l);
}

static void on_scope_credentials(void *ctx, int status)
{
	struct load *l = ctx;

	if (status || !l->control) {
		load_give_up(l, status);
		return;
	}
	vault_link_read(l->control->vault, RECORD_BINDING, l->reading->scope,
			on_binding, on_scope_bindings, l);
}

/* A scope that was never written to is no vault. */
static void on_scope_revision(void *ctx, int status, uint64_t revision,
			      const char *text)
{
	struct load *l = ctx;

	(void)text;
	if (status || !l->control) {
		load_give_up(l, status);
		return;
	}
	if (!revision) {
		scope_next(l);
		return;
	}
	l->reading = vault_state_new(l->scope);
	l->reading->revision = revision;
	vault_scopes_put(&l->scopes, l->reading);
	vault_link_read(l->control->vault, RECORD_CREDENTIAL, l->scope,
			on_credential, on_scope_credentials, l);
}

static void scope_next(struct load *l)
{
	const struct box *b;

	do {
		b = map_next(&l->boxes.by_id, &l->scope_cursor, NULL);
	} while (b && !b->credential_proxy);
	if (!b) {
		load_finish(l);
		return;
	}
	l->scope = b->id;
	vault_link_revision(l->control->vault, b->id, on_scope_revision, l);
}

static void on_step_done(void *ctx, int status)
{
	struct load *l = ctx;

	if (status || !l->control) {
		load_give_up(l, status);
		return;
	}
	if (++l->step < ARRAY_LEN(steps))
		load_step(l);
	else
		scope_next(l);
}

static void on_revision(void *ctx, int status, uint64_t revision,
			const char *text)
{
	struct load *l = ctx;

	(void)text;
	if (status || !l->control) {
		load_give_up(l, status);
		return;
	}
	l->node->revision = revision;
	load_step(l);
}

void load_start(struct control *c)
{
	struct load *l = must_alloc(sizeof(*l));

	load_free(c->load);
	c->load = l;
	l->control = c;
	l->node = l->reading = vault_state_new("");
	vault_scopes_init(&l->scopes);
	net_policy_texts_init(&l->net_texts);
	net_policies_init(&l->net_policies);
	sandboxes_init(&l->sandboxes);
	tokens_init(&l->tokens);
	boxes_init(&l->boxes);
	captures_init(&l->captures);
	list_init(&l->policies);
	vault_link_revision(c->vault, "", on_revision, l);
}

struct load *load_free(struct load *l)
{
	if (l)
		l->control = NULL; /* destroyed by its next callback */
	return NULL;
}
