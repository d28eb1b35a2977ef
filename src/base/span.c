/* SPDX-License-Identifier: Apache-2.0 */
/* span.c - views of bytes: compare, search, cut */

#include "src/base/span.h"

bool span_eq_nocase(struct span a, struct span b)
{
	size_t i;

	if (a.len != b.len)
		return false;
	for (i = 0; i < a.len; i++)
		if (span_lower_char(a.ptr[i]) != span_lower_char(b.ptr[i]))
			return false;
	return true;
}

bool span_starts(struct span s, struct span prefix)
{
	return s.len >= prefix.len &&
	       span_eq(span_of(s.ptr, prefix.len), prefix);
}

bool span_ends(struct span s, struct span suffix)
{
	return s.len >= suffix.len &&
	       span_eq(span_from(s, s.len - suffix.len), suffix);
}

size_t span_find(struct span s, char c)
{
	const char *hit = s.len ? memchr(s.ptr, c, s.len) : NULL;

	return hit ? (size_t)(hit - s.ptr) : s.len;
}

struct span span_from(struct span s, size_t from)
{
	if (from > s.len)
		from = s.len;
	if (!from)
		return s;
	return span_of(s.ptr + from, s.len - from);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct span span_trim(struct span s)
{
	while (s.len && is_blank(s.ptr[0]))
		s = span_from(s, 1);
	while (s.len && is_blank(s.ptr[s.len - 1]))
		s.len--;
	return s;
}

struct span span_cut(struct span *s, char sep)
{
	size_t at = span_find(*s, sep);
	struct span before = span_of(s->ptr, at);

	*s = span_from(*s, at + 1);
	return before;
}

bool span_parse_u64(struct span s, uint64_t *ret)
{
	uint64_t value = 0;
	size_t i;

	if (!s.len)
		return false;
	for (i = 0; i < s.len; i++) {
		if (s.ptr[i] < '0' || s.ptr[i] > '9')
			return false;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(s.ptr[i] - '0'),
					   &value))
			return false;
	}
	*ret = value;
	return true;
}

/* Two digits for one division. */
static const char pairs[] = "00010203040506070809"
			    "10111213141516171819"
			    "20212223242526272829"
			    "30313233343536373839"
			    "40414243444546474849"
			    "50515253545556575859"
			    "60616263646566676869"
			    "70717273747576777879"
			    "80818283848586878889"
			    "90919293949596979899";

struct span span_decimal(uint64_t v, char dst[SPAN_DECIMAL_SIZE])
{
	char *end = dst + SPAN_DECIMAL_SIZE, *at = end;

	for (; v >= 100; v /= 100) {
		at -= 2;
		memcpy(at, pairs + v % 100 * 2, 2);
	}
	if (v >= 10) {
		at -= 2;
		memcpy(at, pairs + v * 2, 2);
	} else
		*--at = (char)('0' + v);
	return span_of(at, (size_t)(end - at));
}

bool span_copy(struct span s, char *dst, size_t size)
{
	if (size)
		dst[0] = '\0';
	if (s.len >= size || span_find(s, '\0') != s.len)
		return false;
	if (s.len)
		memcpy(dst, s.ptr, s.len);
	dst[s.len] = '\0';
	return true;
}
