/* SPDX-License-Identifier: Apache-2.0 */
/* doc.h - JSON or YAML text as a tree that remembers where everything stood
 *
 * For what people write: configuration and policy files. JSON is read by the
 * same parser, being YAML. Refused: anchors, aliases, tags, more than one
 * document, duplicate keys, keys that are no scalars, NUL in a string, text
 * over DOC_TEXT_MAX, nesting over DOC_DEPTH_MAX.
 *
 * A quoted scalar is a string. A plain one is typed by the rules of YAML 1.2:
 * null (~, null, nothing), true and false, decimal numbers; all else is a
 * string, so `yes` and `0x10` are strings and surprise nobody.
 *
 * Errors go to diag with line and column; diag->file is the caller's. Type
 * errors name the kind that was found and never repeat the value, which may
 * be a secret.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/diag.h"
#include "src/base/span.h"

enum { DOC_TEXT_MAX = 32 * 1024 * 1024, DOC_DEPTH_MAX = 32 };

enum doc_kind {
	DOC_NULL, /* zero */
	DOC_BOOL,
	DOC_NUMBER,
	DOC_STRING,
	DOC_LIST,
	DOC_MAP,
	DOC_KIND_NUM,
};

/* Owned by the document, read-only. Spans are NUL-terminated and hold no NUL;
 * they live as long as the document. */
struct doc_node {
	const struct doc_node *next;	 /* in the parent, or NULL */
	const struct doc_node *children; /* first; of a list or map */
	struct span text;		 /* of a scalar */
	struct span key;		 /* in a map; ptr NULL elsewhere */
	uint32_t count;			 /* children */
	uint32_t line, col;		 /* where the value begins, 1-based */
	uint32_t key_line, key_col;	 /* where the key begins */
	enum doc_kind kind;
};

struct doc;

/* 0; -EINVAL with diag; *ret is touched on success only. Empty text is a
 * document whose root is null. */
WUNRES int doc_parse(struct span text, struct doc **ret, struct diag *d);
/* NULL is fine; returns NULL. */
struct doc *doc_free(struct doc *doc);
/* Never NULL. */
const struct doc_node *doc_root(const struct doc *doc);

/* "null", "true or false", "a number", "a string", "a list", "a map". */
const char *doc_kind_name(enum doc_kind kind);

/* The value of key, or NULL. NULL too when map is no map. */
const struct doc_node *doc_find(const struct doc_node *map, const char *key);

/* Children of a list or map in order; none for a scalar. */
#define doc_for_each(it, parent) \
	for (const struct doc_node *it = (parent)->children; it; it = it->next)

/* All below: 0 and *ret set, or -EINVAL with diag "key: found X, expected Y"
 * at the node's place. */
WUNRES int doc_expect(const struct doc_node *n, enum doc_kind kind,
		      struct diag *d);
WUNRES int doc_get_string(const struct doc_node *n, struct span *ret,
			  struct diag *d);
WUNRES int doc_get_bool(const struct doc_node *n, bool *ret, struct diag *d);
/* A whole number min..max. */
WUNRES int doc_get_u64(const struct doc_node *n, uint64_t min, uint64_t max,
		       uint64_t *ret, struct diag *d);

/* n is a map, and each of its keys is one of `known` (NULL-terminated);
 * suggests the nearest known key. */
WUNRES int doc_check_keys(const struct doc_node *n, const char *const *known,
			  struct diag *d);

/* Always -EINVAL. found_kind says what kind was found; found_value quotes the
 * scalar (never use it for what may be secret). `expected` is for people:
 * "a list of ports". */
int doc_found_kind(const struct doc_node *n, const char *expected,
		   struct diag *d);
int doc_found_value(const struct doc_node *n, const char *expected,
		    struct diag *d);

static inline void cleanup_doc(struct doc **doc)
{
	*doc = doc_free(*doc);
}
#define CLEANUP_DOC CLEANUP(cleanup_doc)
