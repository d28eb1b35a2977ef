/* SPDX-License-Identifier: Apache-2.0 */
/* binding_read.c - one binding from JSON, checked and normalised
 *
 * How it works: a struct binding_reader carries the place (for sentences) and
 * the binding under construction. Each list of a binding is read by one
 * function with a normaliser per item; lists are bounded and hold no
 * duplicates. What comes out has every default filled in, so that the matcher
 * knows no special cases. The auth object is read by binding_auth.c.
 */

#include "policy/binding_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/text/json.h"
#include "src/wire/header.h"
#include "src/wire/host.h"
#include "src/wire/url.h"

enum { BINDING_ARENA_MAX = 256 * 1024, METHOD_MAX = 32 };

/* Normalises one item of a list; -EINVAL with the reader's diag. */
typedef int item_fn(struct binding_reader *rd, struct span text,
		    struct span *ret);

/* -- names and other items ----------------------------------------------- */

int binding_refuse(struct binding_reader *rd, const char *what,
		   struct span found, const char *expected)
{
	char shown[96];

	return diag_set(rd->d, 0, 0, "%s: %s \"%s\": expected %s", rd->where,
			what, log_escape(found, shown, sizeof(shown)),
			expected);
}

int binding_keep(struct binding_reader *rd, struct span text, struct span *ret)
{
	*ret = arena_dup(&rd->b->arena, text);
	if (ret->ptr)
		return 0;
	return diag_set(rd->d, 0, 0, "%s: larger than %d bytes in memory",
			rd->where, BINDING_ARENA_MAX);
}

static int missing(struct binding_reader *rd, const char *name)
{
	return diag_set(rd->d, 0, 0, "%s: \"%s\" is missing", rd->where, name);
}

int binding_need_text(struct binding_reader *rd, const struct json *object,
		      const char *name, struct span *ret)
{
	int r = json_get_text(object, rd->where, name, ret, rd->d);

	return r == JSON_E_ABSENT ? missing(rd, name) : r;
}

int binding_read_name(struct binding_reader *rd, struct span text,
		      struct span *ret)
{
	if (!binding_name_parse(text, &text))
		return binding_refuse(
			rd, "name", text,
			"1 to 255 bytes without control characters");
	return binding_keep(rd, text, ret);
}

/* A name of at least two labels, or "*." before such a name. */
static int item_host(struct binding_reader *rd, struct span text,
		     struct span *ret)
{
	struct span name = span_trim(text);
	bool wildcard = span_starts(name, SPAN("*."));
	struct host host;

	if (wildcard)
		name = span_from(name, 2);
	if (!host_canon(name, &host) ||
	    span_find(host_span(&host), '.') == host.len)
		return binding_refuse(
			rd, "host", text,
			"a full host name such as \"api.example.com\" or "
			"\"*.example.com\"");
	*ret = arena_printf(&rd->b->arena, "%s%s", wildcard ? "*." : "",
			    host.text);
	return ret->ptr ? 0 : binding_keep(rd, text, ret);
}

static int item_method(struct binding_reader *rd, struct span text,
		       struct span *ret)
{
	char upper[METHOD_MAX];
	size_t i;

	text = span_trim(text);
	if (text.len > METHOD_MAX || !header_name_is_valid(text))
		return binding_refuse(rd, "method", text, "an HTTP method");
	for (i = 0; i < text.len; i++)
		upper[i] = text.ptr[i] >= 'a' && text.ptr[i] <= 'z'
				   ? (char)(text.ptr[i] - 'a' + 'A')
				   : text.ptr[i];
	return binding_keep(rd, span_of(upper, text.len), ret);
}

/* Patterns are compared with canonical paths, so they must be canonical. */
static int item_path(struct binding_reader *rd, struct span text,
		     struct span *ret)
{
	text = span_trim(text);
	if (text.len > BINDING_PATH_MAX || span_find(text, '?') < text.len ||
	    span_find(text, '#') < text.len ||
	    url_canon_path(&rd->b->arena, text, ret) != URL_PATH_OK)
		return binding_refuse(
			rd, "path", text,
			"a plain path that begins with \"/\" and may end "
			"in \"*\"");
	return binding_keep(rd, *ret, ret);
}

/* -- lists ---------------------------------------------------------------- */

static bool list_has(const struct binding_list *list, struct span item)
{
	unsigned i;

	for (i = 0; i < list->count; i++)
		if (span_eq(list->items[i], item))
			return true;
	return false;
}

