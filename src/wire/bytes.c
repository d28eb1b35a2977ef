/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.c - the table of byte classes, and searching without SSE2 */

#include "src/wire/bytes.h"

#define PUNCT	    (BYTE_TOKEN)
#define NAME	    (BYTE_TOKEN | BYTE_AUTHORITY | BYTE_UNRESERVED)
#define NAME_OR_HEX (NAME | BYTE_HEX)

const uint8_t byte_classes[256] = {
	[0x00 ... 0x08] = BYTE_CONTROL,
	[0x0a ... 0x1f] = BYTE_CONTROL,
	[0x7f] = BYTE_CONTROL,
	['!'] = PUNCT,
	['#' ... '\''] = PUNCT,
	['*'] = PUNCT,
	['+'] = PUNCT,
	['-'] = NAME,
	['.'] = NAME,
	['0' ... '9'] = NAME_OR_HEX,
	[':'] = BYTE_AUTHORITY,
	['A' ... 'F'] = NAME_OR_HEX,
	['G' ... 'Z'] = NAME,
	['['] = BYTE_AUTHORITY,
	[']'] = BYTE_AUTHORITY,
	['^'] = PUNCT,
	['_'] = NAME,
	['`'] = PUNCT,
	['a' ... 'f'] = NAME_OR_HEX,
	['g' ... 'z'] = NAME,
	['|'] = PUNCT,
	['~'] = PUNCT | BYTE_UNRESERVED,
};

bool bytes_are(struct span s, enum byte_class class)
{
	size_t i;

	for (i = 0; i < s.len; i++)
		if (!byte_is(s.ptr[i], class))
			return false;
	return true;
}

/* Eight bytes at a time: does any look like a control byte? May also say yes
 * for HTAB, and for a byte behind a true hit; the byte loop decides. */
static bool word_has_control(uint64_t word)
{
	const uint64_t ones = UINT64_MAX / 255, del = word ^ ones * 0x7f;

	return (((word - ones * 0x20) & ~word) | ((del - ones) & ~del)) &
	       ones * 0x80;
}

const char *control_find_slow(const char *p, const char *end)
{
	uint64_t word;
	int i;

	for (; end - p >= 8; p += 8) {
		memcpy(&word, p, 8);
		if (!word_has_control(word))
			continue;
		for (i = 0; i < 8; i++)
			if (byte_is(p[i], BYTE_CONTROL))
				return p + i;
	}
	for (; p < end; p++)
		if (byte_is(*p, BYTE_CONTROL))
			return p;
	return end;
}
