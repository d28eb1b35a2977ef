/* SPDX-License-Identifier: Apache-2.0 */
/* multipart.c - the parts of a form, told apart while they stream
 *
 * How it works: what ends a part is CRLF "--" boundary, the delimiter. No byte
 * of a boundary is a CR, so the only CR of a delimiter is its first byte: a
 * match that fails can not hide the beginning of another one, and what was
 * matched before the input ran out is known by its length alone. It needs no
 * memory, and is told from the delimiter itself when the match fails later.
 *
 *   SCAN --delimiter--> TAIL --padding CRLF--> HEAD --blank line--> SCAN
 *                       TAIL --"--"----------> CLOSED --told--> DONE
 *                       TAIL --anything else-> TEXT --told--> SCAN
 *
 * The last row is a line that only begins like the delimiter: it is data. In
 * front of the first delimiter (which may stand at the very beginning, without
 * its CRLF) bytes are the preamble and are told to nobody.
 */

#include "src/wire/multipart.h"

#include "src/base/chars.h"
#include "src/wire/bytes.h"
#include "src/wire/header.h"

enum state {
	SCAN, /* zero: looking for a delimiter */
	TAIL, /* behind one; .held is what was read since */
	TEXT, /* the delimiter was data: it is told, .held is to be told */
	HEAD,
	CLOSED,
	DONE,
};

enum { PADDING_MAX = 256, CRLF_LEN = 2 };

/* -- parameters of a field value: ; name=token or name="quoted" ----------- */

/* The closing quote of the string whose first byte is behind the opening one,
 * or s.len. */
static size_t quote_end(struct span s)
{
	size_t i;

	for (i = 0; i < s.len && s.ptr[i] != '"'; i++)
		if (s.ptr[i] == '\\')
			i++;
	return MIN(i, s.len);
}

/* Takes the next parameter off *rest, which begins behind the value before.
 * 1; 0 at the end; -1 malformed. A quoted value comes without its quotes. */
static int param_next(struct span *rest, struct span *name, struct span *value)
{
	size_t end;

	do {
		*rest = span_trim(*rest);
		if (!rest->len)
			return 0;
		if (rest->ptr[0] != ';')
			return -1;
		*rest = span_trim(span_from(*rest, 1));
	} while (!rest->len || rest->ptr[0] == ';');

	end = span_find(*rest, '=');
	*name = span_of(rest->ptr, end);
	if (!end || end == rest->len || !bytes_are(*name, BYTE_TOKEN))
		return -1;
	*rest = span_from(*rest, end + 1);
	if (rest->len && rest->ptr[0] == '"') {
		*rest = span_from(*rest, 1);
		end = quote_end(*rest);
		if (end == rest->len)
			return -1;
		*value = span_of(rest->ptr, end);
		*rest = span_from(*rest, end + 1);
		return 1;
	}
	end = span_find(*rest, ';');
	*value = span_trim(span_of(rest->ptr, end));
	*rest = span_from(*rest, end);
	return 1;
}

/* RFC 2046 5.1.1. */
static bool boundary_is_valid(struct span b)
{
	size_t i;

	if (!b.len || b.len > MULTIPART_BOUNDARY_MAX || b.ptr[b.len - 1] == ' ')
		return false;
	for (i = 0; i < b.len; i++)
		if (!char_is_alnum(b.ptr[i]) &&
		    !memchr("'()+_,-./:=? ", b.ptr[i], 13))
			return false;
	return true;
}

enum multipart_error multipart_init(struct multipart *m,
				    struct span content_type)
{
	struct span rest = span_trim(content_type), name, value;
	size_t type_len = span_find(rest, ';');
	struct span type = span_trim(span_of(rest.ptr, type_len));
	struct span boundary = SPAN_NONE;
	int r;

