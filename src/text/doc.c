/* SPDX-License-Identifier: Apache-2.0 */
/* doc.c - build a document tree from libyaml's events
 *
 * How it works: libyaml turns text into a flat stream of events; the builder
 * keeps a stack of the lists and maps that are open and hangs every finished
 * node under the top one. A map wants key and value in turn: a scalar that
 * comes while no key is pending is the key of the next node. All nodes and
 * texts live in one arena that goes with the document.
 *
 * libyaml is met in this file only. Its depth is bounded by ours, because an
 * event is refused before the next one is asked for.
 */

#include "src/text/doc.h"

#include <errno.h>
#include <stdio.h>
#include <yaml.h>

#include "src/base/arena.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/base/map.h"

enum {
	/* "[,1,1" makes a node of 112 bytes from two bytes of text */
	ARENA_PER_BYTE = 80,
	ARENA_EXTRA_BYTES = 64 * 1024,
	ARENA_MAX_BYTES = 1024 * 1024 * 1024,
	/* up to so many keys a linear search finds a duplicate */
	FEW_KEYS = 16,
	QUOTE_BYTES = 80,
};

struct doc {
	struct arena arena;
	const struct doc_node *root;
};

/* A list or map that is still open. */
struct level {
	struct doc_node *node;
	struct doc_node *last; /* newest child */
	struct map keys;       /* used when there are more than FEW_KEYS */
	struct span key;       /* pending; ptr NULL: none */
	uint32_t key_line, key_col;
};

struct builder {
	struct doc *doc;
	struct diag *diag;
	struct level levels[DOC_DEPTH_MAX];
	unsigned depth;
	unsigned documents;
};

static const char *const kind_names[DOC_KIND_NUM] = {
	[DOC_NULL] = "null",	   [DOC_BOOL] = "true or false",
	[DOC_NUMBER] = "a number", [DOC_STRING] = "a string",
	[DOC_LIST] = "a list",	   [DOC_MAP] = "a map",
};

const char *doc_kind_name(enum doc_kind kind)
{
	return kind < DOC_KIND_NUM ? kind_names[kind] : "nothing known";
}

static uint32_t mark_line(const yaml_mark_t *m)
{
	return (uint32_t)m->line + 1;
}

static uint32_t mark_col(const yaml_mark_t *m)
{
	return (uint32_t)m->column + 1;
}

static int refuse(struct builder *b, const yaml_event_t *e, const char *msg)
{
	return diag_set(b->diag, mark_line(&e->start_mark),
			mark_col(&e->start_mark), "%s", msg);
}

static size_t skip_digits(struct span s, size_t at)
{
	while (at < s.len && s.ptr[at] >= '0' && s.ptr[at] <= '9')
		at++;
	return at;
}

/* [-+]? (digits [. digits*] | . digits) ([eE] [-+]? digits)? */
static bool is_number(struct span s)
{
	size_t at = s.len && (s.ptr[0] == '-' || s.ptr[0] == '+');
	size_t whole = skip_digits(s, at) - at, part = 0, from;

	at += whole;
	if (at < s.len && s.ptr[at] == '.') {
		part = skip_digits(s, at + 1) - (at + 1);
		at += 1 + part;
	}
	if (!whole && !part)
		return false;
	if (at < s.len && (s.ptr[at] | 0x20) == 'e') {
		at++;
		at += at < s.len && (s.ptr[at] == '-' || s.ptr[at] == '+');
		from = at;
		at = skip_digits(s, at);
		if (at == from)
			return false;
	}
	return at == s.len;
}

static bool is_word(struct span s, const char *lower, const char *title,
		    const char *upper)
{
	return span_eq(s, span_str(lower)) || span_eq(s, span_str(title)) ||
	       span_eq(s, span_str(upper));
}

static enum doc_kind plain_kind(struct span s)
{
	if (!s.len || span_eq(s, SPAN("~")) ||
	    is_word(s, "null", "Null", "NULL"))
		return DOC_NULL;
	if (is_word(s, "true", "True", "TRUE") ||
	    is_word(s, "false", "False", "FALSE"))
		return DOC_BOOL;
	return is_number(s) ? DOC_NUMBER : DOC_STRING;
}

/* Is the pending key of this level already there? Keys are few nearly always;
 * when they are many a hash takes over. */
static bool level_has_key(struct level *l, struct span key)
{
	if (l->node->count < FEW_KEYS) {
		doc_for_each(it,
			     l->node) if (span_eq(it->key, key)) return true;
		return false;
	}
	if (!map_count(&l->keys))
		doc_for_each(it, l->node)(void)
			map_set(&l->keys, it->key, l->node);
	return map_set(&l->keys, key, l->node) != NULL;
}

static int take_key(struct builder *b, struct level *l, const yaml_event_t *e,
		    struct span text)
{
	char quoted[QUOTE_BYTES];

	if (level_has_key(l, text))
		return diag_set(
			b->diag, mark_line(&e->start_mark),
			mark_col(&e->start_mark),
			"found the key \"%s\" twice in one map, expected once",
			log_escape(text, quoted, sizeof(quoted)));
	l->key = text;
	l->key_line = mark_line(&e->start_mark);
	l->key_col = mark_col(&e->start_mark);
	return 0;
}

