/* SPDX-License-Identifier: Apache-2.0 */
/* vault_show.c - states, lists and single items */

#include "src/control/egress/vault_show.h"

#include <stdlib.h>

#include "src/control/egress/egress_inside.h"
#include "src/control/vault_state.h"

static void put_credentials(struct json_out *o, const struct vault_state *s)
{
	struct vault_credential **all;
	unsigned count, i;

	all = vault_state_credentials(s, &count);
	json_open_array(o, "credentials");
	for (i = 0; i < count; i++)
		vault_credential_emit(o, NULL, all[i]);
	json_close(o);
	free(all);
}

static void put_bindings(struct json_out *o, const struct vault_state *s)
{
	struct binding **all;
	unsigned count, i;

	all = vault_state_bindings(s, &count);
	json_open_array(o, "bindings");
	for (i = 0; i < count; i++)
		binding_emit_shown(o, all[i], s->revision);
	json_close(o);
	free(all);
}

void vault_show(struct httpd_request *r, unsigned status,
		const struct vault_state *s, enum vault_shown shown)
{
	struct buf out = BUF_INIT(EGRESS_REPLY_MAX);
	struct json_out o;

	json_start(&o, &out);
	json_open_object(&o, NULL);
	json_put_u64(&o, "revision", s->revision);
	if (shown != VAULT_SHOW_BINDINGS)
		put_credentials(&o, s);
	if (shown != VAULT_SHOW_CREDENTIALS)
		put_bindings(&o, s);
	json_close(&o);
	egress_reply_json(r, status, json_done(&o), &out);
}

void vault_show_credential(struct httpd_request *r, const struct vault_state *s,
			   struct span name)
{
	const struct vault_credential *credential =
		vault_state_credential(s, name);
	struct buf out = BUF_INIT(EGRESS_REPLY_MAX);
	struct json_out o;

	if (!credential) {
		egress_refuse(r, 404, "credential not found");
		return;
	}
	json_start(&o, &out);
	vault_credential_emit(&o, NULL, credential);
	egress_reply_json(r, 200, json_done(&o), &out);
}

void vault_show_binding(struct httpd_request *r, const struct vault_state *s,
			struct span name)
{
	const struct binding *b = vault_state_binding(s, name);
	struct buf out = BUF_INIT(EGRESS_REPLY_MAX);
	struct json_out o;

	if (!b) {
		egress_refuse(r, 404, "binding not found");
		return;
	}
	json_start(&o, &out);
	binding_emit_shown(&o, b, s->revision);
	egress_reply_json(r, 200, json_done(&o), &out);
}
