/* SPDX-License-Identifier: Apache-2.0 */
/* refs.c - count who is named by bindings, so that a lease is one look-up
 *
 * Control has validated the binding; here only the names matter. Unknown auth
 * types are fine: what names a credential in the known places may lease it.
 */

#include "vault/refs.h"

#include <errno.h>
#include <stdint.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/text/json.h"
#include "vault/record.h"

/* scope NUL credential, as in a record's key */
struct ref_key {
	size_t len;
	char bytes[RECORD_SCOPE_MAX + 1 + RECORD_NAME_MAX];
};

static struct span ref_key_put(struct ref_key *k, struct span scope,
			       struct span name)
{
	must(scope.len <= RECORD_SCOPE_MAX && name.len <= RECORD_NAME_MAX);
	if (scope.len)
		memcpy(k->bytes, scope.ptr, scope.len);
	k->bytes[scope.len] = '\0';
	if (name.len)
		memcpy(k->bytes + scope.len + 1, name.ptr, name.len);
	return span_of(k->bytes, scope.len + 1 + name.len);
}

void ref_list_fini(struct ref_list *l)
{
	unsigned i;

	for (i = 0; i < l->count; i++)
		free(l->names[i]);
	free(l->names);
	*l = (struct ref_list){ 0 };
}

/* node NULL: nothing is named there. */
static int name_put(struct ref_list *l, const struct json *node, struct diag *d)
{
	struct span name = json_text(node);
	char *copy;

	if (!node)
		return 0;
	if (!name.ptr || !record_name_is_valid(name))
		return diag_set(d, 0, 0,
				"a \"credential\" is no name: expected 1 to %d "
				"bytes without control characters",
				RECORD_NAME_MAX);
	if (l->count == REFS_PER_BINDING)
		return diag_set(d, 0, 0, "it names more than %d credentials",
				REFS_PER_BINDING);
	l->names = must_realloc(l->names, (l->count + 1) * sizeof(char *));
	copy = must_alloc(name.len + 1);
	memcpy(copy, name.ptr, name.len);
	l->names[l->count++] = copy;
	return 0;
}

int ref_list_parse(struct span text, struct ref_list *ret, struct diag *d)
{
	CLEANUP_JSON struct json *root = NULL;
	struct ref_list l = { 0 };
	const struct json *auth;
	int r;

	*ret = l;
	r = json_parse(text, &root, d);
	if (!r)
		r = json_want(root, JSON_KIND_OBJECT, "the binding", d);
	if (r)
		return r;

	auth = json_find(root, "auth");
	r = name_put(&l, json_find(auth, "credential"), d);
	json_for_each(header, json_find(auth, "headers"))
	{
		if (!r)
			r = name_put(&l, json_find(header, "credential"), d);
	}
	if (r)
		ref_list_fini(&l);
	*ret = l;
	return r;
}

void refs_init(struct refs *r)
{
	map_init(&r->counts);
}

void refs_fini(struct refs *r)
{
	map_fini(&r->counts);
}

/* The count itself is the map's value; 0 is not kept. */
static uintptr_t count_of(const struct refs *r, struct span key)
{
	return (uintptr_t)map_find(&r->counts, key);
}

void refs_add(struct refs *r, struct span scope, const struct ref_list *l)
{
	struct ref_key key;
	struct span k;
	unsigned i;

	for (i = 0; i < l->count; i++) {
		k = ref_key_put(&key, scope, span_str(l->names[i]));
		(void)map_set(&r->counts, k, (void *)(count_of(r, k) + 1));
	}
}

void refs_remove(struct refs *r, struct span scope, const struct ref_list *l)
{
	struct ref_key key;
	uintptr_t count;
	struct span k;
	unsigned i;

	for (i = 0; i < l->count; i++) {
		k = ref_key_put(&key, scope, span_str(l->names[i]));
		count = count_of(r, k);
		must(count > 0);
		if (count == 1)
			(void)map_take(&r->counts, k);
		else
			(void)map_set(&r->counts, k, (void *)(count - 1));
	}
}

bool refs_has(const struct refs *r, struct span scope, struct span credential)
{
	struct ref_key key;

	if (scope.len > RECORD_SCOPE_MAX || credential.len > RECORD_NAME_MAX)
		return false;
	return count_of(r, ref_key_put(&key, scope, credential)) > 0;
}