static int list_alloc(struct binding_reader *rd, const char *name, size_t count,
		      size_t size, void **ret)
{
	if (!count)
		return diag_set(rd->d, 0, 0,
				"%s: \"%s\" is empty; leave it out for the "
				"default",
				rd->where, name);
	if (count > BINDING_LIST_MAX)
		return diag_set(rd->d, 0, 0,
				"%s: \"%s\": found %zu items, expected at most "
				"%d",
				rd->where, name, count, BINDING_LIST_MAX);
	*ret = arena_alloc(&rd->b->arena, count * size);
	return *ret ? 0
		    : binding_keep(rd, SPAN_NONE, &(struct span){ NULL, 0 });
}

/* 0, JSON_E_ABSENT, or -EINVAL. */
static int list_read(struct binding_reader *rd, const struct json *object,
		     const char *name, item_fn *normalise,
		     struct binding_list *list)
{
	const struct json *array;
	struct span item;
	void *memory;
	int r;

	r = json_get_array(object, rd->where, name, &array, rd->d);
	if (!r)
		r = list_alloc(rd, name, json_count(array), sizeof(item),
			       &memory);
	if (r)
		return r;
	list->items = memory;

	json_for_each(j, array)
	{
		r = json_want(j, JSON_KIND_STRING, rd->where, rd->d);
		if (!r)
			r = normalise(rd, json_text(j), &item);
		if (r)
			return r;
		if (!list_has(list, item))
			list->items[list->count++] = item;
	}
	return 0;
}

/* As list_read(), with a default (comma-separated) for an absent list. */
static int list_read_or(struct binding_reader *rd, const struct json *object,
			const char *name, item_fn *normalise, const char *words,
			struct binding_list *list)
{
	struct span rest = span_str(words);
	int r;

	r = list_read(rd, object, name, normalise, list);
	if (r != JSON_E_ABSENT)
		return r;

	list->items = arena_alloc(&rd->b->arena, 8 * sizeof(*list->items));
	if (!list->items)
		return binding_keep(rd, SPAN_NONE, &rest);
	while (rest.len && list->count < 8)
		list->items[list->count++] = span_cut(&rest, ',');
	return 0;
}

static int span_order(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	int r;

	r = memcmp(x->ptr, y->ptr, MIN(x->len, y->len));
	return r ? r : (x->len > y->len) - (x->len < y->len);
}

/* Sorted, so that the matcher may search. */
static int sandboxes_read(struct binding_reader *rd, const struct json *j)
{
	struct binding_list *list = &rd->b->sandboxes;
	int r;

	r = list_read(rd, j, "sandboxes", binding_read_name, list);
	rd->b->every_sandbox = r == JSON_E_ABSENT;
	if (r)
		return r < 0 ? r : 0;
	qsort(list->items, list->count, sizeof(*list->items), span_order);
	return 0;
}

/* -- match ---------------------------------------------------------------- */

static int schemes_read(struct binding_reader *rd, const struct json *match)
{
	const struct json *array;
	struct span text;
	int r;

	r = json_get_array(match, rd->where, "schemes", &array, rd->d);
	if (r == JSON_E_ABSENT)
		rd->b->schemes = BINDING_HTTPS;
	if (r)
		return r < 0 ? r : 0;

	json_for_each(j, array)
	{
		text = span_trim(json_text(j));
		if (span_eq_nocase(text, SPAN("https")))
			rd->b->schemes |= BINDING_HTTPS;
		else if (span_eq_nocase(text, SPAN("http")))
			rd->b->schemes |= BINDING_HTTP;
		else
			return binding_refuse(rd, "scheme", text,
					      "http or https");
	}
	if (!rd->b->schemes)
		return binding_refuse(rd, "schemes", SPAN("[]"),
				      "http or https");
	return 0;
}

static bool ports_have(const struct binding *b, uint16_t port)
{
	unsigned i;

	for (i = 0; i < b->port_count; i++)
		if (b->ports[i] == port)
			return true;
	return false;
}

/* Without "ports": where the schemes are at home. */
static void ports_default(struct binding *b)
{
	if (b->schemes & BINDING_HTTP)
		b->ports[b->port_count++] = 80;
	if (b->schemes & BINDING_HTTPS)
		b->ports[b->port_count++] = 443;
}

