/* SPDX-License-Identifier: Apache-2.0 */
/* vault_api.c - /credential-vault of one sandbox (contract 2.1-2.6) */

#include "src/control/egress/egress_inside.h"

#include "src/base/diag.h"
#include "src/control/control.h"
#include "src/control/egress/vault_request.h"
#include "src/control/egress/vault_scope_change.h"
#include "src/control/egress/vault_show.h"
#include "src/control/vault_state.h"

/* NULL: answered. */
static const struct vault_state *vault_of(struct control *c,
					  const struct box *b,
					  struct httpd_request *r)
{
	const struct vault_state *s =
		vault_scopes_find(&c->scopes, span_str(b->id));

	if (!s)
		egress_refuse(r, 404, "credential vault not found");
	return s;
}

/* Without the credential proxy nothing would be put on any request. False:
 * answered. */
static bool may_write(const struct box *b, struct httpd_request *r)
{
	if (b->credential_proxy)
		return true;
	egress_refuse(r, 412,
		      "credential vault requires transparent mitmproxy: the "
		      "sandbox was created without credentialProxy.enabled");
	return false;
}

static void vault_put(struct control *c, const struct box *b,
		      struct httpd_request *r, enum vault_scope_verb verb)
{
	struct vault_change *change;
	struct diag d = { 0 };
	int error;

	if (verb == VAULT_SCOPE_CREATE)
		error = vault_request_parse_create(httpd_body(r), &change, &d);
	else
		error = vault_request_parse_patch(httpd_body(r), &change, &d);
	if (error)
		egress_refuse(r, 400, "%s", d.msg);
	else
		vault_scope_change_put(c, span_str(b->id), verb, change, r);
}

void egress_vault(void *ctx, struct httpd_request *r)
{
	struct span method = httpd_method(r);
	const struct box *b = egress_box(ctx, r);
	const struct vault_state *s;

	if (!b)
		return;
	if (span_eq(method, SPAN("GET"))) {
		s = vault_of(ctx, b, r);
		if (s)
			vault_show(r, 200, s, VAULT_SHOW_ALL);
	} else if (span_eq(method, SPAN("POST"))) {
		if (may_write(b, r))
			vault_put(ctx, b, r, VAULT_SCOPE_CREATE);
	} else if (span_eq(method, SPAN("PATCH"))) {
		if (may_write(b, r))
			vault_put(ctx, b, r, VAULT_SCOPE_PATCH);
	} else if (span_eq(method, SPAN("DELETE"))) {
		if (may_write(b, r))
			vault_scope_change_delete(ctx, span_str(b->id), r);
	} else {
		egress_refuse_method(r, "GET, POST, PATCH, DELETE");
	}
}

/* Values in the clear are for the gateway, which gets them from the vault. */
void egress_vault_active(void *ctx, struct httpd_request *r)
{
	(void)ctx;
	if (span_eq(httpd_method(r), SPAN("GET")))
		egress_refuse(r, 403, "forbidden");
	else
		egress_refuse_method(r, "GET");
}

/* "credentials", "credentials/{name}" and the same of bindings. */
void egress_vault_part(void *ctx, struct httpd_request *r)
{
	bool credentials = span_starts(httpd_path(r),
				       SPAN("/credential-vault/credentials"));
	const struct box *b = egress_box(ctx, r);
	struct span name = httpd_param(r, "name");
	const struct vault_state *s;

	if (!b)
		return;
	if (!span_eq(httpd_method(r), SPAN("GET"))) {
		egress_refuse_method(r, "GET");
		return;
	}
	s = vault_of(ctx, b, r);
	if (!s)
		return;
	if (!name.ptr)
		vault_show(r, 200, s,
			   credentials ? VAULT_SHOW_CREDENTIALS
				       : VAULT_SHOW_BINDINGS);
	else if (credentials)
		vault_show_credential(r, s, name);
	else
		vault_show_binding(r, s, name);
}
