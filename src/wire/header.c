/* SPDX-License-Identifier: Apache-2.0 */
/* header.c - known header names, and walking fields and their members
 *
 * How it works: rows of header.def stand in order of length, so `last_row` can
 * hold, per length, the last row of that length (a later designator replaces
 * an earlier one). A lookup compares the name with the few rows of its length,
 * eight bytes at a time when it has as many; most rows fall at the first
 * letter.
 */

#include "src/wire/header.h"

#include <assert.h>

#include "src/base/attrib.h"
#include "src/wire/bytes.h"

enum { NAME_MAX_BYTES = 256 };

struct row {
	char name[HEADER_KNOWN_MAX]; /* padded with NUL */
	uint8_t len, flags;
};

static const struct row rows[HEADER_ID_NUM] = {
#define HEADER_ENUM(id, name, flags) \
	[HEADER_##id] = { name, sizeof(name) - 1, flags },
#include "src/wire/header.def"
#undef HEADER_ENUM
};

#define HEADER_ENUM(id, name, flags)                        \
	static_assert(sizeof(name) - 1 <= HEADER_KNOWN_MAX, \
		      "header name too long");
#include "src/wire/header.def"
#undef HEADER_ENUM
static_assert(HEADER_ID_NUM <= UINT8_MAX, "last_row holds one byte");

#pragma GCC diagnostic push
#ifdef __clang__
#pragma GCC diagnostic ignored "-Winitializer-overrides"
#else
#pragma GCC diagnostic ignored "-Woverride-init"
#endif
static const uint8_t last_row[HEADER_KNOWN_MAX + 1] = {
#define HEADER_ENUM(id, name, flags) [sizeof(name) - 1] = HEADER_##id,
#include "src/wire/header.def"
#undef HEADER_ENUM
};
#pragma GCC diagnostic pop

static uint64_t word_load(const char *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}

static uint64_t half_load(const char *p)
{
	uint32_t half;

	memcpy(&half, p, sizeof(half));
	return half;
}

/* Rows hold letters, digits and hyphens. Of these only letters have bit 6, and
 * only where the row has a letter may the name differ, in bit 5. */
static bool word_is(uint64_t row, uint64_t name)
{
	const uint64_t letters = UINT64_MAX / 255 * 0x40;

	return !((row ^ name) & ~((row & letters) >> 1));
}

/* Both of this length, at least one word; the last words may overlap. */
static bool long_is(const char *row, const char *name, size_t len)
{
	size_t i;

	for (i = 0; i + 8 < len; i += 8)
		if (!word_is(word_load(row + i), word_load(name + i)))
			return false;
	return word_is(word_load(row + len - 8), word_load(name + len - 8));
}

/* name is as long as the row's. */
static bool row_is(const struct row *row, struct span name)
{
	const char *end = name.ptr + name.len;

	/* every known name begins with a letter */
	if ((row->name[0] ^ name.ptr[0]) & ~0x20)
		return false;
	if (name.len >= 8)
		return long_is(row->name, name.ptr, name.len);
	if (name.len >= 4)
		return word_is(half_load(row->name), half_load(name.ptr)) &&
		       word_is(half_load(row->name + name.len - 4),
			       half_load(end - 4));
	return span_eq_nocase(span_of(row->name, name.len), name);
}

enum header_id header_id_of(struct span name)
{
	unsigned id;

	if (name.len > HEADER_KNOWN_MAX || !last_row[name.len])
		return HEADER_OTHER;
	for (id = last_row[name.len]; rows[id].len == name.len; id--)
		if (row_is(&rows[id], name))
			return (enum header_id)id;
	return HEADER_OTHER;
}

struct span header_name(enum header_id id)
{
	if (id >= HEADER_ID_NUM)
		return SPAN_NONE;
	return span_of(rows[id].name, rows[id].len);
}

unsigned header_flags_of(enum header_id id)
{
	return id < HEADER_ID_NUM ? rows[id].flags : 0;
}

bool header_name_is_valid(struct span name)
{
	return name.len >= 1 && name.len <= NAME_MAX_BYTES &&
	       bytes_are(name, BYTE_TOKEN);
}

bool header_value_is_valid(struct span value)
{
	const char *end;

	if (!value.len)
		return true;
	end = value.ptr + value.len;
	return control_find(value.ptr, end) == end;
}

void headers_copy(struct headers *dst, const struct headers *src)
{
	dst->count = src->count;
	memcpy(dst->items, src->items, src->count * sizeof(src->items[0]));
}

const struct header *headers_find(const struct headers *h, enum header_id id)
{
	unsigned i;

	for (i = 0; i < h->count; i++)
		if (h->items[i].id == id)
			return &h->items[i];
	return NULL;
}

const struct header *headers_find_name(const struct headers *h,
				       struct span name)
{
	unsigned i;

	for (i = 0; i < h->count; i++)
		if (span_eq_nocase(h->items[i].name, name))
			return &h->items[i];
	return NULL;
}

unsigned headers_count(const struct headers *h, enum header_id id)
{
	unsigned count = 0, i;

	for (i = 0; i < h->count; i++)
		count += h->items[i].id == id;
	return count;
}

/* Index of the comma that ends the first member, or s.len. A quoted string
 * (RFC 9110 5.6.4) hides commas; one that never closes hides all of them. */
static size_t member_end(struct span s)
{
	bool quoted = false;
	size_t i;

	for (i = 0; i < s.len; i++) {
		if (s.ptr[i] == '"')
			quoted = !quoted;
		else if (quoted && s.ptr[i] == '\\')
			i++;
		else if (!quoted && s.ptr[i] == ',')
			return i;
	}
	return s.len;
}

struct span header_next_member(struct span *rest)
{
	struct span member;
	size_t end;

	while (rest->len) {
		end = member_end(*rest);
		member = span_trim(span_of(rest->ptr, end));
		*rest = span_from(*rest, end + 1);
		if (member.len)
			return member;
	}
	return SPAN_NONE;
}

/* Nearly every list has one member ("keep-alive"), and each field of a message
 * is looked for in it. */
static bool value_has_token(struct span value, struct span token)
{
	struct span member;

	if (!token.len || value.len < token.len)
		return false;
	if (span_find(value, ',') == value.len)
		return span_eq_nocase(span_trim(value), token);
	while ((member = header_next_member(&value)).ptr)
		if (span_eq_nocase(member, token))
			return true;
	return false;
}

bool headers_have_token(const struct headers *h, enum header_id id,
			struct span token)
{
	unsigned i;

	for (i = 0; i < h->count; i++)
		if (h->items[i].id == id &&
		    value_has_token(h->items[i].value, token))
			return true;
	return false;
}