/* A new node below the open list or map, or the root. NULL: out of memory. */
static struct doc_node *add_node(struct builder *b, const yaml_event_t *e,
				 enum doc_kind kind)
{
	struct level *l = b->depth ? &b->levels[b->depth - 1] : NULL;
	struct doc_node *n = arena_alloc(&b->doc->arena, sizeof(*n));

	if (!n)
		return NULL;
	n->kind = kind;
	n->line = mark_line(&e->start_mark);
	n->col = mark_col(&e->start_mark);
	if (!l) {
		b->doc->root = n;
		return n;
	}
	n->key = l->key;
	n->key_line = l->key_line;
	n->key_col = l->key_col;
	l->key = SPAN_NONE;
	if (l->last)
		l->last->next = n;
	else
		l->node->children = n;
	l->last = n;
	l->node->count++;
	return n;
}

static bool wants_key(const struct builder *b)
{
	const struct level *l = &b->levels[b->depth ? b->depth - 1 : 0];

	return b->depth && l->node->kind == DOC_MAP && !l->key.ptr;
}

static int on_scalar(struct builder *b, const yaml_event_t *e)
{
	struct span text = span_of(e->data.scalar.value, e->data.scalar.length);
	enum doc_kind kind = DOC_STRING;
	struct doc_node *n;

	if (e->data.scalar.anchor || e->data.scalar.tag)
		return refuse(b, e,
			      "found a YAML anchor or tag, expected a "
			      "plain or quoted value");
	if (span_find(text, '\0') != text.len)
		return refuse(b, e, "found a NUL in a string, expected text");

	text = arena_dup(&b->doc->arena, text);
	if (!text.ptr)
		return refuse(b, e, "found too much text for one document");
	if (wants_key(b))
		return take_key(b, &b->levels[b->depth - 1], e, text);

	if (e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		kind = plain_kind(text);
	n = add_node(b, e, kind);
	if (!n)
		return refuse(b, e, "found too many values for one document");
	n->text = text;
	return 0;
}

static int on_open(struct builder *b, const yaml_event_t *e, enum doc_kind kind,
		   bool decorated)
{
	struct doc_node *n;

	if (decorated)
		return refuse(b, e,
			      "found a YAML anchor or tag, expected a "
			      "plain list or map");
	if (wants_key(b))
		return refuse(b, e,
			      "found a list or map as a key, expected a "
			      "string");
	if (b->depth == DOC_DEPTH_MAX)
		return refuse(b, e,
			      "found lists and maps nested too deep, "
			      "expected at most 32 levels");
	n = add_node(b, e, kind);
	if (!n)
		return refuse(b, e, "found too many values for one document");
	b->levels[b->depth++] = (struct level){ .node = n };
	return 0;
}

static int on_close(struct builder *b)
{
	must(b->depth);
	b->depth--;
	map_fini(&b->levels[b->depth].keys);
	return 0;
}

static int on_event(struct builder *b, const yaml_event_t *e)
{
	switch (e->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (b->documents++)
			return refuse(b, e,
				      "found a second document, "
				      "expected one in a file");
		return 0;
	case YAML_ALIAS_EVENT:
		return refuse(b, e,
			      "found an unquoted '*' (a YAML alias), "
			      "expected a value; write \"*...\" in "
			      "quotes");
	case YAML_SCALAR_EVENT:
		return on_scalar(b, e);
	case YAML_SEQUENCE_START_EVENT:
		return on_open(b, e, DOC_LIST,
			       e->data.sequence_start.anchor ||
				       e->data.sequence_start.tag);
	case YAML_MAPPING_START_EVENT:
		return on_open(b, e, DOC_MAP,
			       e->data.mapping_start.anchor ||
				       e->data.mapping_start.tag);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return on_close(b);
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		return 0;
	}
	must(!"an event of libyaml we do not know");
}

/* libyaml's own complaint, in our words where people often meet it. */
static int on_error(struct builder *b, const yaml_parser_t *p)
{
	const yaml_mark_t *m = &p->problem_mark;

	if (p->error == YAML_READER_ERROR)
		return diag_set(b->diag, mark_line(&p->mark),
				mark_col(&p->mark),
				"found bytes that are no text (%s), expected "
				"UTF-8",
				p->problem ? p->problem : "unreadable");
	if (p->context && !strcmp(p->context, "while scanning an alias"))
		return diag_set(b->diag, mark_line(&p->context_mark),
				mark_col(&p->context_mark),
				"found an unquoted '*' (a YAML alias), "
				"expected a value; write \"*...\" in quotes");
	return diag_set(b->diag, mark_line(m), mark_col(m),
			"found text that is no YAML or JSON: %s%s%s",
			p->problem ? p->problem : "out of memory",
			p->context ? ", " : "", p->context ? p->context : "");
}

static int build(struct builder *b, yaml_parser_t *p)
{
	bool ended = false;
	yaml_event_t e;
	int r = 0;

	while (!r && !ended) {
		if (!yaml_parser_parse(p, &e))
			return on_error(b, p);
		ended = e.type == YAML_STREAM_END_EVENT;
		r = on_event(b, &e);
		yaml_event_delete(&e);
	}
	return r;
}

int doc_parse(struct span text, struct doc **ret, struct diag *d)
{
	static const struct doc_node nothing = { .line = 1, .col = 1 };
	CLEANUP_DOC struct doc *doc = NULL;
	struct builder b = { .diag = d };
	yaml_parser_t p;
	int r;

	if (text.len > DOC_TEXT_MAX)
		return diag_set(d, 0, 0,
				"found %zu bytes of text, expected at most %d",
				text.len, DOC_TEXT_MAX);
	doc = b.doc = must_alloc(sizeof(*doc));
	doc->root = &nothing;
	arena_init(&doc->arena,
		   MIN(text.len * ARENA_PER_BYTE + ARENA_EXTRA_BYTES,
		       (size_t)ARENA_MAX_BYTES));

	must(yaml_parser_initialize(&p));
	yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(
		&p, (const unsigned char *)(text.len ? text.ptr : ""),
		text.len);
	r = build(&b, &p);
	yaml_parser_delete(&p);
	while (b.depth)
		(void)on_close(&b);
	if (r)
		return r;
	*ret = take_ptr(doc);
	return 0;
}

struct doc *doc_free(struct doc *doc)
{
	if (!doc)
		return NULL;
	arena_fini(&doc->arena);
	free(doc);
	return NULL;
}

const struct doc_node *doc_root(const struct doc *doc)
{
	return doc->root;
}

const struct doc_node *doc_find(const struct doc_node *map, const char *key)
{
	struct span wanted = span_str(key);

	if (map->kind != DOC_MAP)
		return NULL;
	doc_for_each(it, map) if (span_eq(it->key, wanted)) return it;
	return NULL;
}

/* "ports: ", or nothing in a list. */
static const char *key_prefix(const struct doc_node *n, char *dst, size_t size)
{
	char key[QUOTE_BYTES - 2];

	if (!n->key.ptr)
		return "";
	(void)snprintf(dst, size, "%s: ", log_escape(n->key, key, sizeof(key)));
	return dst;
}

int doc_found_kind(const struct doc_node *n, const char *expected,
		   struct diag *d)
{
	char prefix[QUOTE_BYTES];

	return diag_set(d, n->line, n->col, "%sfound %s, expected %s",
			key_prefix(n, prefix, sizeof(prefix)),
			doc_kind_name(n->kind), expected);
}

int doc_found_value(const struct doc_node *n, const char *expected,
		    struct diag *d)
{
	char prefix[QUOTE_BYTES], quoted[QUOTE_BYTES];

	if (n->kind == DOC_LIST || n->kind == DOC_MAP || n->kind == DOC_NULL)
		return doc_found_kind(n, expected, d);
	return diag_set(d, n->line, n->col, "%sfound \"%s\", expected %s",
			key_prefix(n, prefix, sizeof(prefix)),
			log_escape(n->text, quoted, sizeof(quoted)), expected);
}

int doc_expect(const struct doc_node *n, enum doc_kind kind, struct diag *d)
{
	if (n->kind == kind)
		return 0;
	return doc_found_kind(n, doc_kind_name(kind), d);
}

int doc_get_string(const struct doc_node *n, struct span *ret, struct diag *d)
{
	int r = doc_expect(n, DOC_STRING, d);

	if (!r)
		*ret = n->text;
	return r;
}

int doc_get_bool(const struct doc_node *n, bool *ret, struct diag *d)
{
	int r = doc_expect(n, DOC_BOOL, d);

	if (!r)
		*ret = (n->text.ptr[0] | 0x20) == 't';
	return r;
}

int doc_get_u64(const struct doc_node *n, uint64_t min, uint64_t max,
		uint64_t *ret, struct diag *d)
{
	char expected[80];
	uint64_t value;

	(void)snprintf(expected, sizeof(expected),
		       "a whole number from %llu to %llu",
		       (unsigned long long)min, (unsigned long long)max);
	if (n->kind != DOC_NUMBER)
		return doc_found_kind(n, expected, d);
	if (!span_parse_u64(n->text, &value) || value < min || value > max)
		return doc_found_value(n, expected, d);
	*ret = value;
	return 0;
}

static bool is_known(struct span key, const char *const *known)
{
	for (; *known; known++)
		if (span_eq(key, span_str(*known)))
			return true;
	return false;
}

int doc_check_keys(const struct doc_node *n, const char *const *known,
		   struct diag *d)
{
	char quoted[QUOTE_BYTES];
	const char *near;
	int r;

	r = doc_expect(n, DOC_MAP, d);
	if (r)
		return r;
	doc_for_each(it, n)
	{
		if (is_known(it->key, known))
			continue;
		log_escape(it->key, quoted, sizeof(quoted));
		near = diag_suggest(quoted, known);
		return diag_set(d, it->key_line, it->key_col,
				near ? "found the unknown key \"%s\", "
				       "expected perhaps \"%s\""
				     : "found the unknown key \"%s\"%s",
				quoted, near ? near : "");
	}
	return 0;
}
