/* SPDX-License-Identifier: Apache-2.0 */
/* json_out.c - writing JSON straight into a buffer
 *
 * How json_escape() works: a table says for each byte whether it may be copied
 * as it is. Runs of such bytes are copied at once; escapes, UTF-8 sequences
 * and broken bytes end a run. A sequence is accepted as RFC 3629 defines it
 * (shortest form, no surrogates, up to U+10FFFF); each byte that is part of
 * none becomes one U+FFFD. Characters that end a line for some readers, or act
 * on a terminal, are written as escapes.
 */

#include "src/text/json.h"

#include <errno.h>
#include <stdio.h>

#include "src/base/buf.h"
#include "src/base/err.h"

/* Copied as it is: printable ASCII but the quote and the backslash. DEL is
 * escaped too, so that terminals show nothing odd. */
static inline bool byte_is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

#define EACH_BYTE(value) (UINT64_MAX / 255 * (value))

/* Is there one below n, n at most 128? */
static inline bool word_has_below(uint64_t word, uint64_t n)
{
	return (word - EACH_BYTE(n)) & ~word & EACH_BYTE(0x80);
}

static inline bool word_has(uint64_t word, uint64_t byte)
{
	return word_has_below(word ^ EACH_BYTE(byte), 1);
}

static inline bool word_is_plain(uint64_t word)
{
	return !(word & EACH_BYTE(0x80)) && !word_has_below(word, 0x20) &&
	       !word_has(word, 0x7f) && !word_has(word, '"') &&
	       !word_has(word, '\\');
}

/* Eight at a time; the last eight, some of which were seen already, at once;
 * what is shorter, or where the end was found, one by one. */
size_t json_plain_len(struct span bytes)
{
	uint64_t word;
	size_t i = 0;

	for (; i + sizeof(word) <= bytes.len; i += sizeof(word)) {
		memcpy(&word, bytes.ptr + i, sizeof(word));
		if (!word_is_plain(word))
			break;
	}
	if (i && bytes.len - i < sizeof(word)) {
		memcpy(&word, bytes.ptr + bytes.len - sizeof(word),
		       sizeof(word));
		if (word_is_plain(word))
			return bytes.len;
	}
	while (i < bytes.len && byte_is_plain((unsigned char)bytes.ptr[i]))
		i++;
	return i;
}