	*m = (struct multipart){ 0 };
	buf_init(&m->held, MULTIPART_HEAD_MAX);
	m->matched = m->unsaid = CRLF_LEN;
	rest = span_from(rest, type_len);
	if (!span_eq_nocase(type, SPAN("multipart/form-data")))
		return m->error = MULTIPART_E_BOUNDARY;
	while ((r = param_next(&rest, &name, &value)) > 0)
		if (span_eq_nocase(name, SPAN("boundary")) && !boundary.ptr)
			boundary = value;
	if (r || !boundary_is_valid(boundary))
		return m->error = MULTIPART_E_BOUNDARY;

	memcpy(m->delimiter, "\r\n--", 4);
	memcpy(m->delimiter + 4, boundary.ptr, boundary.len);
	m->delimiter_len = 4 + boundary.len;
	return MULTIPART_OK;
}

void multipart_fini(struct multipart *m)
{
	buf_fini(&m->held);
}

/* -- the head of a part --------------------------------------------------- */

/* In place: the text is the parser's own copy. */
static struct span text_unquote(struct span s)
{
	char *text = (char *)(uintptr_t)s.ptr;
	size_t i, len = 0;

	for (i = 0; i < s.len; i++) {
		if (text[i] == '\\' && i + 1 < s.len &&
		    (text[i + 1] == '"' || text[i + 1] == '\\'))
			i++;
		text[len++] = text[i];
	}
	return span_of(text, len);
}

/* charset'language'percent-encoded (RFC 8187), in place. SPAN_NONE: it is not
 * of that form. */
static struct span text_extended(struct span s)
{
	char *text = (char *)(uintptr_t)s.ptr;
	size_t i, len = 0;

	(void)span_cut(&s, '\'');
	(void)span_cut(&s, '\'');
	if (!s.len)
		return SPAN_NONE;
	for (i = 0; i < s.len; i++) {
		if (s.ptr[i] == '%' && i + 2 < s.len &&
		    byte_is(s.ptr[i + 1], BYTE_HEX) &&
		    byte_is(s.ptr[i + 2], BYTE_HEX)) {
			text[len++] = (char)(byte_hex(s.ptr[i + 1]) << 4 |
					     byte_hex(s.ptr[i + 2]));
			i += 2;
			continue;
		}
		text[len++] = s.ptr[i];
	}
	return span_of(text, len);
}

static bool disposition_parse(struct span value, struct multipart_event *ev)
{
	size_t end = span_find(value, ';');
	struct span name, extended = SPAN_NONE;
	struct span text;
	int r;

	if (!span_eq_nocase(span_trim(span_of(value.ptr, end)),
			    SPAN("form-data")))
		return false;
	value = span_from(value, end);
	while ((r = param_next(&value, &name, &text)) > 0) {
		if (span_eq_nocase(name, SPAN("name")) && !ev->name.ptr)
			ev->name = text_unquote(text);
		else if (span_eq_nocase(name, SPAN("filename")) &&
			 !ev->filename.ptr)
			ev->filename = text_unquote(text);
		else if (span_eq_nocase(name, SPAN("filename*")) &&
			 !extended.ptr)
			extended = text_extended(text);
	}
	if (extended.ptr)
		ev->filename = extended;
	return !r;
}

/* Only codings that leave the bytes as they are (RFC 7578 4.7). */
static bool coding_is_plain(struct span value)
{
	return span_eq_nocase(value, SPAN("binary")) ||
	       span_eq_nocase(value, SPAN("8bit")) ||
	       span_eq_nocase(value, SPAN("7bit"));
}

static bool field_parse(struct span line, struct multipart_event *ev)
{
	size_t colon = span_find(line, ':');
	struct span name = span_of(line.ptr, colon);
	struct span value = span_trim(span_from(line, colon + 1));

	if (colon == line.len || !header_name_is_valid(name) ||
	    !header_value_is_valid(value))
		return false;
	if (span_eq_nocase(name, SPAN("Content-Disposition")))
		return !ev->name.ptr && disposition_parse(value, ev);
	if (span_eq_nocase(name, SPAN("Content-Transfer-Encoding")))
		return coding_is_plain(value);
	if (span_eq_nocase(name, SPAN("Content-Type")))
		ev->type = value;
	return true;
}

