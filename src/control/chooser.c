/* SPDX-License-Identifier: Apache-2.0 */
/* chooser.c - policies by the ids that they name, and those that name none */

#include "src/control/chooser.h"

#include <stdlib.h>

#include "src/base/err.h"
#include "src/control/policies.h"
#include "src/control/sandboxes.h"

/* One policy that names an id; others of the same id follow in any order. */
struct choice {
	struct choice *next;
	struct policy_entry *entry;
};

static bool is_pattern(struct span id)
{
	return id.len && id.ptr[id.len - 1] == '*';
}

static bool is_broad(const struct policy_model *m)
{
	unsigned i;

	for (i = 0; i < m->id_count; i++)
		if (is_pattern(m->ids[i]))
			return true;
	return m->label_count > 0;
}

static void broad_add(struct chooser *c, struct policy_entry *e)
{
	if (c->broad_count == c->broad_room) {
		c->broad_room = MAX(2 * c->broad_room, 8u);
		c->broad = must_realloc(c->broad,
					c->broad_room * sizeof(*c->broad));
	}
	c->broad[c->broad_count++] = e;
}

void chooser_add(struct chooser *c, struct policy_entry *e)
{
	const struct policy_model *m = e->model;
	struct choice *choice;
	unsigned i;

	if (is_broad(m))
		broad_add(c, e);
	for (i = 0; i < m->id_count; i++) {
		if (is_pattern(m->ids[i]))
			continue;
		choice = must_alloc(sizeof(*choice));
		choice->entry = e;
		choice->next = map_find(&c->by_id, m->ids[i]);
		(void)map_set(&c->by_id, m->ids[i], choice);
	}
}

/* Without the choices of e. */
static struct choice *choices_without(struct choice *first,
				      const struct policy_entry *e)
{
	struct choice **at = &first, *choice;

	while ((choice = *at)) {
		if (choice->entry != e) {
			at = &choice->next;
			continue;
		}
		*at = choice->next;
		free(choice);
	}
	return first;
}

void chooser_remove(struct chooser *c, const struct policy_entry *e)
{
	const struct policy_model *m = e->model;
	struct choice *first;
	unsigned i;

	for (i = 0; i < c->broad_count; i++)
		if (c->broad[i] == e)
			c->broad[i--] = c->broad[--c->broad_count];
	for (i = 0; i < m->id_count; i++) {
		first = map_find(&c->by_id, m->ids[i]);
		if (!first)
			continue;
		first = choices_without(first, e);
		if (first)
			(void)map_set(&c->by_id, m->ids[i], first);
		else
			(void)map_take(&c->by_id, m->ids[i]);
	}
}

struct policy_entry *chooser_find(const struct chooser *c,
				  const struct sandbox *s)
{
	const struct choice *choice = map_find(&c->by_id, s->id);
	struct policy_entry *best = NULL;
	unsigned i;

	for (; choice; choice = choice->next)
		if (!best || policy_entry_precedes(choice->entry, best))
			best = choice->entry;
	for (i = 0; i < c->broad_count; i++)
		if ((!best || policy_entry_precedes(c->broad[i], best)) &&
		    policy_chooses(c->broad[i]->model, s->id, s->labels,
				   s->label_count))
			best = c->broad[i];
	return best;
}

void chooser_init(struct chooser *c)
{
	*c = (struct chooser){ 0 };
	map_init(&c->by_id);
}

void chooser_fini(struct chooser *c)
{
	struct choice *choice, *next;
	size_t cursor = 0;

	while ((choice = map_next(&c->by_id, &cursor, NULL)))
		for (; choice; choice = next) {
			next = choice->next;
			free(choice);
		}
	map_fini(&c->by_id);
	free(c->broad);
	chooser_init(c);
}
