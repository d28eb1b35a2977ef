/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - reading JSON through jansson, which is met only here
 *
 * A struct json is a jansson value under another name; the two are never
 * dereferenced here. jansson bounds its own depth at a number fixed when it
 * was built, and the number of values not at all, so both are bounded by a scan
 * over brackets and commas beforehand.
 */

#include "src/text/json.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/heap.h"

static const char *const kind_names[] = {
	[JSON_KIND_NONE] = "nothing",	  [JSON_KIND_NULL] = "null",
	[JSON_KIND_BOOL] = "a boolean",	  [JSON_KIND_NUMBER] = "a number",
	[JSON_KIND_STRING] = "a string",  [JSON_KIND_ARRAY] = "an array",
	[JSON_KIND_OBJECT] = "an object",
};
_Static_assert(ARRAY_LEN(kind_names) == JSON_KIND_NUM, "a name for each kind");

/* -- memory that is wiped when freed ------------------------------------ */

enum { TRIM_BYTES = 4 * 1024 * 1024 };

/* By this thread since free memory was last given back. */
static _Thread_local size_t freed;

/* Stands in front of each allocation; keeps malloc's alignment. */
union wiped_head {
	size_t size;
	max_align_t align;
};

static void *wiped_alloc(size_t size)
{
	union wiped_head *head;

	if (size > JSON_TEXT_MAX * (size_t)2)
		return NULL;
	head = must_alloc(sizeof(*head) + size);
	head->size = size;
	return head + 1;
}

static void wiped_free(void *p)
{
	union wiped_head *head = p;

	if (!p)
		return;
	head--;
	explicit_bzero(head + 1, head->size);
	freed += sizeof(*head) + head->size;
	free(head);
}

/* A tree is many small pieces, and one that is in use above them keeps them all
 * with the process: a large text would cost its memory for ever. */
static void memory_return(void)
{
	if (freed < TRIM_BYTES)
		return;
	freed = 0;
	heap_trim();
}

/* jansson would read the seed of its hash from /dev/urandom, and most roles
 * may not open files any more. 0 would mean "not seeded". */
static void jansson_install(void)
{
	uint32_t seed = 0;

	json_set_alloc_funcs(wiped_alloc, wiped_free);
	while (!seed)
		must(getrandom(&seed, sizeof(seed), 0) == sizeof(seed));
	json_object_seed(seed);
}

/* -- parsing ------------------------------------------------------------ */

static const json_t *inner(const struct json *j)
{
	return (const json_t *)(const void *)j;
}

static const struct json *outer(const json_t *j)
{
	return (const struct json *)(const void *)j;
}

struct shape {
	unsigned depth; /* the deepest nesting of brackets outside strings */
	size_t values;	/* at least as many as there are */
};

/* The text may be broken. */
static struct shape text_shape(struct span text)
{
	struct shape found = { .values = 1 };
	unsigned depth = 0;
	bool quoted = false;
	size_t i;

	for (i = 0; i < text.len; i++) {
		switch (text.ptr[i]) {
		case '"':
			quoted = !quoted;
			break;
		case '\\':
			i += quoted;
			break;
		case '[':
		case '{':
			depth += !quoted;
			found.depth = MAX(found.depth, depth);
			found.values += !quoted;
			break;
		case ']':
		case '}':
			depth -= !quoted && depth;
			break;
		case ',':
			found.values += !quoted;
			break;
		default:
			break;
		}
	}
	return found;
}

static int text_check(struct span text, size_t values_max, struct diag *d)
{
	struct shape shape;

	if (text.len > JSON_TEXT_MAX)
		return diag_set(d, 0, 0, "found %zu bytes, expected at most %d",
				text.len, JSON_TEXT_MAX);
	shape = text_shape(text);
	if (shape.depth > JSON_DEPTH_MAX)
		return diag_set(d, 0, 0,
				"found nesting deeper than %d containers",
				JSON_DEPTH_MAX);
	if (shape.values > values_max)
		return diag_set(d, 0, 0, "found more than %zu values",
				values_max);
	return 0;
}