static int ports_read(struct binding_reader *rd, const struct json *match)
{
	struct binding *b = rd->b;
	const struct json *array;
	uint64_t port;
	void *memory;
	int r;

	r = json_get_array(match, rd->where, "ports", &array, rd->d);
	if (r < 0)
		return r;
	r = list_alloc(rd, "ports", r ? 2 : json_count(array),
		       sizeof(*b->ports), &memory);
	if (r)
		return r;
	b->ports = memory;

	if (!json_find(match, "ports"))
		ports_default(b);
	else
		json_for_each(j, array)
		{
			if (!json_u64(j, &port) || !port || port > UINT16_MAX)
				return diag_set(rd->d, 0, 0,
						"%s: \"ports\": expected whole "
						"numbers from 1 to 65535",
						rd->where);
			if (!ports_have(b, (uint16_t)port))
				b->ports[b->port_count++] = (uint16_t)port;
		}
	return 0;
}

static int match_read(struct binding_reader *rd, const struct json *match)
{
	static const char *const known[] = { "schemes", "ports", "hosts",
					     "methods", "paths", NULL };
	struct binding *b = rd->b;
	int r;

	r = json_refuse_unknown(match, rd->where, known, rd->d);
	if (!r)
		r = schemes_read(rd, match);
	if (!r)
		r = ports_read(rd, match);
	if (!r)
		r = list_read(rd, match, "hosts", item_host, &b->hosts);
	if (r == JSON_E_ABSENT)
		return missing(rd, "hosts");
	if (!r)
		r = list_read_or(rd, match, "methods", item_method,
				 "GET,POST,PUT,PATCH,DELETE", &b->methods);
	if (!r)
		r = list_read_or(rd, match, "paths", item_path, "/*",
				 &b->paths);
	return r;
}

/* -- the whole ------------------------------------------------------------ */

static int part_read(struct binding_reader *rd, const struct json *j,
		     const char *name,
		     int (*fn)(struct binding_reader *, const struct json *))
{
	const struct json *part;
	char where[sizeof(rd->where)];
	int r;

	r = json_get_object(j, rd->where, name, &part, rd->d);
	if (r == JSON_E_ABSENT)
		return missing(rd, name);
	if (r)
		return r;
	memcpy(where, rd->where, sizeof(where));
	(void)snprintf(rd->where, sizeof(rd->where), "%.*s: %s",
		       (int)sizeof(where) - 16, where, name);
	r = fn(rd, part);
	memcpy(rd->where, where, sizeof(where));
	return r;
}

static int redact_read(struct binding_reader *rd, const struct json *j)
{
	const struct json *value = json_find(j, "redactBody");
	int r;

	if (!value)
		return 0;
	r = json_want(value, JSON_KIND_BOOL, rd->where, rd->d);
	rd->b->redact_body = json_bool(value);
	return r;
}

static int binding_read(struct binding_reader *rd, const struct json *j)
{
	static const char *const known[] = { "name", "sandboxes",  "match",
					     "auth", "redactBody", "revision",
					     NULL };
	struct span name;
	char shown[128];
	int r;

	(void)snprintf(rd->where, sizeof(rd->where), "binding");
	r = json_want(j, JSON_KIND_OBJECT, rd->where, rd->d);
	if (!r)
		r = json_refuse_unknown(j, rd->where, known, rd->d);
	if (!r)
		r = binding_need_text(rd, j, "name", &name);
	if (!r)
		r = binding_read_name(rd, name, &rd->b->name);
	if (r)
		return r;

	(void)snprintf(rd->where, sizeof(rd->where), "binding \"%s\"",
		       log_escape(rd->b->name, shown, sizeof(shown)));
	r = json_get_u64(j, rd->where, "revision", &rd->b->revision, rd->d);
	if (r >= 0)
		r = sandboxes_read(rd, j);
	if (!r)
		r = part_read(rd, j, "match", match_read);
	if (!r)
		r = part_read(rd, j, "auth", binding_read_auth);
	if (!r)
		r = redact_read(rd, j);
	return r;
}

int binding_parse(const struct json *j, struct binding **ret, struct diag *d)
{
	struct binding_reader rd = { .d = d };
	int r;

	rd.b = must_alloc(sizeof(*rd.b));
	arena_init(&rd.b->arena, BINDING_ARENA_MAX);
	r = binding_read(&rd, j);
	if (r) {
		binding_free(rd.b);
		return r;
	}
	*ret = rd.b;
	return 0;
}
