/* SPDX-License-Identifier: Apache-2.0 */
/* binding.c - one binding: read from JSON, normalised, written back, compared
 *
 * How it works: a struct reader carries the place (for sentences) and the
 * binding under construction. Each list of a binding is read by one function
 * with a normaliser per item; lists are bounded and hold no duplicates. What
 * comes out has every default filled in, so that the matcher knows no special
 * cases.
 */

#include "policy/binding.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/text/json.h"
#include "src/wire/header.h"
#include "src/wire/host.h"
#include "src/wire/url.h"

enum { BINDING_ARENA_MAX = 256 * 1024, METHOD_MAX = 32 };

static const char *const auth_names[] = {
	[BINDING_AUTH_NONE] = "none",
	[BINDING_AUTH_BEARER] = "bearer",
	[BINDING_AUTH_BASIC] = "basic",
	[BINDING_AUTH_API_KEY] = "apiKey",
	[BINDING_AUTH_CUSTOM_HEADERS] = "customHeaders",
};
_Static_assert(ARRAY_LEN(auth_names) == BINDING_AUTH_NUM, "a name for each");

struct reader {
	struct binding *b;
	struct diag *d;
	char where[BINDING_NAME_MAX + 32]; /* "binding "name": match" */
};

/* Normalises one item of a list; -EINVAL with the reader's diag. */
typedef int item_fn(struct reader *rd, struct span text, struct span *ret);

const char *binding_auth_name(enum binding_auth auth)
{
	return auth < BINDING_AUTH_NUM ? auth_names[auth] : "none";
}

/* -- names and other items ----------------------------------------------- */

bool binding_name_parse(struct span text, struct span *ret)
{
	struct span name = span_trim(text);
	size_t i;

	if (!name.len || name.len > BINDING_NAME_MAX)
		return false;
	for (i = 0; i < name.len; i++)
		if ((unsigned char)name.ptr[i] < 0x20 || name.ptr[i] == 0x7f)
			return false;
	*ret = name;
	return true;
}

static int refuse(struct reader *rd, const char *what, struct span found,
		  const char *expected)
{
	char shown[96];

	return diag_set(rd->d, 0, 0, "%s: %s \"%s\": expected %s", rd->where,
			what, log_escape(found, shown, sizeof(shown)),
			expected);
}

static int keep(struct reader *rd, struct span text, struct span *ret)
{
	*ret = arena_dup(&rd->b->arena, text);
	if (ret->ptr)
		return 0;
	return diag_set(rd->d, 0, 0, "%s: larger than %d bytes in memory",
			rd->where, BINDING_ARENA_MAX);
}

static int missing(struct reader *rd, const char *name)
{
	return diag_set(rd->d, 0, 0, "%s: \"%s\" is missing", rd->where, name);
}

static int text_need(struct reader *rd, const struct json *object,
		     const char *name, struct span *ret)
{
	int r = json_get_text(object, rd->where, name, ret, rd->d);

	return r == JSON_E_ABSENT ? missing(rd, name) : r;
}

static int item_name(struct reader *rd, struct span text, struct span *ret)
{
	if (!binding_name_parse(text, &text))
		return refuse(rd, "name", text,
			      "1 to 255 bytes without control characters");
	return keep(rd, text, ret);
}

/* A name of at least two labels, or "*." before such a name. */
static int item_host(struct reader *rd, struct span text, struct span *ret)
{
	struct span name = span_trim(text);
	bool wildcard = span_starts(name, SPAN("*."));
	struct host host;

	if (wildcard)
		name = span_from(name, 2);
	if (!host_canon(name, &host) ||
	    span_find(host_span(&host), '.') == host.len)
		return refuse(rd, "host", text,
			      "a full host name such as \"api.example.com\" or "
			      "\"*.example.com\"");
	*ret = arena_printf(&rd->b->arena, "%s%s", wildcard ? "*." : "",
			    host.text);
	return ret->ptr ? 0 : keep(rd, text, ret);
}

static int item_method(struct reader *rd, struct span text, struct span *ret)
{
	char upper[METHOD_MAX];
	size_t i;

	text = span_trim(text);
	if (text.len > METHOD_MAX || !header_name_is_valid(text))
		return refuse(rd, "method", text, "an HTTP method");
	for (i = 0; i < text.len; i++)
		upper[i] = text.ptr[i] >= 'a' && text.ptr[i] <= 'z'
				   ? (char)(text.ptr[i] - 'a' + 'A')
				   : text.ptr[i];
	return keep(rd, span_of(upper, text.len), ret);
}

