/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - JSON texts: parsed into values, written member by member
 *
 * Reading: json_parse() makes a tree. The root is owned and freed as a whole;
 * every other value is borrowed from it and read-only. The plain readers
 * (json_find, json_text, ...) are total: a NULL value or a value of another
 * type reads as nothing, so that trusted texts are read without ceremony. The
 * json_get_*() readers are for texts that people wrote: they say what was
 * found and what was expected.
 *
 * Writing: struct json_out puts bytes straight into a struct buf, commas
 * included; the first failure sticks and json_done() reports it.
 *
 * Freed memory of parsed texts is wiped: credential values pass through here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;
struct diag;
struct json;

enum {
	JSON_TEXT_MAX = 32 * 1024 * 1024,
	JSON_DEPTH_MAX = 32, /* containers inside containers */
	/* Each costs 150 bytes and more however few its text has, "0,": a
	 * text of the longest kind could ask for gigabytes. */
	JSON_VALUES_MAX = 1024 * 1024,
};

enum json_kind {
	JSON_KIND_NONE, /* zero: there is no value */
	JSON_KIND_NULL,
	JSON_KIND_BOOL,
	JSON_KIND_NUMBER,
	JSON_KIND_STRING,
	JSON_KIND_ARRAY,
	JSON_KIND_OBJECT,
	JSON_KIND_NUM,
};

/* One whole text (RFC 8259, UTF-8, nothing behind it). Refused: duplicate
 * member names, nesting over JSON_DEPTH_MAX, more values than JSON_VALUES_MAX,
 * texts over JSON_TEXT_MAX. Strings may hold an escaped NUL. 0; -EINVAL with
 * line and column in d (may be NULL). */
WUNRES int json_parse(struct span text, struct json **ret, struct diag *d);
/* The same with a bound of the caller's on the values. */
WUNRES int json_parse_within(struct span text, size_t values_max,
			     struct json **ret, struct diag *d);
/* The root only. NULL is fine. Returns NULL. */
struct json *json_free(struct json *root);

static inline void cleanup_json(struct json **j)
{
	*j = json_free(*j);
}
#define CLEANUP_JSON CLEANUP(cleanup_json)

enum json_kind json_kind(const struct json *j);
/* "a string", "nothing": for sentences. */
const char *json_kind_name(enum json_kind kind);

/* -- reading without ceremony ------------------------------------------- */

/* The member's value, or NULL. */
const struct json *json_find(const struct json *object, const char *name);
/* The same; a member that is null is absent. */
const struct json *json_find_some(const struct json *object, const char *name);
/* SPAN_NONE when not a string (the empty string has a pointer). A NUL stands
 * behind the text. */
struct span json_text(const struct json *j);
/* False (*ret untouched) unless an integer of the range. */
bool json_u64(const struct json *j, uint64_t *ret);
bool json_i64(const struct json *j, int64_t *ret);
/* Is it the literal true? */
bool json_bool(const struct json *j);
/* Items of an array, members of an object; 0 for anything else. */
size_t json_count(const struct json *j);
/* Item of an array, or NULL. */
const struct json *json_item(const struct json *array, size_t index);
/* Walks an object in the order of its text: *cursor starts as NULL; the next
 * value, or NULL at the end. */
const struct json *json_next(const struct json *object, void **cursor,
			     struct span *ret_name);

#define json_for_each(it, array)                                            \
	for (size_t it##_at = 0; it##_at < json_count(array); it##_at++)    \
		for (const struct json *it = json_item(array, it##_at); it; \
		     it = NULL)

/* -- reading what people wrote ------------------------------------------ */

enum { JSON_E_ABSENT = 1 };

/* All: 0 found; JSON_E_ABSENT no such member (*ret untouched); -EINVAL with d
 * when it is of another type. `where` names the object in the sentence
 * ("binding", "match"). */
int json_get_text(const struct json *object, const char *where,
		  const char *name, struct span *ret, struct diag *d);
int json_get_u64(const struct json *object, const char *where, const char *name,
		 uint64_t *ret, struct diag *d);
int json_get_array(const struct json *object, const char *where,
		   const char *name, const struct json **ret, struct diag *d);
int json_get_object(const struct json *object, const char *where,
		    const char *name, const struct json **ret, struct diag *d);
/* -EINVAL with d unless j is of the kind. */
WUNRES int json_want(const struct json *j, enum json_kind kind,
		     const char *where, struct diag *d);
/* -EINVAL with d, with a suggestion, when the object has a member outside
 * `known` (NULL-terminated). */
WUNRES int json_refuse_unknown(const struct json *object, const char *where,
			       const char *const *known, struct diag *d);

/* -- writing ------------------------------------------------------------ */

struct json_out {
	struct buf *buf;
	uint64_t objects; /* bit per open container: is it an object? */
	unsigned depth;
	bool more; /* a comma is due */
	int error; /* sticky */
};

void json_start(struct json_out *o, struct buf *buf);
/* name is the member's name inside an object and NULL elsewhere. */
void json_open_object(struct json_out *o, const char *name);
void json_open_array(struct json_out *o, const char *name);
void json_close(struct json_out *o); /* the innermost container */
void json_put_text(struct json_out *o, const char *name, struct span text);
void json_put_str(struct json_out *o, const char *name, const char *text);
void json_put_u64(struct json_out *o, const char *name, uint64_t value);
void json_put_i64(struct json_out *o, const char *name, int64_t value);
void json_put_bool(struct json_out *o, const char *name, bool value);
void json_put_null(struct json_out *o, const char *name);
/* A copy of a parsed value. */
void json_put_json(struct json_out *o, const char *name, const struct json *j);
/* A JSON text that is known to be well-formed, as it is. */
void json_put_raw(struct json_out *o, const char *name, struct span text);
/* A member whose name is any bytes; then put its value with name NULL. */
void json_put_name(struct json_out *o, struct span name);
/* All containers must be closed. 0 or the first error (-ENOBUFS). */
int json_done(struct json_out *o);

/* Writes j as compact text. 0 or -ENOBUFS. */
WUNRES int json_emit(struct buf *buf, const struct json *j);

/* How many bytes at the front stand for themselves in a JSON string. */
size_t json_plain_len(struct span bytes);
/* Does json_escape() keep every byte of it, or is some of it no UTF-8? */
bool json_is_utf8(struct span bytes);
/* A JSON string literal, quotes included, from any bytes: what is not UTF-8
 * becomes U+FFFD. Pure ASCII without escapes is one copy. 0 or -ENOBUFS. */
WUNRES int json_escape(struct buf *buf, struct span bytes);
