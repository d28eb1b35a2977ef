/* SPDX-License-Identifier: Apache-2.0 */
/* bindings.c - parsed bindings and the leases they name */

#include "gateway/registry/bindings.h"

#include <stdatomic.h>

#include "gateway/redact/automaton.h"
#include "gateway/redact/patterns.h"
#include "src/base/err.h"
#include "src/base/secret.h"

enum { NEEDS_MAX = 1 }; /* bindings_need() */

struct credential {
	struct span name; /* in the binding set */
	struct secret *value;
};

struct bindings {
	_Atomic unsigned refs;
	struct binding_set *set;
	struct credential *credentials;
	unsigned count, room;
	struct automaton **automata; /* one per binding of the set, or NULL */
};

static struct credential *credential_find(const struct bindings *b,
					  struct span name)
{
	unsigned i;

	for (i = 0; i < b->count; i++)
		if (span_eq(b->credentials[i].name, name))
			return &b->credentials[i];
	return NULL;
}

static void bindings_collect(struct bindings *b)
{
	const struct binding *binding;
	unsigned most = 0, i, j;
	struct span name;

	for (i = 0; i < b->set->count; i++)
		most += b->set->items[i]->header_count;
	b->room = most + NEEDS_MAX;
	b->credentials = must_alloc(b->room * sizeof(*b->credentials));
	for (i = 0; i < b->set->count; i++) {
		binding = b->set->items[i];
		for (j = 0; j < binding->header_count; j++) {
			name = binding->headers[j].credential;
			if (!credential_find(b, name))
				b->credentials[b->count++].name = name;
		}
	}
}

int bindings_new(struct span json, struct bindings **ret, struct diag *d)
{
	struct binding_set *set;
	struct bindings *b;
	int r;

	r = binding_set_parse(json, &set, d);
	if (r)
		return r;
	b = must_alloc(sizeof(*b));
	atomic_init(&b->refs, 1);
	b->set = set;
	bindings_collect(b);
	*ret = b;
	return 0;
}

void bindings_need(struct bindings *b, struct span name)
{
	if (credential_find(b, name))
		return;
	must(b->count < b->room);
	b->credentials[b->count++].name = name;
}

struct bindings *bindings_ref(struct bindings *b)
{
	if (b)
		atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
	return b;
}

struct bindings *bindings_unref(struct bindings *b)
{
	unsigned i;

	if (!b ||
	    atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
		return NULL;
	for (i = 0; i < b->count; i++)
		(void)secret_free(b->credentials[i].value);
	free(b->credentials);
	for (i = 0; b->automata && i < b->set->count; i++)
		(void)automaton_unref(b->automata[i]);
	free(b->automata);
	(void)binding_set_free(b->set);
	free(b);
	return NULL;
}

const struct binding_set *bindings_set(const struct bindings *b)
{
	return b ? b->set : NULL;
}

uint64_t bindings_revision(const struct bindings *b)
{
	return b->set->revision;
}

struct span bindings_credential(const struct bindings *b, unsigned index)
{
	return index < b->count ? b->credentials[index].name : SPAN_NONE;
}

void bindings_give_lease(struct bindings *b, struct span credential,
			 struct secret *value)
{
	struct credential *c = credential_find(b, credential);

	must(c != NULL && c->value == NULL);
	c->value = value;
}

const struct secret *bindings_lease(const struct bindings *b,
				    struct span credential)
{
	const struct credential *c = credential_find(b, credential);

	return c ? c->value : NULL;
}

static struct automaton *automaton_of(const struct bindings *b,
				      const struct binding *binding)
{
	struct patterns *patterns = patterns_new();
	struct automaton *a = NULL;
	const struct secret *value;
	bool whole = patterns != NULL;
	unsigned i;
	int r;

	for (i = 0; whole && i < binding->header_count; i++) {
		value = bindings_lease(b, binding->headers[i].credential);
		r = value ? patterns_add(patterns, binding->headers[i].prefix,
					 value)
			  : PATTERNS_E_SHORT;
		whole = r == 0 || r == PATTERNS_E_SHORT;
	}
	if (whole && patterns_count(patterns) && automaton_new(patterns, &a))
		a = NULL;
	(void)patterns_free(patterns);
	return a;
}

void bindings_settle(struct bindings *b)
{
	unsigned i;

	b->automata = must_alloc(b->set->count * sizeof(*b->automata));
	for (i = 0; i < b->set->count; i++)
		b->automata[i] = automaton_of(b, b->set->items[i]);
}

struct automaton *bindings_automaton(const struct bindings *b,
				     const struct binding *binding)
{
	unsigned i;

	for (i = 0; b->automata && i < b->set->count; i++)
		if (b->set->items[i] == binding)
			return b->automata[i];
	return NULL;
}
