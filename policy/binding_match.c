/* SPDX-License-Identifier: Apache-2.0 */
/* binding_match.c - which binding of a set a request gets, and who clashes
 *
 * How it works: a set indexes its bindings by host pattern, exact names and
 * wildcard suffixes apart. A question looks up its host once, then each of its
 * parent domains; only the bindings found there are compared field by field.
 * Bindings found by exact host and by wildcard are never mixed: the first
 * level that has a match decides, and two matches there are a tie.
 */

#include "policy/binding.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/text/json.h"
#include "src/wire/host.h"
#include "src/wire/url.h"

/* The bindings that name one host pattern. */
struct binding_host {
	struct binding **items;
	unsigned count;
};

static bool pattern_is_wildcard(struct span pattern)
{
	return span_starts(pattern, SPAN("*."));
}

/* -- two bindings --------------------------------------------------------- */

static bool hosts_clash(struct span a, struct span b)
{
	if (pattern_is_wildcard(a) != pattern_is_wildcard(b))
		return false;
	if (!pattern_is_wildcard(a))
		return span_eq(a, b);
	a = span_from(a, 2);
	b = span_from(b, 2);
	return span_eq(a, b) || host_is_below(a, b) || host_is_below(b, a);
}

static bool paths_clash(struct span a, struct span b)
{
	bool a_prefix = span_ends(a, SPAN("*")), b_prefix;

	b_prefix = span_ends(b, SPAN("*"));
	a.len -= a_prefix;
	b.len -= b_prefix;
	if (span_eq(a, b))
		return true;
	return (a_prefix && span_starts(b, a)) ||
	       (b_prefix && span_starts(a, b));
}

static bool lists_clash(const struct binding_list *a,
			const struct binding_list *b,
			bool (*clash)(struct span, struct span))
{
	unsigned i, j;

	for (i = 0; i < a->count; i++)
		for (j = 0; j < b->count; j++)
			if (clash(a->items[i], b->items[j]))
				return true;
	return false;
}

static bool ports_clash(const struct binding *a, const struct binding *b)
{
	unsigned i, j;

	for (i = 0; i < a->port_count; i++)
		for (j = 0; j < b->port_count; j++)
			if (a->ports[i] == b->ports[j])
				return true;
	return false;
}

bool binding_clashes(const struct binding *a, const struct binding *b)
{
	return (a->schemes & b->schemes) && ports_clash(a, b) &&
	       (a->every_sandbox || b->every_sandbox ||
		lists_clash(&a->sandboxes, &b->sandboxes, span_eq)) &&
	       lists_clash(&a->methods, &b->methods, span_eq) &&
	       lists_clash(&a->hosts, &b->hosts, hosts_clash) &&
	       lists_clash(&a->paths, &b->paths, paths_clash);
}

bool binding_uses(const struct binding *b, struct span credential)
{
	unsigned i;

	for (i = 0; i < b->header_count; i++)
		if (span_eq(b->headers[i].credential, credential))
			return true;
	return false;
}

/* -- one binding and one request ------------------------------------------ */

static int span_compare(const void *key, const void *item)
{
	const struct span *a = key, *b = item;
	int r;

	r = memcmp(a->ptr, b->ptr, MIN(a->len, b->len));
	return r ? r : (a->len > b->len) - (a->len < b->len);
}

static bool binding_has_sandbox(const struct binding *b, struct span id)
{
	if (b->every_sandbox)
		return true;
	if (!id.ptr)
		return false;
	return bsearch(&id, b->sandboxes.items, b->sandboxes.count,
		       sizeof(*b->sandboxes.items), span_compare);
}

/* Everything but host, method and path. */
static bool binding_concerns(const struct binding *b,
			     const struct binding_query *q)
{
	unsigned i;

	if (!(b->schemes & q->scheme))
		return false;
	for (i = 0; i < b->port_count; i++)
		if (b->ports[i] == q->port)
			return binding_has_sandbox(b, q->sandbox);
	return false;
}

static bool binding_matches(const struct binding *b,
			    const struct binding_query *q)
{
	unsigned i;

	if (!binding_concerns(b, q))
		return false;
	for (i = 0; i < b->methods.count; i++)
		if (span_eq(b->methods.items[i], q->method))
			break;
	if (i == b->methods.count)
		return false;
	for (i = 0; i < b->paths.count; i++)
		if (url_path_matches(b->paths.items[i], q->path))
			return true;
	return false;
}

/* -- the set -------------------------------------------------------------- */

static void set_index(struct binding_set *set, struct binding *b,
		      struct span pattern)
{
	bool wildcard = pattern_is_wildcard(pattern);
	struct map *map = wildcard ? &set->wildcard : &set->exact;
	struct span key = wildcard ? span_from(pattern, 2) : pattern;
	struct binding_host *host = map_find(map, key);

