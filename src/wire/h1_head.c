/* SPDX-License-Identifier: Apache-2.0 */
/* h1_head.c - field lines, and what they say about the message
 *
 * How it works: each line is read once: a run of token bytes up to the colon,
 * then the value up to the next control byte, which must be the CR of CR LF.
 * Fields that decide where the message ends, who is meant or what survives the
 * hop go through fact_note() at once, where a second one is refused whatever
 * it says. In those fields a HTAB is refused too: RFC 9110 counts it as white
 * space, but "chunked\t" has been read as an unknown coding by one peer and as
 * chunked by the next (field case 30).
 */

#include "src/wire/h1_head.h"

#include "src/wire/bytes.h"

enum { NAME_MAX_BYTES = 256, LENGTH_DIGITS_MAX = 19 };

enum h1_error h1_take_line(struct span *rest, struct span *ret_line)
{
	const char *p, *end;

	if (!rest->len)
		return H1_E_INCOMPLETE;
	end = rest->ptr + rest->len;
	p = control_find(rest->ptr, end);
	if (UNLIKELY(end - p < 2 || p[0] != '\r' || p[1] != '\n'))
		return h1_control_error(p, end);
	*ret_line = span_of(rest->ptr, (size_t)(p - rest->ptr));
	*rest = span_from(*rest, ret_line->len + 2);
	return H1_OK;
}

enum h1_error h1_parse_version(struct span text, uint8_t *ret_minor)
{
	if (text.len != 8 || !span_starts(text, SPAN("HTTP/")) ||
	    text.ptr[6] != '.')
		return H1_E_START_LINE;
	if (text.ptr[5] != '1' || (text.ptr[7] != '0' && text.ptr[7] != '1'))
		return H1_E_VERSION;
	*ret_minor = (uint8_t)(text.ptr[7] - '0');
	return H1_OK;
}

static enum h1_error note_host(const struct header *h, struct h1_facts *f)
{
	if (f->host)
		return H1_E_HOST_REPEATED;
	if (!bytes_are(h->value, BYTE_AUTHORITY))
		return H1_E_HOST;
	f->host = h;
	return H1_OK;
}

static enum h1_error note_length(const struct header *h, struct h1_facts *f)
{
	if (f->has_length)
		return H1_E_LENGTH_REPEATED;
	/* a length that a signed 64-bit peer reads as negative is refused */
	if (h->value.len > LENGTH_DIGITS_MAX ||
	    !span_parse_u64(h->value, &f->length) || f->length > INT64_MAX)
		return H1_E_LENGTH;
	f->has_length = true;
	return H1_OK;
}

static enum h1_error note_coding(const struct header *h, struct h1_facts *f)
{
	if (f->has_coding || !span_eq_nocase(h->value, SPAN("chunked")))
		return H1_E_CODING;
	f->has_coding = true;
	return H1_OK;
}

/* Connection options that name no field. */
static bool note_option(struct span option, struct h1_facts *f)
{
	if (span_eq_nocase(option, SPAN("keep-alive")))
		f->keep_alive = true;
	else if (span_eq_nocase(option, SPAN("close")))
		f->close = true;
	else if (span_eq_nocase(option, SPAN("upgrade")))
		f->upgrade = true;
	else
		return false;
	return true;
}

/* Connection names what dies at this hop. A sandbox that could name the field
 * of a credential, or the one that frames the body, could make a later hop
 * drop it (field case 34). */
static enum h1_error note_connection(const struct header *h, struct h1_facts *f)
{
	struct span rest = h->value, option;
	enum header_id id;

	while ((option = header_next_member(&rest)).ptr) {
		if (note_option(option, f))
			continue;
		if (!bytes_are(option, BYTE_TOKEN))
			return H1_E_CONNECTION;
		id = header_id_of(option);
		if (id == HEADER_HOST ||
		    header_flags_of(id) & (HEADER_CREDENTIAL | HEADER_FRAMING))
			return H1_E_CONNECTION;
	}
	return H1_OK;
}

