/* SPDX-License-Identifier: Apache-2.0 */
/* h1_scan.c - find the end of a head as its bytes arrive
 *
 * How it works: only control bytes matter here, and control_find() skips all
 * others sixteen at a time, so each byte is looked at once however the head is
 * cut. A line ends in CR LF; any other control byte refuses the message at
 * once. Never a byte beyond the limit is read: what is refused, and why, is
 * the same for every splitting.
 *
 * Before that, h1_sniff() tells whether a connection speaks HTTP at all, from
 * its first line.
 */

#include "src/wire/h1.h"

#include <limits.h>

#include "src/wire/bytes.h"
#include "src/wire/h1_head.h"

static const char *const error_texts[H1_ERROR_NUM] = {
	[H1_OK] = "no error",
#define H1_ERROR(id, text) [H1_E_##id] = (text),
#include "src/wire/h1_error.def"
#undef H1_ERROR
};

const char *h1_error_text(enum h1_error error)
{
	return error < H1_ERROR_NUM ? error_texts[error] : "unknown error";
}

enum h1_error h1_control_error(const char *p, const char *end)
{
	if (p == end)
		return H1_E_INCOMPLETE;
	switch (*p) {
	case '\r':
		if (p + 1 == end)
			return H1_E_INCOMPLETE;
		return p[1] == '\n' ? H1_OK : H1_E_BARE_CR;
	case '\n':
		return H1_E_BARE_LF;
	case '\0':
		return H1_E_NUL;
	default:
		return H1_E_CONTROL;
	}
}

enum { SNIFF_MAX = 16 * 1024 }; /* a longer line is for h1_scan() to refuse */

/* Does the line end in a version, as a request's does? */
static bool line_has_version(struct span line)
{
	size_t at;

	if (span_ends(line, SPAN("\r")))
		line.len--;
	line = span_trim(line);
	for (at = line.len; at && line.ptr[at - 1] != ' '; at--)
		;
	return at && span_starts(span_from(line, at), SPAN("HTTP/"));
}

int h1_sniff(struct span bytes)
{
	size_t at = 0, end;
	struct span line;

	while (at < bytes.len &&
	       (bytes.ptr[at] == '\r' || bytes.ptr[at] == '\n'))
		at++;
	line = span_from(bytes, at);
	if (line.len && !header_name_is_valid(span_of(line.ptr, 1)))
		return -1;
	end = span_find(line, '\n');
	if (end < line.len)
		return line_has_version(span_of(line.ptr, end)) ? 1 : -1;
	for (at = 0; at < line.len; at++)
		if ((unsigned char)line.ptr[at] < ' ' && line.ptr[at] != '\r')
			return -1;
	return line.len > SNIFF_MAX;
}

enum { LINES_MAX = 1 + 1 + HEADERS_MAX }; /* an empty line, the start line */

int h1_scan(struct h1_scan *scan, struct span bytes, size_t limit_bytes)
{
	size_t limit = MIN(limit_bytes, (size_t)INT_MAX), at;
	size_t len = MIN(bytes.len, limit);
	const char *end = bytes.ptr + len;
	const char *p = bytes.ptr + MIN(scan->seen, len);
	enum h1_error error;

	for (;;) {
		p = control_find(p, end);
		error = h1_control_error(p, end);
		if (error == H1_E_INCOMPLETE)
			break;
		if (error)
			return -(int)error;
		at = (size_t)(p - bytes.ptr);
		p += 2;
		/* an empty line: before the start line, or the end */
		if (at == 2 && p[-3] == '\n')
			return -H1_E_START_LINE;
		if (at > 2 && p[-3] == '\n')
			return (int)(at + 2);
		if (++scan->lines > LINES_MAX)
			return -H1_E_TOO_MANY_FIELDS;
	}
	scan->seen = (size_t)(p - bytes.ptr);
	return bytes.len >= limit ? -H1_E_TOO_LARGE : 0;
}