int json_parse_within(struct span text, size_t values_max, struct json **ret,
		      struct diag *d)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const size_t flags =
		JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY;
	json_error_t error;
	json_t *j;
	int r;

	(void)pthread_once(&once, jansson_install);
	r = text_check(text, values_max, d);
	if (r)
		return r;
	j = json_loadb(text.ptr ? text.ptr : "", text.len, flags, &error);
	if (!j) {
		memory_return(); /* of what was made of it so far */
		return diag_set(d, error.line > 0 ? (unsigned)error.line : 0,
				error.column > 0 ? (unsigned)error.column : 0,
				"not JSON: %s", error.text);
	}
	*ret = (struct json *)(void *)j;
	return 0;
}

int json_parse(struct span text, struct json **ret, struct diag *d)
{
	return json_parse_within(text, JSON_VALUES_MAX, ret, d);
}

struct json *json_free(struct json *root)
{
	json_decref((json_t *)(void *)root);
	memory_return();
	return NULL;
}

/* -- reading without ceremony ------------------------------------------- */

enum json_kind json_kind(const struct json *j)
{
	if (!j)
		return JSON_KIND_NONE;
	switch (json_typeof(inner(j))) {
	case JSON_OBJECT:
		return JSON_KIND_OBJECT;
	case JSON_ARRAY:
		return JSON_KIND_ARRAY;
	case JSON_STRING:
		return JSON_KIND_STRING;
	case JSON_INTEGER:
	case JSON_REAL:
		return JSON_KIND_NUMBER;
	case JSON_TRUE:
	case JSON_FALSE:
		return JSON_KIND_BOOL;
	case JSON_NULL:
		return JSON_KIND_NULL;
	}
	return JSON_KIND_NONE;
}

const char *json_kind_name(enum json_kind kind)
{
	return kind < JSON_KIND_NUM ? kind_names[kind] : "nothing";
}

const struct json *json_find(const struct json *object, const char *name)
{
	return outer(json_object_get(inner(object), name));
}

const struct json *json_find_some(const struct json *object, const char *name)
{
	const struct json *found = json_find(object, name);

	return json_kind(found) == JSON_KIND_NULL ? NULL : found;
}

struct span json_text(const struct json *j)
{
	if (!json_is_string(inner(j)))
		return SPAN_NONE;
	return span_of(json_string_value(inner(j)),
		       json_string_length(inner(j)));
}

bool json_i64(const struct json *j, int64_t *ret)
{
	if (!json_is_integer(inner(j)))
		return false;
	*ret = json_integer_value(inner(j));
	return true;
}

bool json_u64(const struct json *j, uint64_t *ret)
{
	int64_t value;

	if (!json_i64(j, &value) || value < 0)
		return false;
	*ret = (uint64_t)value;
	return true;
}

bool json_bool(const struct json *j)
{
	return j && json_typeof(inner(j)) == JSON_TRUE;
}

size_t json_count(const struct json *j)
{
	if (json_kind(j) == JSON_KIND_ARRAY)
		return json_array_size(inner(j));
	return json_object_size(inner(j));
}

const struct json *json_item(const struct json *array, size_t index)
{
	return outer(json_array_get(inner(array), index));
}

const struct json *json_next(const struct json *object, void **cursor,
			     struct span *ret_name)
{
	json_t *j = (json_t *)(uintptr_t)object;

	*cursor = *cursor ? json_object_iter_next(j, *cursor)
			  : json_object_iter(j);
	if (!*cursor)
		return NULL;
	*ret_name = span_of(json_object_iter_key(*cursor),
			    json_object_iter_key_len(*cursor));
	return outer(json_object_iter_value(*cursor));
}

/* -- reading what people wrote ------------------------------------------ */

/* The member, which must be of the kind. As the json_get_*() family. */
static int member_get(const struct json *object, const char *where,
		      const char *name, enum json_kind kind,
		      const struct json **ret, struct diag *d)
{
	const struct json *j = json_find(object, name);

	if (!j)
		return JSON_E_ABSENT;
	if (json_kind(j) != kind)
		return diag_set(d, 0, 0, "%s: \"%s\": found %s, expected %s",
				where, name, json_kind_name(json_kind(j)),
				json_kind_name(kind));
	*ret = j;
	return 0;
}

