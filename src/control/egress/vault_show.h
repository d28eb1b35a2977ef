/* SPDX-License-Identifier: Apache-2.0 */
/* vault_show.h - a sandbox's vault as its clients see it (contract 2.4)
 *
 *   {"revision", "credentials": [{"name", "sourceType", "revision"}],
 *    "bindings": [{"name", "revision", "match", "auth": {"type", "name"?}}]}
 *
 * In order of names; no value, and no name of a credential or of a custom
 * header with a binding. The revision of a binding is that of the vault.
 */
#pragma once

#include <stdbool.h>

#include "src/base/span.h"

struct httpd_request;
struct vault_state;

enum vault_shown {
	VAULT_SHOW_ALL,
	VAULT_SHOW_CREDENTIALS,
	VAULT_SHOW_BINDINGS,
};

/* Each ends the request. */
void vault_show(struct httpd_request *r, unsigned status,
		const struct vault_state *s, enum vault_shown shown);
/* 404 when there is none of that name. */
void vault_show_credential(struct httpd_request *r, const struct vault_state *s,
			   struct span name);
void vault_show_binding(struct httpd_request *r, const struct vault_state *s,
			struct span name);
