/* SPDX-License-Identifier: Apache-2.0 */
/* glob.c - names against patterns, without running away
 *
 * How it works: a pattern without braces needs no recursion. A star remembers
 * where it stood and how much of the name it has taken; a mismatch goes back
 * to the last star only, which takes one more character. Stars before it need
 * never take more: the last one can reach whatever they could.
 */

#include "src/execd/files/glob.h"

#include <errno.h>

#include "src/base/diag.h"
#include "src/base/err.h"

enum { DEPTH_MAX = 8 };

struct glob {
	struct span patterns[GLOB_PATTERNS_MAX]; /* each its own memory */
	unsigned count;
};

/* -- characters ----------------------------------------------------------- */

/* Takes one character: a code point, or a byte that is none as 0x110000 and
 * more, so that it equals nothing but itself. */
static uint32_t char_take(struct span *s)
{
	const unsigned char *p = (const unsigned char *)s->ptr;
	uint32_t code = p[0];
	size_t len = p[0] < 0x80		   ? 1
		     : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
		     : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
		     : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
						   : 0;
	size_t i;

	if (len > 1 && len <= s->len) {
		code &= 0xffu >> (len + 1);
		for (i = 1; i < len && (p[i] & 0xc0) == 0x80; i++)
			code = code << 6 | (p[i] & 0x3fu);
		len = i == len ? len : 0;
	}
	if (!len || len > s->len) {
		code = 0x110000u + p[0];
		len = 1;
	}
	*s = span_from(*s, len);
	return code;
}

/* The same in a pattern, where a backslash takes the meaning away. */
static uint32_t literal_take(struct span *p)
{
	if (p->ptr[0] == '\\')
		*p = span_from(*p, 1);
	return char_take(p);
}

/* -- sets ----------------------------------------------------------------- */

/* Takes the set whose '[' was taken, with its ']'. Is c in it? The set is well
 * formed: set_check() looked. */
static bool set_take(struct span *p, uint32_t c)
{
	bool negated = p->ptr[0] == '!' || p->ptr[0] == '^', found = false;
	uint32_t low, high;

	if (negated)
		*p = span_from(*p, 1);
	do {
		low = high = literal_take(p);
		if (p->len > 1 && p->ptr[0] == '-' && p->ptr[1] != ']') {
			*p = span_from(*p, 1);
			high = literal_take(p);
		}
		found |= low <= c && c <= high;
	} while (p->ptr[0] != ']');
	*p = span_from(*p, 1);
	return found != negated;
}

/* Bytes of the set at the front of s, which is behind its '[', with the ']';
 * 0: it has no end, or nothing in it. */
static size_t set_check(struct span s)
{
	size_t i = s.len && (s.ptr[0] == '!' || s.ptr[0] == '^'), first = i;

	for (; i < s.len && (s.ptr[i] != ']'); i++)
		if (s.ptr[i] == '\\')
			i++;
	return i < s.len && i > first ? i + 1 : 0;
}

/* -- matching ------------------------------------------------------------- */

/* One element of the pattern that is no star, against one character. */
static bool element_take(struct span *p, uint32_t c)
{
	char kind = p->ptr[0];

	if (kind == '?') {
		*p = span_from(*p, 1);
		return true;
	}
	if (kind == '[') {
		*p = span_from(*p, 1);
		return set_take(p, c);
	}
	return literal_take(p) == c;
}

static bool plain_matches(struct span p, struct span name)
{
	struct span star = SPAN_NONE, at = SPAN_NONE; /* behind the last star */
	uint32_t c;

	while (name.len || p.len) {
		if (p.len && p.ptr[0] == '*') {
			p = star = span_from(p, 1);
			at = name;
			continue;
		}
		if (name.len && p.len) {
			c = char_take(&name);
			if (element_take(&p, c))
				continue;
		}
		if (!star.ptr || !at.len)
			return false;
		(void)char_take(&at);
		name = at;
		p = star;
	}
	return true;
}

bool glob_matches(const struct glob *g, struct span name)
{
	unsigned i;

	for (i = 0; i < g->count; i++)
		if (plain_matches(g->patterns[i], name))
			return true;
	return false;
}

/* -- patterns ------------------------------------------------------------- */