/* head: all lines with their ends, the blank one too. A part without a name is
 * no part of a form. */
static bool head_parse(struct span head, struct multipart_event *ev)
{
	struct span line;

	*ev = (struct multipart_event){ .kind = MULTIPART_PART };
	while (head.len > CRLF_LEN) {
		line = span_cut(&head, '\n');
		if (!span_ends(line, SPAN("\r")))
			return false;
		line.len--;
		if (!field_parse(line, ev))
			return false;
	}
	return ev->name.ptr;
}

/* Where the head in .held ends, or 0. from: so much was looked at before. */
static size_t head_end(const struct multipart *m, size_t from)
{
	struct span held = buf_peek(&m->held);
	const char *at;

	if (span_starts(held, SPAN("\r\n")))
		return CRLF_LEN;
	from = from > 3 ? from - 3 : 0;
	at = memmem(held.ptr + from, held.len - from, "\r\n\r\n", 4);
	return at ? (size_t)(at - held.ptr) + 4 : 0;
}

static int head_take(struct multipart *m, struct span *in,
		     struct multipart_event *ev)
{
	size_t before = buf_len(&m->held);
	size_t len = MIN(in->len, MULTIPART_HEAD_MAX - before), end;

	if (buf_put(&m->held, span_of(in->ptr, len)))
		return -MULTIPART_E_HEAD;
	end = head_end(m, before);
	if (!end) {
		*in = span_from(*in, len);
		return buf_len(&m->held) == MULTIPART_HEAD_MAX
			       ? -MULTIPART_E_HEAD
			       : 0;
	}
	*in = span_from(*in, end - before);
	m->state = SCAN;
	m->in_part = true;
	/* a delimiter may follow the blank line at once, sharing its CRLF */
	m->matched = m->unsaid = CRLF_LEN;
	return head_parse(span_of(buf_peek(&m->held).ptr, end), ev)
		       ? 1
		       : -MULTIPART_E_HEAD;
}

/* -- bodies --------------------------------------------------------------- */

static int told(struct multipart_event *ev, struct span bytes)
{
	*ev = (struct multipart_event){ .kind = MULTIPART_BYTES,
					.bytes = bytes };
	return 1;
}

/* The match that began before failed: what was matched is data. */
static int match_fail(struct multipart *m, struct multipart_event *ev)
{
	struct span bytes =
		span_from(span_of(m->delimiter, m->matched), m->unsaid);

	m->matched = m->unsaid = 0;
	return m->in_part && bytes.len ? told(ev, bytes) : 0;
}

/* Goes on with a match. 1: an event; 0: look at the state and the input. */
static int match_go_on(struct multipart *m, struct span *in,
		       struct multipart_event *ev)
{
	size_t len = MIN(in->len, m->delimiter_len - m->matched);

	if (memcmp(in->ptr, m->delimiter + m->matched, len) != 0)
		return match_fail(m, ev);
	*in = span_from(*in, len);
	m->matched += len;
	if (m->matched == m->delimiter_len) {
		m->state = TAIL;
		buf_clear(&m->held);
	}
	return 0;
}

/* How many bytes at the end of s are the beginning of a delimiter. */
static size_t match_begun(const struct multipart *m, struct span s)
{
	size_t keep = MIN(s.len, m->delimiter_len - 1);
	const char *at = memrchr(s.ptr + s.len - keep, '\r', keep);
	size_t len;

	if (!at)
		return 0;
	len = (size_t)(s.ptr + s.len - at);
	return memcmp(at, m->delimiter, len) ? 0 : len;
}

/* Nothing is matched yet: everything up to a delimiter, or what may be one. */
static int scan(struct multipart *m, struct span *in,
		struct multipart_event *ev)
{
	const char *at =
		memmem(in->ptr, in->len, m->delimiter, m->delimiter_len);
	struct span data = *in;

