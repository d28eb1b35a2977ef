/* SPDX-License-Identifier: Apache-2.0 */
/* url.c - one canonical reading of a path, or none
 *
 * How it works: the path is copied segment by segment. Each segment is written
 * behind a '/', decoded where that changes no meaning, and then looked at: "."
 * and ".." take themselves (and the segment before) off the copy again. What
 * the copy says is what an origin that follows RFC 3986 sees. Where known
 * servers part from it (escaped separators and dots, decoding twice, "..;" of
 * Java containers, overlong UTF-8, slashes merged before ".." is applied) the
 * answer is URL_PATH_AMBIGUOUS, and neither a credential nor a path rule that
 * allows may apply.
 */

#include "src/wire/url.h"

#include "src/wire/bytes.h"

struct copy {
	char *text;
	size_t len;
};

/* The byte that "%XX" at the start of s stands for, or -1. */
static int escape_value(struct span s)
{
	if (s.len < 3 || s.ptr[0] != '%' || !byte_is(s.ptr[1], BYTE_HEX) ||
	    !byte_is(s.ptr[2], BYTE_HEX))
		return -1;
	return (int)(byte_hex(s.ptr[1]) << 4 | byte_hex(s.ptr[2]));
}

/* UTF-8 that writes an ASCII byte, such as '/', in a longer form. */
static bool is_overlong(int value, struct span s)
{
	int next = escape_value(span_from(s, 3));

	return value == 0xc0 || value == 0xc1 ||
	       (value == 0xe0 && next >= 0x80 && next < 0xa0) ||
	       (value == 0xf0 && next >= 0x80 && next < 0x90);
}

/* May the escape at the start of s stand in a path? */
static bool escape_is_plain(int value, struct span s)
{
	return value >= 0x20 && value != 0x7f && value != '/' &&
	       value != '\\' && !is_overlong(value, s);
}

static void copy_escape(struct copy *c, int value)
{
	static const char hex[] = "0123456789ABCDEF";

	if (byte_is((char)value, BYTE_UNRESERVED)) {
		c->text[c->len++] = (char)value;
		return;
	}
	c->text[c->len++] = '%';
	c->text[c->len++] = hex[value >> 4];
	c->text[c->len++] = hex[value & 15];
}

/* Appends one segment, decoded. *ret_dot: a dot in it had been escaped. */
static bool copy_segment(struct copy *c, struct span s, bool *ret_dot)
{
	int value;

	*ret_dot = false;
	while (s.len) {
		if (s.ptr[0] == '%') {
			value = escape_value(s);
			if (value < 0 || !escape_is_plain(value, s))
				return false;
			*ret_dot |= value == '.';
			copy_escape(c, value);
			s = span_from(s, 3);
			continue;
		}
		if (s.ptr[0] <= 0x20 || s.ptr[0] > 0x7e || s.ptr[0] == '\\')
			return false;
		c->text[c->len++] = s.ptr[0];
		s = span_from(s, 1);
	}
	return true;
}

/* 1 for ".", 2 for "..", else 0. */
static size_t dots_of(struct span segment)
{
	if (span_eq(segment, SPAN(".")))
		return 1;
	return span_eq(segment, SPAN("..")) ? 2 : 0;
}

/* "..;x": a dot segment to servers that cut parameters first. */
static bool is_dots_with_parameter(struct span segment)
{
	size_t dots = 0;

	while (dots < 2 && dots < segment.len && segment.ptr[dots] == '.')
		dots++;
	segment = span_from(segment, dots);
	return dots && (span_starts(segment, SPAN(";")) ||
			span_starts(segment, SPAN("%3B")));
}

/* An escaped '%' and two digits: an escape to who decodes twice. Asked of the
 * copy, where nobody can hide the digits by escaping them too. */
static bool has_double_escape(struct span segment)
{
	size_t i;

	for (i = 0; i + 5 <= segment.len; i++)
		if (span_starts(span_from(segment, i), SPAN("%25")) &&
		    byte_is(segment.ptr[i + 3], BYTE_HEX) &&
		    byte_is(segment.ptr[i + 4], BYTE_HEX))
			return true;
	return false;
}

/* Takes the segment from `start`, which is "." or "..", off the copy; its '/'
 * stays when it was the last. False: nothing is there to take. */
static bool copy_climb(struct copy *c, size_t start, size_t dots, bool last)
{
	size_t at = start; /* behind the '/' that stays when last */

	if (dots == 2) {
		if (start == 1)
			return false; /* above the root */
		at = start - 1;
		while (c->text[at - 1] != '/')
			at--;
		if (at == start - 1)
			return false; /* "//..": servers disagree */
	}
	c->len = last ? at : at - 1;
	return true;
}

static bool copy_path(struct copy *c, struct span path)
{
	struct span segment;
	bool escaped_dot, last;
	size_t start, dots;

	do {
		path = span_from(path, 1); /* the '/' */
		segment = span_of(path.ptr, span_find(path, '/'));
		path = span_from(path, segment.len);
		last = !path.len;

		c->text[c->len++] = '/';
		start = c->len;
		if (!copy_segment(c, segment, &escaped_dot))
			return false;
		segment = span_of(c->text + start, c->len - start);
		dots = dots_of(segment);
		if ((dots && escaped_dot) || is_dots_with_parameter(segment) ||
		    has_double_escape(segment))
			return false;
		if (dots && !copy_climb(c, start, dots, last))
			return false;
	} while (!last);
	return true;
}

enum url_path_result url_canon_path(struct arena *arena, struct span target,
				    struct span *ret)
{
	struct copy copy = { 0 };
	struct span path;

	path = span_of(target.ptr, span_find(target, '?'));
	path.len = span_find(path, '#');
	if (!path.len || path.ptr[0] != '/')
		return URL_PATH_BAD;
	copy.text = arena_alloc(arena, path.len + 1);
	if (!copy.text)
		return URL_PATH_NO_MEMORY;
	if (!copy_path(&copy, path))
		return URL_PATH_AMBIGUOUS;
	copy.text[copy.len] = '\0';
	*ret = span_of(copy.text, copy.len);
	return URL_PATH_OK;
}

bool url_path_matches(struct span pattern, struct span path)
{
	if (pattern.len && pattern.ptr[pattern.len - 1] == '*')
		return span_starts(path, span_of(pattern.ptr, pattern.len - 1));
	return span_eq(pattern, path);
}
