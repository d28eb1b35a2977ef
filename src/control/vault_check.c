/* SPDX-License-Identifier: Apache-2.0 */
/* vault_check.c - may a change of the vault happen? (vault_change_check)
 *
 * How it works: the state is not touched. The change is read as a map from
 * names to what happens to them; a name looked up there first and in the state
 * second is a name of the candidate state. Only bindings that the change
 * brings are compared with all others: the rest was compared before.
 */

#include "src/control/vault_change.h"

#include <errno.h>
#include <stdlib.h>

#include "policy/binding.h"
#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/log.h"
#include "src/base/map.h"
#include "src/control/vault_state.h"

enum { SHOWN = 128 };

struct candidate {
	const struct vault_state *state;
	const struct vault_change *change;
	struct map credentials; /* name -> struct credential_change */
	struct map bindings;	/* name -> struct binding_change */
	size_t credential_count, binding_count, binding_bytes;
	struct diag *d;
};

static const char *shown(struct span name, char *dst)
{
	return log_escape(name, dst, SHOWN);
}

/* -- each name ------------------------------------------------------------ */

static int name_check(struct candidate *c, const char *kind, struct span name,
		      enum change_verb verb, bool exists)
{
	char text[SHOWN];

	if (verb == CHANGE_ADD && exists) {
		(void)diag_set(c->d, 0, 0, "%s \"%s\" already exists", kind,
			       shown(name, text));
		return VAULT_CHANGE_E_CONFLICT;
	}
	if ((verb == CHANGE_DELETE || verb == CHANGE_REPLACE) && !exists) {
		(void)diag_set(c->d, 0, 0, "%s \"%s\" does not exist", kind,
			       shown(name, text));
		return VAULT_CHANGE_E_ABSENT;
	}
	return 0;
}

static int twice(struct candidate *c, const char *kind, struct span name)
{
	char text[SHOWN];

	return diag_set(c->d, 0, 0,
			"%s \"%s\" is mentioned by multiple operations", kind,
			shown(name, text));
}

static int credentials_check(struct candidate *c)
{
	struct credential_change *it;
	bool exists;
	unsigned i;
	int r;

	for (i = 0; i < c->change->credential_count; i++) {
		it = &c->change->credentials[i];
		if (map_set(&c->credentials, it->name, it))
			return twice(c, "credential", it->name);
		exists = vault_state_credential(c->state, it->name);
		r = name_check(c, "credential", it->name, it->verb, exists);
		if (r)
			return r;
		c->credential_count += it->verb != CHANGE_DELETE && !exists;
		c->credential_count -= it->verb == CHANGE_DELETE;
	}
	return 0;
}

static size_t binding_size(const struct binding *b)
{
	struct buf text = BUF_INIT(BINDING_TEXT_MAX);
	size_t len = 0;

	if (!binding_emit(b, true, &text))
		len = buf_len(&text);
	buf_fini(&text);
	return len;
}

static int bindings_check(struct candidate *c)
{
	struct binding_change *it;
	struct binding *before;
	size_t size;
	unsigned i;
	int r;

	for (i = 0; i < c->change->binding_count; i++) {
		it = &c->change->bindings[i];
		if (map_set(&c->bindings, it->name, it))
			return twice(c, "binding", it->name);
		before = vault_state_binding(c->state, it->name);
		r = name_check(c, "binding", it->name, it->verb, before);
		if (r)
			return r;
		size = it->binding ? binding_size(it->binding) : 1;
		if (!size)
			return diag_set(c->d, 0, 0,
					"the binding is larger than %d bytes",
					BINDING_TEXT_MAX);
		c->binding_count += it->binding && !before;
		c->binding_count -= !it->binding;
		c->binding_bytes += size;
	}
	return 0;
}

static int limits_check(struct candidate *c)
{
	if (c->credential_count > VAULT_CREDENTIALS_MAX)
		return diag_set(c->d, 0, 0, "more than %d credentials",
				VAULT_CREDENTIALS_MAX);
	if (c->binding_count > VAULT_BINDINGS_MAX ||
	    c->binding_bytes > VAULT_BINDING_BYTES_MAX)
		return diag_set(c->d, 0, 0,
				"more than %d bindings, or %d bytes of them",
				VAULT_BINDINGS_MAX, VAULT_BINDING_BYTES_MAX);
	return 0;
}

/* -- the whole ------------------------------------------------------------ */

static bool candidate_has_credential(const struct candidate *c,
				     struct span name)
{
	const struct credential_change *it = map_find(&c->credentials, name);

	if (it)
		return it->verb != CHANGE_DELETE;
	return vault_state_credential(c->state, name);
}

static int references_check(struct candidate *c, const struct binding *b)
{
	char binding[SHOWN], credential[SHOWN];
	unsigned i;

	for (i = 0; i < b->header_count; i++) {
		if (candidate_has_credential(c, b->headers[i].credential))
			continue;
		return diag_set(c->d, 0, 0,
				"binding \"%s\" references unknown credential "
				"\"%s\"",
				shown(b->name, binding),
				shown(b->headers[i].credential, credential));
	}
	return 0;
}

static int clash_check(struct candidate *c, const struct binding *a,
		       const struct binding *b)
{
	char first[SHOWN], second[SHOWN];

	if (a == b || !binding_clashes(a, b))
		return 0;
	return diag_set(c->d, 0, 0,
			"bindings \"%s\" and \"%s\" can match the same request",
			shown(a->name, first), shown(b->name, second));
}

/* A binding of the change against every other of the candidate state. */
static int clashes_check(struct candidate *c, const struct binding *b)
{
	const struct binding *other;
	struct span name;
	size_t cursor = 0;
	unsigned i;
	int r = 0;

	for (i = 0; i < c->change->binding_count && !r; i++) {
		other = c->change->bindings[i].binding;
		if (other)
			r = clash_check(c, other, b);
	}
	while (!r && (other = map_next(&c->state->bindings, &cursor, &name)))
		if (!map_find(&c->bindings, name))
			r = clash_check(c, other, b);
	return r;
}

static int candidate_check(struct candidate *c)
{
	const struct binding *b;
	struct span name;
	size_t cursor = 0;
	unsigned i;
	int r = 0;

	while (!r && (b = map_next(&c->state->bindings, &cursor, &name)))
		if (!map_find(&c->bindings, name))
			r = references_check(c, b);
	for (i = 0; i < c->change->binding_count && !r; i++) {
		b = c->change->bindings[i].binding;
		if (b)
			r = references_check(c, b);
		if (b && !r)
			r = clashes_check(c, b);
	}
	return r;
}

int vault_change_check(const struct vault_change *change,
		       const struct vault_state *s, struct diag *d)
{
	struct candidate c = {
		.state = s,
		.change = change,
		.credential_count = map_count(&s->credentials),
		.binding_count = map_count(&s->bindings),
		.binding_bytes = s->binding_bytes,
		.d = d,
	};
	int r;

	if (change->expected >= 0 &&
	    (uint64_t)change->expected != s->revision) {
		(void)diag_set(d, 0, 0,
			       "expectedRevision %lld does not match current "
			       "revision %llu",
			       (long long)change->expected,
			       (unsigned long long)s->revision);
		return VAULT_CHANGE_E_CONFLICT;
	}
	map_init(&c.credentials);
	map_init(&c.bindings);
	r = credentials_check(&c);
	if (!r)
		r = bindings_check(&c);
	if (!r)
		r = limits_check(&c);
	if (!r)
		r = candidate_check(&c);
	map_fini(&c.credentials);
	map_fini(&c.bindings);
	return r;
}
