/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.h - classes of bytes in HTTP, and a fast search for control bytes
 *
 * A control byte here is 0x00..0x1f but HTAB, or 0x7f: none of them may stand
 * in a field value or a start line, so the first one found is the CR of the
 * line's end, or the reason to refuse the message.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/span.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum byte_class {
	BYTE_TOKEN = 1,	    /* RFC 9110 5.6.2 tchar */
	BYTE_AUTHORITY = 2, /* host names, IP literals, port: no userinfo */
	BYTE_HEX = 4,
	BYTE_UNRESERVED = 8, /* RFC 3986 2.3 */
	BYTE_CONTROL = 16,
};

extern const uint8_t byte_classes[256];

static inline bool byte_is(char c, enum byte_class class)
{
	return byte_classes[(unsigned char)c] & class;
}

/* Are all bytes of this class? True for no bytes. */
bool bytes_are(struct span s, enum byte_class class);

/* 0..15; c must be BYTE_HEX. */
static inline unsigned byte_hex(char c)
{
	return c <= '9' ? (unsigned)(c - '0')
			: (unsigned)((c | 0x20) - 'a') + 10;
}

/* The first control byte in p..end, or end. */
const char *control_find_slow(const char *p, const char *end);

static inline const char *control_find(const char *p, const char *end)
{
#ifdef __SSE2__
	const __m128i low = _mm_set1_epi8(0x1f), del = _mm_set1_epi8(0x7f);
	const __m128i tab = _mm_set1_epi8('\t');
	__m128i chunk, hit;
	int mask;

	for (; end - p >= 16; p += 16) {
		chunk = _mm_loadu_si128((const void *)p);
		hit = _mm_cmpeq_epi8(_mm_min_epu8(chunk, low), chunk);
		hit = _mm_andnot_si128(_mm_cmpeq_epi8(chunk, tab), hit);
		hit = _mm_or_si128(hit, _mm_cmpeq_epi8(chunk, del));
		mask = _mm_movemask_epi8(hit);
		if (mask)
			return p + __builtin_ctz((unsigned)mask);
	}
#endif
	return control_find_slow(p, end);
}
