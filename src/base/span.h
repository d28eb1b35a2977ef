/* SPDX-License-Identifier: Apache-2.0 */
/* span.h - a view of bytes somebody else owns, passed by value
 *
 * Strings on the wire are spans: they may hold any byte and end nowhere but at
 * their length. NUL-terminated strings exist only at the edge to libc.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
	const char *ptr;
	size_t len;
};

#define SPAN(literal) ((struct span){ (literal), sizeof(literal) - 1 })
#define SPAN_INIT(lit)                 \
	{                              \
		(lit), sizeof(lit) - 1 \
	} /* static initialiser */
#define SPAN_NONE ((struct span){ NULL, 0 })
/* printf("%.*s", SPAN_FMT(s)) */
#define SPAN_FMT(s) (int)(s).len, (s).ptr

static inline struct span span_of(const void *ptr, size_t len)
{
	return (struct span){ ptr, len };
}

static inline struct span span_str(const char *s)
{
	return (struct span){ s, s ? strlen(s) : 0 };
}

static inline bool span_eq(struct span a, struct span b)
{
	return a.len == b.len && (!a.len || !memcmp(a.ptr, b.ptr, a.len));
}

static inline char span_lower_char(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* ASCII only, independent of locale. */
bool span_eq_nocase(struct span a, struct span b);
bool span_starts(struct span s, struct span prefix);
bool span_ends(struct span s, struct span suffix);

/* Index of the first c, or s.len. */
size_t span_find(struct span s, char c);

static inline bool span_has(struct span s, char c)
{
	return s.len && memchr(s.ptr, c, s.len);
}

/* The part from `from` (clamped) to the end. */
struct span span_from(struct span s, size_t from);

/* Without leading and trailing SP and HTAB. */
struct span span_trim(struct span s);

/* Cuts s at the first sep: returns what stood before it, and moves *s past it
 * (to the empty span when there was none). */
struct span span_cut(struct span *s, char sep);

/* Decimal digits only, whole span, no overflow. False: *ret untouched. */
bool span_parse_u64(struct span s, uint64_t *ret);

/* v in decimal, without a NUL; the span lies in dst. */
enum { SPAN_DECIMAL_SIZE = 20 };
struct span span_decimal(uint64_t v, char dst[SPAN_DECIMAL_SIZE]);

/* Copies as a NUL-terminated string. False when it does not fit or s holds a
 * NUL; dst is then the empty string. */
bool span_copy(struct span s, char *dst, size_t size);
