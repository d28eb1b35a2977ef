/* SPDX-License-Identifier: Apache-2.0 */
/* range.c - one range of bytes out of a header */

#include "src/wire/range.h"

/* Digits only. A number too large for us is larger than every file. */
static bool number_parse(struct span s, uint64_t *ret)
{
	size_t i;

	if (!s.len)
		return false;
	for (i = 0; i < s.len; i++)
		if (s.ptr[i] < '0' || s.ptr[i] > '9')
			return false;
	if (!span_parse_u64(s, ret))
		*ret = UINT64_MAX;
	return true;
}

/* "-n": the last n bytes. */
static enum range_kind suffix_parse(struct span digits, uint64_t size,
				    struct range *ret)
{
	uint64_t len;

	if (!number_parse(digits, &len) || !len || !size)
		return RANGE_UNSATISFIABLE;
	ret->first = len < size ? size - len : 0;
	ret->last = size - 1;
	return RANGE_PART;
}

enum range_kind range_parse(struct span value, uint64_t size, struct range *ret)
{
	struct span unit, first, one;
	uint64_t from, to = UINT64_MAX;

	if (!value.ptr)
		return RANGE_NONE;
	unit = span_trim(span_cut(&value, '='));
	if (!span_eq_nocase(unit, SPAN("bytes")))
		return RANGE_NONE;

	one = span_trim(span_cut(&value, ','));
	first = span_trim(span_of(one.ptr, span_find(one, '-')));
	if (span_find(one, '-') == one.len)
		return RANGE_UNSATISFIABLE;
	one = span_trim(span_from(one, span_find(one, '-') + 1));
	if (!first.len)
		return suffix_parse(one, size, ret);
	if (!number_parse(first, &from) || (one.len && !number_parse(one, &to)))
		return RANGE_UNSATISFIABLE;
	if (from >= size || to < from)
		return RANGE_UNSATISFIABLE;

	ret->first = from;
	ret->last = to < size ? to : size - 1;
	return RANGE_PART;
}