	if (!host) {
		host = must_alloc(sizeof(*host));
		(void)map_set(map, key, host);
	}
	host->items = must_realloc(host->items,
				   (host->count + 1) * sizeof(*host->items));
	host->items[host->count++] = b;
}

struct binding_set *binding_set_new(struct binding **items, unsigned count,
				    uint64_t revision)
{
	struct binding_set *set = must_alloc(sizeof(*set));
	unsigned i, j;

	set->revision = revision;
	set->count = count;
	set->items = must_alloc((count + 1) * sizeof(*set->items));
	map_init(&set->exact);
	map_init(&set->wildcard);
	for (i = 0; i < count; i++) {
		set->items[i] = items[i];
		for (j = 0; j < items[i]->hosts.count; j++)
			set_index(set, items[i], items[i]->hosts.items[j]);
	}
	return set;
}

static void index_free(struct map *map)
{
	struct binding_host *host;
	struct span key;
	size_t cursor = 0;

	while ((host = map_next(map, &cursor, &key))) {
		free(host->items);
		free(host);
	}
	map_fini(map);
}

struct binding_set *binding_set_free(struct binding_set *set)
{
	unsigned i;

	if (!set)
		return NULL;
	index_free(&set->exact);
	index_free(&set->wildcard);
	for (i = 0; i < set->count; i++)
		binding_free(set->items[i]);
	free(set->items);
	free(set);
	return NULL;
}

static int set_read(struct binding_set *set, const struct json *array,
		    struct diag *d)
{
	struct binding *b;
	int r;

	set->items = must_alloc((json_count(array) + 1) * sizeof(*set->items));
	json_for_each(j, array)
	{
		r = binding_parse(j, &b, d);
		if (r)
			return r;
		set->items[set->count++] = b;
	}
	return 0;
}

int binding_set_parse(struct span text, struct binding_set **ret,
		      struct diag *d)
{
	struct binding_set read = { 0 };
	struct json *root CLEANUP_JSON = NULL;
	const struct json *array;
	unsigned i;
	int r;

	r = json_parse(text, &root, d);
	if (r)
		return r;
	array = json_find(root, "bindings");
	if (!json_u64(json_find(root, "revision"), &read.revision) ||
	    json_kind(array) != JSON_KIND_ARRAY)
		return diag_set(d, 0, 0, "found no revision or bindings");

	r = set_read(&read, array, d);
	if (!r)
		*ret = binding_set_new(read.items, read.count, read.revision);
	for (i = 0; r && i < read.count; i++)
		binding_free(read.items[i]);
	free(read.items);
	return r;
}

/* -- the question --------------------------------------------------------- */

typedef bool binding_test(const struct binding *b,
			  const struct binding_query *q);

/* Adds the bindings of a host pattern that pass; at most two are kept. */
static unsigned host_collect(const struct binding_host *host,
			     const struct binding_query *q, binding_test *test,
			     const struct binding *ret[2], unsigned found)
{
	unsigned i;

	for (i = 0; host && i < host->count && found < 2; i++) {
		if (found && ret[0] == host->items[i])
			continue; /* met under another of its hosts */
		if (test(host->items[i], q))
			ret[found++] = host->items[i];
	}
	return found;
}

static unsigned set_collect(const struct binding_set *set,
			    const struct binding_query *q, binding_test *test,
			    const struct binding *ret[2])
{
	struct span rest = q->host;
	unsigned found;

	if (!set || !set->count || !q->host.len)
		return 0;
	found = host_collect(map_find(&set->exact, q->host), q, test, ret, 0);
	if (found || !map_count(&set->wildcard))
		return found;
	for (;;) {
		(void)span_cut(&rest, '.');
		if (!rest.len)
			return found;
		found = host_collect(map_find(&set->wildcard, rest), q, test,
				     ret, found);
	}
}

enum binding_result binding_set_match(const struct binding_set *set,
				      const struct binding_query *q,
				      const struct binding *ret[2])
{
	ret[0] = ret[1] = NULL;
	switch (set_collect(set, q, binding_matches, ret)) {
	case 0:
		return BINDING_NO_MATCH;
	case 1:
		return BINDING_MATCH;
	default:
		return BINDING_TIE;
	}
}

bool binding_set_concerns(const struct binding_set *set,
			  const struct binding_query *q)
{
	const struct binding *found[2];

	return set_collect(set, q, binding_concerns, found) > 0;
}

/* Does the path decide whether it applies? */
static bool binding_minds_path(const struct binding *b,
			       const struct binding_query *q)
{
	unsigned i;

	for (i = 0; i < b->paths.count; i++)
		if (span_eq(b->paths.items[i], SPAN("/*")))
			return false;
	return binding_concerns(b, q);
}

bool binding_set_minds_path(const struct binding_set *set,
			    const struct binding_query *q)
{
	const struct binding *found[2];

	return set_collect(set, q, binding_minds_path, found) > 0;
}