/* Length of the UTF-8 sequence at the start of s (first byte >= 0x80), or 0. */
static size_t utf8_len(struct span s)
{
	const unsigned char *p = (const unsigned char *)s.ptr;
	unsigned char low = 0x80, high = 0xbf;
	size_t len, i;

	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		len = 2;
	else if ((p[0] & 0xf0) == 0xe0)
		len = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		len = 4;
	else
		return 0;
	if (s.len < len)
		return 0;

	/* overlong forms, surrogates, and beyond U+10FFFF */
	low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : low;
	high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : high;
	if (p[1] < low || p[1] > high)
		return 0;
	for (i = 2; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

bool json_is_utf8(struct span s)
{
	size_t len;

	while (s.len) {
		len = (unsigned char)s.ptr[0] < 0x80 ? 1 : utf8_len(s);
		if (!len)
			return false;
		s = span_from(s, len);
	}
	return true;
}

/* A sequence that is not shown but does something: C1 controls, U+2028 to
 * U+202E (line separators, embeddings), U+2066 to U+2069 (isolates). Its
 * escape into dst (8 bytes); false: it is shown. */
static bool escape_format(struct span sequence, char dst[8])
{
	const unsigned char *p = (const unsigned char *)sequence.ptr;
	unsigned code = 0;

	if (sequence.len == 2)
		code = (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
	else if (sequence.len == 3)
		code = (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 |
		       (p[2] & 0x3fu);
	if ((code < 0x80 || code > 0x9f) && (code < 0x2028 || code > 0x202e) &&
	    (code < 0x2066 || code > 0x2069))
		return false;
	(void)snprintf(dst, 8, "\\u%04x", code & 0xffffu);
	return true;
}

/* The escape of an ASCII byte into dst (8 bytes); its length. */
static size_t escape_ascii(unsigned char c, char *dst)
{
	static const char hex[] = "0123456789abcdef";
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *at = c ? strchr(from, c) : NULL;

	dst[0] = '\\';
	if (at) {
		dst[1] = to[at - from];
		return 2;
	}
	memcpy(dst + 1, "u00", 3);
	dst[4] = hex[c >> 4];
	dst[5] = hex[c & 15];
	return 6;
}

/* One step past the plain run: consumes from *s, puts its replacement. */
static int escape_step(struct buf *buf, struct span *s)
{
	unsigned char c = (unsigned char)s->ptr[0];
	struct span put;
	char escaped[8];
	size_t used = 1;

	if (c < 0x80) {
		put = span_of(escaped, escape_ascii(c, escaped));
	} else if ((used = utf8_len(*s))) {
		put = span_of(s->ptr, used);
		if (escape_format(put, escaped))
			put = span_of(escaped, 6);
	} else {
		used = 1;
		put = SPAN("\xef\xbf\xbd");
	}
	*s = span_from(*s, used);
	return buf_put(buf, put);
}

static int escape_all(struct buf *buf, struct span s)
{
	size_t run;
	int r;

	while (s.len) {
		run = json_plain_len(s);
		r = buf_put(buf, span_of(s.ptr, run));
		s = span_from(s, run);
		if (!r && s.len)
			r = escape_step(buf, &s);
		if (r)
			return r;
	}
	return 0;
}

int json_escape(struct buf *buf, struct span bytes)
{
	int r;

	r = buf_put(buf, SPAN("\""));
	if (!r)
		r = escape_all(buf, bytes);
	if (!r)
		r = buf_put(buf, SPAN("\""));
	return r;
}

/* -- struct json_out ---------------------------------------------------- */

void json_start(struct json_out *o, struct buf *buf)
{
	*o = (struct json_out){ .buf = buf };
}

static void out_put(struct json_out *o, struct span bytes)
{
	if (!o->error)
		o->error = buf_put(o->buf, bytes);
}

static void out_string(struct json_out *o, struct span bytes)
{
	if (!o->error)
		o->error = json_escape(o->buf, bytes);
}

/* What stands before a value: a comma, a name. */
static void out_lead(struct json_out *o, const char *name)
{
	if (name) {
		json_put_name(o, span_str(name));
	} else if (o->more) {
		out_put(o, SPAN(","));
	}
	o->more = true;
}

void json_put_name(struct json_out *o, struct span name)
{
	must(o->depth && (o->objects >> (o->depth - 1) & 1));

	if (o->more)
		out_put(o, SPAN(","));
	out_string(o, name);
	out_put(o, SPAN(":"));
	o->more = false;
}

static void out_open(struct json_out *o, const char *name, bool object)
{
	must(o->depth < 64);

	out_lead(o, name);
	out_put(o, object ? SPAN("{") : SPAN("["));
	o->objects &= ~(UINT64_C(1) << o->depth);
	o->objects |= (uint64_t)object << o->depth;
	o->depth++;
	o->more = false;
}

void json_open_object(struct json_out *o, const char *name)
{
	out_open(o, name, true);
}

void json_open_array(struct json_out *o, const char *name)
{
	out_open(o, name, false);
}

void json_close(struct json_out *o)
{
	must(o->depth > 0);

	o->depth--;
	out_put(o, o->objects >> o->depth & 1 ? SPAN("}") : SPAN("]"));
	o->more = true;
}

void json_put_text(struct json_out *o, const char *name, struct span text)
{
	out_lead(o, name);
	out_string(o, text);
}

void json_put_str(struct json_out *o, const char *name, const char *text)
{
	json_put_text(o, name, span_str(text));
}

void json_put_raw(struct json_out *o, const char *name, struct span text)
{
	out_lead(o, name);
	out_put(o, text);
}

void json_put_u64(struct json_out *o, const char *name, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	json_put_raw(o, name, span_str(text));
}

void json_put_i64(struct json_out *o, const char *name, int64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%lld", (long long)value);
	json_put_raw(o, name, span_str(text));
}

void json_put_bool(struct json_out *o, const char *name, bool value)
{
	json_put_raw(o, name, value ? SPAN("true") : SPAN("false"));
}

void json_put_null(struct json_out *o, const char *name)
{
	json_put_raw(o, name, SPAN("null"));
}

int json_done(struct json_out *o)
{
	must(!o->depth);
	return o->error;
}
