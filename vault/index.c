/* SPDX-License-Identifier: Apache-2.0 */
/* index.c - a sorted array of entries and a map of scopes
 *
 * An insertion moves pointers, 8 bytes an entry: with 100,000 records that is
 * some tens of microseconds, little beside the fdatasync of the commit it
 * belongs to. In exchange a look-up touches little memory and walks are plain.
 */

#include "vault/index.h"

#include "src/base/err.h"

void index_init(struct index *ix)
{
	*ix = (struct index){ 0 };
	map_init(&ix->scopes);
}

static void entry_free(struct index_entry *e)
{
	ref_list_fini(&e->refs);
	free(e);
}

void index_fini(struct index *ix)
{
	struct index_scope *scope;
	size_t i, cursor = 0;

	for (i = 0; i < ix->count; i++)
		entry_free(ix->entries[i]);
	free(ix->entries);
	while ((scope = index_scope_next(ix, &cursor)))
		free(scope);
	map_fini(&ix->scopes);
	*ix = (struct index){ 0 };
}

static int key_compare(struct span a, struct span b)
{
	int order = memcmp(a.ptr, b.ptr, MIN(a.len, b.len));

	if (order)
		return order;
	return a.len < b.len ? -1 : a.len > b.len;
}

/* How many entries have a key below `key` (or equal, when or_equal). */
static size_t rank(const struct index *ix, struct span key, bool or_equal)
{
	size_t low = 0, high = ix->count, middle;
	int order;

	while (low < high) {
		middle = low + (high - low) / 2;
		order = key_compare(index_key(ix->entries[middle]), key);
		if (order < 0 || (or_equal && !order))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct index_entry *index_find(const struct index *ix, struct span key)
{
	size_t at = rank(ix, key, false);

	if (at < ix->count && span_eq(index_key(ix->entries[at]), key))
		return ix->entries[at];
	return NULL;
}

struct index_entry *index_after(const struct index *ix, struct span key)
{
	size_t at = rank(ix, key, true);

	return at < ix->count ? ix->entries[at] : NULL;
}

struct index_entry *index_at(struct index *ix, struct span key)
{
	size_t at = rank(ix, key, false);
	struct index_entry *e;

	if (at < ix->count && span_eq(index_key(ix->entries[at]), key))
		return ix->entries[at];
	if (ix->count == ix->size) {
		ix->size = MAX(2 * ix->size, (size_t)16);
		ix->entries = must_realloc(ix->entries, ix->size * sizeof(e));
	}
	e = must_alloc(sizeof(*e) + key.len);
	e->key_len = key.len;
	memcpy(e->key, key.ptr, key.len);
	memmove(ix->entries + at + 1, ix->entries + at,
		(ix->count - at) * sizeof(e));
	ix->entries[at] = e;
	ix->count++;
	return e;
}

void index_drop(struct index *ix, struct span key)
{
	size_t at = rank(ix, key, false);

	if (at == ix->count || !span_eq(index_key(ix->entries[at]), key))
		return;
	entry_free(ix->entries[at]);
	ix->count--;
	memmove(ix->entries + at, ix->entries + at + 1,
		(ix->count - at) * sizeof(ix->entries[0]));
}

struct index_scope *index_scope_find(const struct index *ix, struct span scope)
{
	return map_find(&ix->scopes, scope);
}

struct index_scope *index_scope_at(struct index *ix, struct span name)
{
	struct index_scope *scope = index_scope_find(ix, name);

	if (scope)
		return scope;
	scope = must_alloc(sizeof(*scope) + name.len);
	scope->name_len = name.len;
	if (name.len)
		memcpy(scope->name, name.ptr, name.len);
	(void)map_set(&ix->scopes, name, scope);
	return scope;
}

void index_scope_drop(struct index *ix, struct span scope)
{
	free(map_take(&ix->scopes, scope));
}

struct index_scope *index_scope_next(const struct index *ix, size_t *cursor)
{
	return map_next(&ix->scopes, cursor, NULL);
}