/* Patterns are compared with canonical paths, so they must be canonical. */
static int item_path(struct reader *rd, struct span text, struct span *ret)
{
	text = span_trim(text);
	if (text.len > BINDING_PATH_MAX || span_find(text, '?') < text.len ||
	    span_find(text, '#') < text.len ||
	    url_canon_path(&rd->b->arena, text, ret) != URL_PATH_OK)
		return refuse(rd, "path", text,
			      "a plain path that begins with \"/\" and may end "
			      "in \"*\"");
	return keep(rd, *ret, ret);
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

static int list_alloc(struct reader *rd, const char *name, size_t count,
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
	return *ret ? 0 : keep(rd, SPAN_NONE, &(struct span){ NULL, 0 });
}

/* 0, JSON_E_ABSENT, or -EINVAL. */
static int list_read(struct reader *rd, const struct json *object,
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
static int list_read_or(struct reader *rd, const struct json *object,
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
		return keep(rd, SPAN_NONE, &rest);
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
static int sandboxes_read(struct reader *rd, const struct json *j)
{
	struct binding_list *list = &rd->b->sandboxes;
	int r;

	r = list_read(rd, j, "sandboxes", item_name, list);
	rd->b->every_sandbox = r == JSON_E_ABSENT;
	if (r)
		return r < 0 ? r : 0;
	qsort(list->items, list->count, sizeof(*list->items), span_order);
	return 0;
}

/* -- match ---------------------------------------------------------------- */

static int schemes_read(struct reader *rd, const struct json *match)
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
			return refuse(rd, "scheme", text, "http or https");
	}
	if (!rd->b->schemes)
		return refuse(rd, "schemes", SPAN("[]"), "http or https");
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

static int ports_read(struct reader *rd, const struct json *match)
{
	struct binding *b = rd->b;
	const struct json *array;
	uint64_t port;
	void *memory;
	int r;

	r = json_get_array(match, rd->where, "ports", &array, rd->d);
	if (r < 0)
		return r;
	r = list_alloc(rd, "ports", r ? 1 : json_count(array),
		       sizeof(*b->ports), &memory);
	if (r)
		return r;
	b->ports = memory;

	if (!json_find(match, "ports"))
		b->ports[b->port_count++] = 443;
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

static int match_read(struct reader *rd, const struct json *match)
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

/* -- auth ----------------------------------------------------------------- */

/* "PRIVATE-TOKEN" becomes "Private-Token", as HTTP libraries write it. */
static void header_name_dress(char *name, size_t len)
{
	bool first = true;
	size_t i;

	for (i = 0; i < len; i++) {
		name[i] = span_lower_char(name[i]);
		if (first && name[i] >= 'a' && name[i] <= 'z')
			name[i] = (char)(name[i] - 'a' + 'A');
		first = name[i] == '-';
	}
}

static int header_name_read(struct reader *rd, struct span text,
			    struct span *ret)
{
	struct span name;
	unsigned i;
	int r;

	text = span_trim(text);
	if (!header_name_is_valid(text))
		return refuse(rd, "header", text, "a header name");
	if (header_flags_of(header_id_of(text)) & HEADER_RESERVED)
		return refuse(rd, "header", text,
			      "a header that HTTP does not reserve");
	for (i = 0; i < rd->b->header_count; i++)
		if (span_eq_nocase(rd->b->headers[i].name, text))
			return refuse(rd, "header", text,
				      "each header only once");
	r = keep(rd, text, &name);
	if (r)
		return r;
	header_name_dress((char *)(uintptr_t)name.ptr, name.len);
	*ret = name;
	return 0;
}

/* Reads "credential", and "name" unless a fixed name is given. */
static int header_read(struct reader *rd, const struct json *object,
		       struct span fixed, struct span prefix)
{
	struct binding_header header = { .name = fixed, .prefix = prefix };
	struct span text;
	int r;

	r = text_need(rd, object, "credential", &text);
	if (!r)
		r = item_name(rd, text, &header.credential);
	if (!r && !fixed.ptr) {
		r = text_need(rd, object, "name", &text);
		if (!r)
			r = header_name_read(rd, text, &header.name);
	}
	if (!r)
		rd->b->headers[rd->b->header_count++] = header;
	return r;
}

static int headers_read(struct reader *rd, const struct json *auth)
{
	static const char *const known[] = { "name", "credential", NULL };
	const struct json *array = NULL;
	size_t count;
	int r;

	r = json_get_array(auth, rd->where, "headers", &array, rd->d);
	if (r < 0)
		return r;
	count = json_count(array);
	if (!count || count > BINDING_HEADERS_MAX)
		return diag_set(rd->d, 0, 0,
				"%s: \"headers\": found %zu, expected 1 to %d",
				rd->where, count, BINDING_HEADERS_MAX);

	json_for_each(j, array)
	{
		r = json_want(j, JSON_KIND_OBJECT, rd->where, rd->d);
		if (!r)
			r = json_refuse_unknown(j, rd->where, known, rd->d);
		if (!r)
			r = header_read(rd, j, SPAN_NONE, SPAN(""));
		if (r)
			return r;
	}
	return 0;
}

static int auth_read(struct reader *rd, const struct json *auth)
{
	static const char *const one[] = { "type", "credential", NULL };
	static const char *const key[] = { "type", "name", "credential", NULL };
	static const char *const custom[] = { "type", "headers", NULL };
	static const char *const *const known[] = {
		[BINDING_AUTH_BEARER] = one,
		[BINDING_AUTH_BASIC] = one,
		[BINDING_AUTH_API_KEY] = key,
		[BINDING_AUTH_CUSTOM_HEADERS] = custom,
	};
	struct span type;
	int kind, r;

	r = text_need(rd, auth, "type", &type);
	if (r)
		return r;
	for (kind = 1; kind < BINDING_AUTH_NUM; kind++)
		if (span_eq(type, span_str(auth_names[kind])))
			break;
	if (kind == BINDING_AUTH_NUM)
		return refuse(rd, "type", type,
			      "bearer, basic, apiKey or customHeaders");
	r = json_refuse_unknown(auth, rd->where, known[kind], rd->d);
	if (r)
		return r;

	rd->b->auth = (enum binding_auth)kind;
	switch (rd->b->auth) {
	case BINDING_AUTH_BEARER:
		return header_read(rd, auth, SPAN("Authorization"),
				   SPAN("Bearer "));
	case BINDING_AUTH_BASIC:
		return header_read(rd, auth, SPAN("Authorization"),
				   SPAN("Basic "));
	case BINDING_AUTH_API_KEY:
		return header_read(rd, auth, SPAN_NONE, SPAN(""));
	case BINDING_AUTH_CUSTOM_HEADERS:
		return headers_read(rd, auth);
	case BINDING_AUTH_NONE:
	case BINDING_AUTH_NUM:
		break;
	}
	return -EINVAL;
}

/* -- the whole ------------------------------------------------------------ */

static int part_read(struct reader *rd, const struct json *j, const char *name,
		     int (*fn)(struct reader *, const struct json *))
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

static int binding_read(struct reader *rd, const struct json *j)
{
	static const char *const known[] = { "name", "sandboxes", "match",
					     "auth", "revision",  NULL };
	struct span name;
	char shown[128];
	int r;

	(void)snprintf(rd->where, sizeof(rd->where), "binding");
	r = json_want(j, JSON_KIND_OBJECT, rd->where, rd->d);
	if (!r)
		r = json_refuse_unknown(j, rd->where, known, rd->d);
	if (!r)
		r = text_need(rd, j, "name", &name);
	if (!r)
		r = item_name(rd, name, &rd->b->name);
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
		r = part_read(rd, j, "auth", auth_read);
	return r;
}

int binding_parse(const struct json *j, struct binding **ret, struct diag *d)
{
	struct reader rd = { .d = d };
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

struct binding *binding_free(struct binding *b)
{
	if (!b)
		return NULL;
	arena_fini(&b->arena);
	free(b);
	return NULL;
}

/* -- writing -------------------------------------------------------------- */

static void list_emit(struct json_out *o, const char *name,
		      const struct binding_list *list)
{
	unsigned i;

	json_open_array(o, name);
	for (i = 0; i < list->count; i++)
		json_put_text(o, NULL, list->items[i]);
	json_close(o);
}

static void match_emit(struct json_out *o, const struct binding *b)
{
	unsigned i;

	json_open_object(o, "match");
	json_open_array(o, "schemes");
	if (b->schemes & BINDING_HTTPS)
		json_put_str(o, NULL, "https");
	if (b->schemes & BINDING_HTTP)
		json_put_str(o, NULL, "http");
	json_close(o);
	json_open_array(o, "ports");
	for (i = 0; i < b->port_count; i++)
		json_put_u64(o, NULL, b->ports[i]);
	json_close(o);
	list_emit(o, "hosts", &b->hosts);
	list_emit(o, "methods", &b->methods);
	list_emit(o, "paths", &b->paths);
	json_close(o);
}

static void header_emit(struct json_out *o, const struct binding_header *h,
			bool named)
{
	if (named)
		json_put_text(o, "name", h->name);
	json_put_text(o, "credential", h->credential);
}

static void auth_emit(struct json_out *o, const struct binding *b)
{
	unsigned i;

	json_open_object(o, "auth");
	json_put_str(o, "type", binding_auth_name(b->auth));
	if (b->auth != BINDING_AUTH_CUSTOM_HEADERS) {
		header_emit(o, &b->headers[0], b->auth == BINDING_AUTH_API_KEY);
	} else {
		json_open_array(o, "headers");
		for (i = 0; i < b->header_count; i++) {
			json_open_object(o, NULL);
			header_emit(o, &b->headers[i], true);
			json_close(o);
		}
		json_close(o);
	}
	json_close(o);
}

int binding_emit(const struct binding *b, bool with_revision, struct buf *buf)
{
	struct json_out o;

	json_start(&o, buf);
	json_open_object(&o, NULL);
	json_put_text(&o, "name", b->name);
	if (with_revision && b->revision)
		json_put_u64(&o, "revision", b->revision);
	if (!b->every_sandbox)
		list_emit(&o, "sandboxes", &b->sandboxes);
	match_emit(&o, b);
	auth_emit(&o, b);
	json_close(&o);
	return json_done(&o);
}