static enum h1_error note_expect(const struct header *h, struct h1_facts *f)
{
	if (!span_eq_nocase(h->value, SPAN("100-continue")))
		return H1_E_EXPECT;
	f->expect_continue = true;
	return H1_OK;
}

/* The error of a field whose meaning would hang on how HTAB is read. */
static enum h1_error tab_error(enum header_id id)
{
	if (id == HEADER_HOST)
		return H1_E_HOST;
	return id == HEADER_CONTENT_LENGTH ? H1_E_LENGTH : H1_E_CODING;
}

/* raw is the value before trimming. */
static enum h1_error fact_note(const struct header *h, struct span raw,
			       struct h1_facts *f)
{
	switch (h->id) {
	case HEADER_HOST:
	case HEADER_CONTENT_LENGTH:
	case HEADER_TRANSFER_ENCODING:
		if (span_find(raw, '\t') != raw.len)
			return tab_error(h->id);
		if (h->id == HEADER_HOST)
			return note_host(h, f);
		return h->id == HEADER_CONTENT_LENGTH ? note_length(h, f)
						      : note_coding(h, f);
	case HEADER_CONNECTION:
		return note_connection(h, f);
	case HEADER_EXPECT:
		return note_expect(h, f);
	case HEADER_UPGRADE:
		f->has_upgrade = true;
		return H1_OK;
	default:
		return H1_OK;
	}
}

/* Why the byte at p may not follow a field name of `len` bytes. */
static enum h1_error name_error(const char *p, const char *end, size_t len)
{
	if (p == end)
		return H1_E_INCOMPLETE;
	if (*p == ' ' || *p == '\t')
		return len ? H1_E_SPACE_COLON : H1_E_FOLD;
	if (!byte_is(*p, BYTE_CONTROL))
		return H1_E_NAME;
	/* a whole line without a colon, or a control byte in a name */
	return h1_control_error(p, end) ?: H1_E_NAME;
}

/* One field line off *rest; *ret_raw is the value before trimming. */
static enum h1_error take_field(struct span *rest, struct header *ret,
				struct span *ret_raw)
{
	const char *p = rest->ptr, *end = p + rest->len;
	enum h1_error error;

	while (p < end && byte_is(*p, BYTE_TOKEN))
		p++;
	ret->name = span_of(rest->ptr, (size_t)(p - rest->ptr));
	if (p == end || *p != ':')
		return name_error(p, end, ret->name.len);
	if (!ret->name.len || ret->name.len > NAME_MAX_BYTES)
		return H1_E_NAME;

	*rest = span_from(*rest, ret->name.len + 1);
	error = h1_take_line(rest, ret_raw);
	if (error)
		return error;
	ret->value = span_trim(*ret_raw);
	ret->id = header_id_of(ret->name);
	ret->sensitive = false;
	return H1_OK;
}

static enum h1_error facts_check(const struct h1_facts *f, uint8_t minor)
{
	if (f->has_coding && f->has_length)
		return H1_E_LENGTH_AND_CODING;
	if (f->has_coding && minor == 0)
		return H1_E_CODING_VERSION;
	return H1_OK;
}

enum h1_error h1_parse_fields(struct span rest, uint8_t minor,
			      struct headers *ret, struct h1_facts *ret_facts)
{
	struct span raw = SPAN_NONE;
	struct header *field;
	enum h1_error error;

	*ret_facts = (struct h1_facts){ 0 };
	ret->count = 0;
	while (!rest.len || rest.ptr[0] != '\r') {
		if (ret->count == HEADERS_MAX)
			return H1_E_TOO_MANY_FIELDS;
		field = &ret->items[ret->count];
		error = take_field(&rest, field, &raw);
		if (!error && field->id)
			error = fact_note(field, raw, ret_facts);
		if (error)
			return error;
		ret->count++;
	}
	error = h1_take_line(&rest, &raw);
	if (error)
		return error;
	/* the caller gave more than one head */
	if (rest.len)
		return H1_E_START_LINE;
	return facts_check(ret_facts, minor);
}

bool h1_keeps_alive(const struct h1_facts *facts, uint8_t minor)
{
	return !facts->close && (minor == 1 || facts->keep_alive);
}
