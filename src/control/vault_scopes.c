/* SPDX-License-Identifier: Apache-2.0 */
/* vault_scopes.c - a map of vaults that owns them */

#include "src/control/vault_scopes.h"

#include "src/control/publish.h"
#include "src/control/vault_state.h"

void vault_scopes_init(struct vault_scopes *all)
{
	map_init(&all->by_id);
}

void vault_scopes_fini(struct vault_scopes *all)
{
	struct vault_state *s;
	size_t cursor = 0;

	while ((s = map_next(&all->by_id, &cursor, NULL)))
		vault_state_free(s);
	map_fini(&all->by_id);
}

struct vault_state *vault_scopes_find(const struct vault_scopes *all,
				      struct span id)
{
	return map_find(&all->by_id, id);
}

void vault_scopes_put(struct vault_scopes *all, struct vault_state *s)
{
	vault_state_free(map_set(&all->by_id, span_str(s->scope), s));
}

struct vault_state *vault_scopes_take(struct vault_scopes *all, struct span id)
{
	return map_take(&all->by_id, id);
}

void vault_scopes_publish(const struct vault_scopes *all,
			  struct gateway_link *g)
{
	const struct vault_state *s;
	size_t cursor = 0;

	while ((s = map_next(&all->by_id, &cursor, NULL)))
		publish_bindings(g, s);
}

void vault_scopes_publish_ends(const struct vault_scopes *all,
			       const struct vault_scopes *before,
			       struct gateway_link *g)
{
	const struct vault_state *s;
	struct vault_state *none;
	struct span id;
	size_t cursor = 0;

	while ((s = map_next(&before->by_id, &cursor, &id))) {
		if (map_find(&all->by_id, id))
			continue;
		none = vault_state_new(s->scope);
		publish_bindings(g, none);
		vault_state_free(none);
	}
}