	if (at) {
		data.len = (size_t)(at - in->ptr);
		*in = span_from(*in, data.len + m->delimiter_len);
		m->matched = m->delimiter_len;
		m->state = TAIL;
		buf_clear(&m->held);
	} else {
		m->matched = match_begun(m, data);
		data.len -= m->matched;
		*in = span_from(*in, in->len);
	}
	return data.len && m->in_part ? told(ev, data) : 0;
}

static int scan_step(struct multipart *m, struct span *in,
		     struct multipart_event *ev)
{
	return m->matched ? match_go_on(m, in, ev) : scan(m, in, ev);
}

/* -- behind a delimiter --------------------------------------------------- */

/* May c follow what is held? */
static bool tail_fits(struct span held, char c)
{
	char last = held.len ? held.ptr[held.len - 1] : ' ';

	if (last == '-')
		return c == '-';
	if (last == '\r')
		return c == '\n';
	return c == '\r' || c == ' ' || c == '\t' || (c == '-' && !held.len);
}

/* It was one: ends the part before. */
static int tail_done(struct multipart *m, enum state next,
		     struct multipart_event *ev)
{
	bool was_part = m->in_part;

	m->state = next;
	m->in_part = false;
	m->matched = m->unsaid = 0;
	buf_clear(&m->held);
	*ev = (struct multipart_event){ .kind = MULTIPART_PART_END };
	return was_part;
}

static int tail_step(struct multipart *m, struct span *in,
		     struct multipart_event *ev)
{
	struct span held = buf_peek(&m->held);
	char c = in->ptr[0];

	if (!tail_fits(held, c) || held.len == PADDING_MAX) {
		m->state = TEXT;
		return match_fail(m, ev);
	}
	*in = span_from(*in, 1);
	if (buf_put(&m->held, span_of(&c, 1)))
		return -MULTIPART_E_HEAD;
	if (c == '\n')
		return tail_done(m, HEAD, ev);
	return c == '-' && held.len ? tail_done(m, CLOSED, ev) : 0;
}

static int text_step(struct multipart *m, struct multipart_event *ev)
{
	m->state = SCAN;
	return m->in_part && buf_len(&m->held) ? told(ev, buf_peek(&m->held))
					       : 0;
}

/* -- the machine ---------------------------------------------------------- */

static int step(struct multipart *m, struct span *in,
		struct multipart_event *ev)
{
	switch ((enum state)m->state) {
	case SCAN:
		return scan_step(m, in, ev);
	case TAIL:
		return tail_step(m, in, ev);
	case TEXT:
		return text_step(m, ev);
	case HEAD:
		return head_take(m, in, ev);
	case CLOSED:
		m->state = DONE;
		*ev = (struct multipart_event){ .kind = MULTIPART_END };
		return 1;
	case DONE:
		break;
	}
	*in = span_from(*in, in->len);
	return 0;
}

int multipart_next(struct multipart *m, struct span *in,
		   struct multipart_event *ev)
{
	int r = -(int)m->error;

	/* a form that closed says so without further bytes */
	while (!r && (in->len || m->state == CLOSED))
		r = step(m, in, ev);
	if (r < 0)
		m->error = (enum multipart_error) - r;
	return r;
}

enum multipart_error multipart_end(const struct multipart *m)
{
	if (m->error)
		return m->error;
	return m->state == DONE || m->state == CLOSED ? MULTIPART_OK
						      : MULTIPART_E_CUT;
}

const char *multipart_error_text(enum multipart_error e)
{
	static const char *const texts[] = {
		[MULTIPART_OK] = "no error",
		[MULTIPART_E_BOUNDARY] =
			"found a Content-Type that is not multipart/form-data "
			"with a boundary of 1 to 70 characters",
		[MULTIPART_E_HEAD] =
			"found a part whose head is malformed, longer than "
			"8192 bytes, without a name, or with a transfer "
			"encoding",
		[MULTIPART_E_CUT] =
			"the body ended before the closing boundary",
	};
	_Static_assert(ARRAY_LEN(texts) == MULTIPART_E_NUM, "one for each");

	return e < MULTIPART_E_NUM ? texts[e] : "unknown error";
}
