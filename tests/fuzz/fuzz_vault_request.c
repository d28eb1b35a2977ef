/* fuzz: control */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_vault_request.c - any bytes as a request for a sandbox's vault, or as
 * its network policy: taken whole, or refused with a sentence */

#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/control/egress/net_policy.h"
#include "src/control/egress/vault_request.h"
#include "src/control/vault_change.h"
#include "src/text/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef int parse_fn(struct span text, struct vault_change **ret,
		     struct diag *d);

static void one_request(struct span text, parse_fn *parse)
{
	struct vault_change *c = NULL;
	struct diag d = { 0 };
	unsigned i;

	if (parse(text, &c, &d)) {
		must(diag_is_set(&d));
		return;
	}
	for (i = 0; i < c->credential_count; i++)
		must(c->credentials[i].name.len);
	for (i = 0; i < c->binding_count; i++)
		must(c->bindings[i].name.len);
	vault_change_free(c);
}

/* What is taken is written so that it is taken again, and as the same. */
static void one_policy(struct span text)
{
	struct net_policy *p = NULL, *again = NULL;
	struct json *j CLEANUP_JSON = NULL;
	struct json *k CLEANUP_JSON = NULL;
	struct buf out = BUF_INIT(1 << 24);
	struct diag d = { 0 };
	struct json_out o;
	unsigned total;

	if (json_parse(text, &j, &d))
		return;
	if (net_policy_parse(j, &p, &total, &d))
		return;
	json_start(&o, &out);
	net_policy_emit(&o, NULL, p);
	must(!json_done(&o));
	must(!json_parse(buf_peek(&out), &k, &d));
	must(!net_policy_parse(k, &again, &total, &d));
	must(again->count == p->count &&
	     again->default_allow == p->default_allow);
	net_policy_free(again);
	again = NULL;
	if (!net_policy_patch(p, json_find(j, "egress"), &again, &total, &d))
		must(again->count <= p->count);
	net_policy_free(again);
	net_policy_free(p);
	buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = span_of(data, size);

	one_request(text, vault_request_parse_create);
	one_request(text, vault_request_parse_patch);
	one_policy(text);
	return 0;
}