int json_get_text(const struct json *object, const char *where,
		  const char *name, struct span *ret, struct diag *d)
{
	const struct json *j;
	int r;

	r = member_get(object, where, name, JSON_KIND_STRING, &j, d);
	if (!r)
		*ret = json_text(j);
	return r;
}

int json_get_u64(const struct json *object, const char *where, const char *name,
		 uint64_t *ret, struct diag *d)
{
	const struct json *j;
	int r;

	r = member_get(object, where, name, JSON_KIND_NUMBER, &j, d);
	if (r)
		return r;
	if (!json_u64(j, ret))
		return diag_set(d, 0, 0,
				"%s: \"%s\": expected a whole number of 0 or "
				"more",
				where, name);
	return 0;
}

int json_get_array(const struct json *object, const char *where,
		   const char *name, const struct json **ret, struct diag *d)
{
	return member_get(object, where, name, JSON_KIND_ARRAY, ret, d);
}

int json_get_object(const struct json *object, const char *where,
		    const char *name, const struct json **ret, struct diag *d)
{
	return member_get(object, where, name, JSON_KIND_OBJECT, ret, d);
}

int json_want(const struct json *j, enum json_kind kind, const char *where,
	      struct diag *d)
{
	if (json_kind(j) == kind)
		return 0;
	return diag_set(d, 0, 0, "%s: found %s, expected %s", where,
			json_kind_name(json_kind(j)), json_kind_name(kind));
}

int json_refuse_unknown(const struct json *object, const char *where,
			const char *const *known, struct diag *d)
{
	const char *const *word;
	const char *near;
	void *cursor = NULL;
	struct span name;

	while (json_next(object, &cursor, &name)) {
		for (word = known; *word; word++)
			if (span_eq(name, span_str(*word)))
				break;
		if (*word)
			continue;
		near = diag_suggest(name.ptr, known);
		if (near)
			return diag_set(d, 0, 0,
					"%s: unknown field \"%.64s\"; did you "
					"mean \"%s\"?",
					where, name.ptr, near);
		return diag_set(d, 0, 0, "%s: unknown field \"%.64s\"", where,
				name.ptr);
	}
	return 0;
}

/* -- writing a parsed value --------------------------------------------- */

static void number_put(struct json_out *o, const char *name, const json_t *j)
{
	char text[64];

	if (json_is_integer(j)) {
		json_put_i64(o, name, json_integer_value(j));
		return;
	}
	(void)snprintf(text, sizeof(text), "%.17g", json_real_value(j));
	json_put_raw(o, name, span_str(text));
}

/* Depth is bounded by json_parse(). */
void json_put_json(struct json_out *o, const char *name, const struct json *j)
{
	void *cursor = NULL;
	struct span member;
	const struct json *value;

	switch (json_kind(j)) {
	case JSON_KIND_OBJECT:
		json_open_object(o, name);
		while ((value = json_next(j, &cursor, &member))) {
			json_put_name(o, member);
			json_put_json(o, NULL, value);
		}
		json_close(o);
		return;
	case JSON_KIND_ARRAY:
		json_open_array(o, name);
		json_for_each(item, j) json_put_json(o, NULL, item);
		json_close(o);
		return;
	case JSON_KIND_STRING:
		json_put_text(o, name, json_text(j));
		return;
	case JSON_KIND_NUMBER:
		number_put(o, name, inner(j));
		return;
	case JSON_KIND_BOOL:
		json_put_bool(o, name, json_bool(j));
		return;
	case JSON_KIND_NULL:
	case JSON_KIND_NONE:
	case JSON_KIND_NUM:
		json_put_null(o, name);
		return;
	}
}

int json_emit(struct buf *buf, const struct json *j)
{
	struct json_out o;

	json_start(&o, buf);
	json_put_json(&o, NULL, j);
	return json_done(&o);
}
