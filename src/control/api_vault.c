/* SPDX-License-Identifier: Apache-2.0 */
/* api_vault.c - routes of credentials, bindings and the vault as a whole */

#include "src/control/api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "policy/binding.h"
#include "src/base/err.h"
#include "src/control/control.h"
#include "src/control/gateway_link.h"
#include "src/control/publish.h"
#include "src/control/vault_change.h"
#include "src/control/vault_link.h"
#include "src/control/vault_state.h"

/* What the answer to a change shows. */
enum shown { SHOWN_STATE, SHOWN_CREDENTIAL, SHOWN_BINDING, SHOWN_NOTHING };

struct wish {
	struct vault_change *change;
	enum shown shown;
	bool is_new; /* the thing was not there before: 201 */
	char name[BINDING_NAME_MAX + 1];
};

/* -- reading -------------------------------------------------------------- */

typedef int emit_fn(const struct vault_state *s, struct buf *out);

static void reply_state(struct control *c, struct httpd_request *r,
			emit_fn *emit)
{
	struct buf out = BUF_INIT(API_REPLY_MAX);
	int error;

	if (!api_ready(c, r))
		return;
	error = emit(c->node, &out);
	api_reply_buf(r, 200, error, &out);
}

void api_vault_get(void *ctx, struct httpd_request *r)
{
	reply_state(ctx, r, vault_state_emit);
}

void api_credentials_list(void *ctx, struct httpd_request *r)
{
	reply_state(ctx, r, vault_state_emit_credentials);
}

void api_bindings_list(void *ctx, struct httpd_request *r)
{
	reply_state(ctx, r, vault_state_emit_bindings);
}

static void reply_credential(struct control *c, struct httpd_request *r,
			     struct span name, unsigned status)
{
	const struct vault_credential *credential =
		vault_state_credential(c->node, name);
	struct buf out = BUF_INIT(API_REPLY_MAX);
	struct json_out o;

	if (!credential) {
		api_not_found(r, "credential");
		return;
	}
	json_start(&o, &out);
	vault_credential_emit(&o, NULL, credential);
	api_reply_buf(r, status, json_done(&o), &out);
}

static void reply_binding(struct control *c, struct httpd_request *r,
			  struct span name, unsigned status)
{
	const struct binding *b = vault_state_binding(c->node, name);
	struct buf out = BUF_INIT(API_REPLY_MAX);

	if (!b) {
		api_not_found(r, "binding");
		return;
	}
	api_reply_buf(r, status, binding_emit(b, true, &out), &out);
}

void api_credential_get(void *ctx, struct httpd_request *r)
{
	if (api_ready(ctx, r))
		reply_credential(ctx, r, httpd_param(r, "name"), 200);
}

void api_binding_get(void *ctx, struct httpd_request *r)
{
	if (api_ready(ctx, r))
		reply_binding(ctx, r, httpd_param(r, "name"), 200);
}

/* -- changing ------------------------------------------------------------- */

/* A patch answers 400 where a request about one thing says 404 or 409; a
 * revision that moved on is 409 for both. */
static enum change_step wish_refuse(const struct wish *w,
				    const struct vault_state *s, int r,
				    struct refusal *no)
{
	const int64_t expected = w->change->expected;

	if (expected >= 0 && (uint64_t)expected != s->revision)
		return api_refuse(no, 409, "REVISION_CONFLICT",
				  "expectedRevision %lld does not match "
				  "current revision %llu",
				  (long long)expected,
				  (unsigned long long)s->revision);
	if (r == VAULT_CHANGE_E_CONFLICT && w->shown != SHOWN_STATE) {
		no->status = 409;
		no->code = "EXISTS";
	} else if (r == VAULT_CHANGE_E_ABSENT && w->shown != SHOWN_STATE) {
		no->status = 404;
		no->code = "NOT_FOUND";
	}
	return CHANGE_REFUSE;
}

static enum change_step wish_check(struct control *c, void *data,
				   struct refusal *no)
{
	struct wish *w = data;
	struct span name = span_str(w->name);
	int r;

	r = vault_change_check(w->change, c->node, &no->diag);
	if (r)
		return wish_refuse(w, c->node, r, no);
	if (w->shown == SHOWN_CREDENTIAL)
		w->is_new = !vault_state_credential(c->node, name);
	if (w->shown == SHOWN_BINDING)
		w->is_new = !vault_state_binding(c->node, name);
	vault_link_begin(c->vault, c->node->scope, (int64_t)c->node->revision);
	vault_change_store(w->change, c->vault);
	return CHANGE_STORE;
}

static void wish_apply(struct control *c, void *data, uint64_t revision)
{
	struct wish *w = data;

	vault_change_apply(w->change, c->node, revision);
	publish_bindings(c->gateway, c->node);
}

