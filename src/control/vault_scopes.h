/* SPDX-License-Identifier: Apache-2.0 */
/* vault_scopes.h - the credential vaults of single sandboxes, by their ids
 *
 * A sandbox has one from its creation through the egress API until its
 * deletion, or the end of the sandbox. One that is there may be empty.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/map.h"

struct gateway_link;
struct vault_state;

struct vault_scopes {
	struct map by_id; /* sandbox id -> struct vault_state, owned */
};

void vault_scopes_init(struct vault_scopes *all);
void vault_scopes_fini(struct vault_scopes *all);
struct vault_state *vault_scopes_find(const struct vault_scopes *all,
				      struct span id);
void vault_scopes_put(struct vault_scopes *all, struct vault_state *s);
/* The caller's; NULL: there is none. */
WUNRES struct vault_state *vault_scopes_take(struct vault_scopes *all,
					     struct span id);
/* The bindings of each, to a gateway that knows none. */
void vault_scopes_publish(const struct vault_scopes *all,
			  struct gateway_link *g);
/* before: those that the gateway knows. What is not in all is empty there from
 * now on. */
void vault_scopes_publish_ends(const struct vault_scopes *all,
			       const struct vault_scopes *before,
			       struct gateway_link *g);
