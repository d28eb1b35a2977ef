/* SPDX-License-Identifier: Apache-2.0 */
/* quantity.c - a decimal number and what it is multiplied by */

#include "src/control/lifecycle/quantity.h"

enum { FRACTION_DIGITS = 9 };

struct unit {
	struct span suffix;
	uint64_t factor;
};

static const struct unit cpu_units[] = {
	{ SPAN_INIT(""), 1000000000 },
	{ SPAN_INIT("m"), 1000000 },
	{ SPAN_INIT("u"), 1000 },
	{ SPAN_INIT("n"), 1 },
};

static const struct unit byte_units[] = {
	{ SPAN_INIT(""), 1 },
	{ SPAN_INIT("k"), 1000 },
	{ SPAN_INIT("M"), 1000000 },
	{ SPAN_INIT("G"), 1000000000 },
	{ SPAN_INIT("T"), 1000000000000 },
	{ SPAN_INIT("P"), 1000000000000000 },
	{ SPAN_INIT("Ki"), UINT64_C(1) << 10 },
	{ SPAN_INIT("Mi"), UINT64_C(1) << 20 },
	{ SPAN_INIT("Gi"), UINT64_C(1) << 30 },
	{ SPAN_INIT("Ti"), UINT64_C(1) << 40 },
	{ SPAN_INIT("Pi"), UINT64_C(1) << 50 },
};

static size_t digits_len(struct span s)
{
	size_t i = 0;

	while (i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9')
		i++;
	return i;
}

/* whole.fraction times factor, rounded down; 128 bits hold every product. */
static bool scale(struct span whole, struct span fraction, uint64_t factor,
		  uint64_t *ret)
{
	unsigned __int128 sum, part, divisor = 1;
	uint64_t w = 0, f = 0;

	if (fraction.len > FRACTION_DIGITS)
		fraction.len = FRACTION_DIGITS;
	if ((whole.len && !span_parse_u64(whole, &w)) ||
	    (fraction.len && !span_parse_u64(fraction, &f)))
		return false;
	for (size_t i = 0; i < fraction.len; i++)
		divisor *= 10;
	part = (unsigned __int128)f * factor / divisor;
	sum = (unsigned __int128)w * factor + part;
	if (!sum || sum > INT64_MAX)
		return false;
	*ret = (uint64_t)sum;
	return true;
}

static bool quantity_parse(struct span text, const struct unit *units,
			   size_t count, uint64_t *ret)
{
	struct span whole, fraction = SPAN_NONE, rest;
	size_t i;

	text = span_trim(text);
	whole = span_of(text.ptr, digits_len(text));
	rest = span_from(text, whole.len);
	if (rest.len && rest.ptr[0] == '.') {
		rest = span_from(rest, 1);
		fraction = span_of(rest.ptr, digits_len(rest));
		rest = span_from(rest, fraction.len);
	}
	if (!whole.len && !fraction.len)
		return false;
	for (i = 0; i < count; i++)
		if (span_eq(rest, units[i].suffix))
			return scale(whole, fraction, units[i].factor, ret);
	return false;
}

bool quantity_cpu(struct span text, uint64_t *ret)
{
	return quantity_parse(text, cpu_units, ARRAY_LEN(cpu_units), ret);
}

bool quantity_bytes(struct span text, uint64_t *ret)
{
	return quantity_parse(text, byte_units, ARRAY_LEN(byte_units), ret);
}