static void wish_reply(struct control *c, void *data, struct httpd_request *r)
{
	const struct wish *w = data;
	unsigned status = w->is_new ? 201 : 200;

	switch (w->shown) {
	case SHOWN_STATE:
		reply_state(c, r, vault_state_emit);
		return;
	case SHOWN_CREDENTIAL:
		reply_credential(c, r, span_str(w->name), status);
		return;
	case SHOWN_BINDING:
		reply_binding(c, r, span_str(w->name), status);
		return;
	case SHOWN_NOTHING:
		httpd_reply_empty(r);
		return;
	}
}

static void wish_free(void *data)
{
	struct wish *w = data;

	vault_change_free(w->change);
	free(w);
}

/* Takes the change. */
static void wish_submit(struct control *c, struct httpd_request *r,
			struct vault_change *change, enum shown shown,
			struct span name)
{
	static const struct change_ops ops = {
		.check = wish_check,
		.apply = wish_apply,
		.reply = wish_reply,
		.free = wish_free,
	};
	struct wish *w = must_alloc(sizeof(*w));
	int64_t expected;

	w->change = change;
	w->shown = shown;
	(void)span_copy(name, w->name, sizeof(w->name));
	if (!api_expected_revision(r, &expected)) {
		wish_free(w);
		return;
	}
	if (expected >= 0)
		change->expected = expected;
	change_submit(c, &ops, w, r);
}

void api_vault_patch(void *ctx, struct httpd_request *r)
{
	struct vault_change *change;
	struct diag d = { 0 };

	if (vault_change_parse_patch(httpd_body(r), &change, &d))
		api_invalid(r, &d);
	else
		wish_submit(ctx, r, change, SHOWN_STATE, SPAN(""));
}

static void credential_set(struct control *c, struct httpd_request *r,
			   enum change_verb verb)
{
	struct span name = httpd_param(r, "name");
	struct vault_change *change;
	struct diag d = { 0 };

	if (vault_change_parse_credential(httpd_body(r), verb, name, &change,
					  &d))
		api_invalid(r, &d);
	else
		wish_submit(c, r, change, SHOWN_CREDENTIAL,
			    change->credentials[0].name);
}

static void binding_set(struct control *c, struct httpd_request *r,
			enum change_verb verb)
{
	struct span name = httpd_param(r, "name");
	struct vault_change *change;
	struct diag d = { 0 };

	if (vault_change_parse_binding(httpd_body(r), verb, name, &change, &d))
		api_invalid(r, &d);
	else
		wish_submit(c, r, change, SHOWN_BINDING,
			    change->bindings[0].name);
}

void api_credentials_post(void *ctx, struct httpd_request *r)
{
	credential_set(ctx, r, CHANGE_ADD);
}

void api_credential_put(void *ctx, struct httpd_request *r)
{
	credential_set(ctx, r, CHANGE_SET);
}

void api_credential_delete(void *ctx, struct httpd_request *r)
{
	struct span name = httpd_param(r, "name");

	wish_submit(ctx, r, vault_change_delete_credential(name), SHOWN_NOTHING,
		    name);
}

void api_bindings_post(void *ctx, struct httpd_request *r)
{
	binding_set(ctx, r, CHANGE_ADD);
}

void api_binding_put(void *ctx, struct httpd_request *r)
{
	binding_set(ctx, r, CHANGE_SET);
}

void api_binding_delete(void *ctx, struct httpd_request *r)
{
	struct span name = httpd_param(r, "name");

	wish_submit(ctx, r, vault_change_delete_binding(name), SHOWN_NOTHING,
		    name);
}

/* -- keeping the vault in order ------------------------------------------- */

static void on_maintained(void *ctx, int status, uint64_t revision,
			  const char *text)
{
	struct buf out = BUF_INIT(API_REPLY_MAX);
	struct httpd_request *r = ctx;
	struct json_out o;

	(void)revision;
	if (status) {
		httpd_reply_error(r, status == EPIPE ? 503 : 500,
				  "VAULT_FAILED", "%s", text);
		return;
	}
	json_start(&o, &out);
	json_open_object(&o, NULL);
	json_put_str(&o, "message", text);
	json_close(&o);
	api_reply_buf(r, 200, json_done(&o), &out);
}

void api_vault_rotate_dek(void *ctx, struct httpd_request *r)
{
	struct control *c = ctx;

	vault_link_maintain(c->vault, MAINTAIN_ROTATE_DEK, on_maintained, r);
}

void api_vault_verify(void *ctx, struct httpd_request *r)
{
	struct control *c = ctx;

	vault_link_maintain(c->vault, MAINTAIN_VERIFY, on_maintained, r);
}