/* Bytes of the element at s.ptr[i]: an escape, a set, or one. 0: it has no
 * end. */
static size_t element_len(struct span s, size_t i)
{
	size_t set;

	if (s.ptr[i] == '\\')
		return i + 1 < s.len ? 2 : 0;
	if (s.ptr[i] != '[')
		return 1;
	set = set_check(span_from(s, i + 1));
	return set ? 1 + set : 0;
}

/* What is wrong with it, or NULL. Braces are counted, not worked out. */
static const char *pattern_check(struct span s)
{
	unsigned depth = 0;
	size_t i, len;

	for (i = 0; i < s.len; i += len) {
		len = element_len(s, i);
		if (!len)
			return s.ptr[i] == '['
				       ? "a \"[\" whose set is empty or "
					 "has no \"]\""
				       : "a backslash at its end";
		if (s.ptr[i] == '{' && ++depth > DEPTH_MAX)
			return "braces in braces, more than 8 deep";
		if (s.ptr[i] == '}' && depth)
			depth--;
	}
	return depth ? "a \"{\" without its \"}\"" : NULL;
}

/* The first '{' that opens alternatives, or s.len. */
static size_t brace_find(struct span s)
{
	size_t i;

	for (i = 0; i < s.len && s.ptr[i] != '{'; i += element_len(s, i))
		;
	return MIN(i, s.len);
}

/* Where the alternative that begins at `from` ends: its ',' or '}'. */
static size_t alternative_end(struct span s, size_t from)
{
	unsigned depth = 0;
	size_t i;

	for (i = from; i < s.len; i += element_len(s, i)) {
		if (s.ptr[i] == '{')
			depth++;
		if (!depth && (s.ptr[i] == ',' || s.ptr[i] == '}'))
			break;
		depth -= s.ptr[i] == '}';
	}
	return i;
}

static size_t brace_end(struct span s, size_t from)
{
	size_t i = alternative_end(s, from);

	while (s.ptr[i] == ',')
		i = alternative_end(s, i + 1);
	return i;
}

/* Adds s, or what its first braces make of it. Every step takes a pair of
 * braces away; the count of patterns bounds the rest. */
static bool pattern_add(struct glob *g, struct span s)
{
	size_t open = brace_find(s), close, from, to;
	struct span one;
	char *copy;
	bool fits;

	if (open == s.len) {
		if (g->count == GLOB_PATTERNS_MAX)
			return false;
		copy = must_alloc(s.len + 1);
		memcpy(copy, s.ptr, s.len);
		g->patterns[g->count++] = span_of(copy, s.len);
		return true;
	}
	close = brace_end(s, open + 1);
	copy = must_alloc(s.len + 1);
	memcpy(copy, s.ptr, open);
	from = open + 1;
	do {
		to = alternative_end(s, from);
		memcpy(copy + open, s.ptr + from, to - from);
		memcpy(copy + open + to - from, s.ptr + close + 1,
		       s.len - close - 1);
		one = span_of(copy, open + to - from + s.len - close - 1);
		fits = pattern_add(g, one);
		from = to + 1;
	} while (fits && to < close);
	free(copy);
	return fits;
}

int glob_new(struct span pattern, struct glob **ret, struct diag *d)
{
	const char *wrong;
	struct glob *g;

	if (pattern.len > GLOB_BYTES_MAX)
		return diag_set(d, 0, 0,
				"found a pattern of %zu bytes, expected at "
				"most %d",
				pattern.len, GLOB_BYTES_MAX);
	wrong = pattern_check(pattern);
	if (wrong)
		return diag_set(d, 0, 0, "found a pattern with %s", wrong);
	while (span_starts(pattern, SPAN("**/")))
		pattern = span_from(pattern, 3);

	g = must_alloc(sizeof(*g));
	if (!pattern_add(g, pattern)) {
		(void)glob_free(g);
		return diag_set(d, 0, 0,
				"found a pattern of more than %d alternatives",
				GLOB_PATTERNS_MAX);
	}
	*ret = g;
	return 0;
}

struct glob *glob_free(struct glob *g)
{
	unsigned i;

	if (!g)
		return NULL;
	for (i = 0; i < g->count; i++)
		free((char *)(uintptr_t)g->patterns[i].ptr);
	free(g);
	return NULL;
}
