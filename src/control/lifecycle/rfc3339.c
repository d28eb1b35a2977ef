/* SPDX-License-Identifier: Apache-2.0 */
/* rfc3339.c - a date and a time of day with an offset, read strictly */

#include "src/control/lifecycle/rfc3339.h"

#include "src/base/civil.h"

enum { FRACTION_MAX = 18 };

/* Exactly count digits. */
static bool take_digits(struct span *in, unsigned count, unsigned *ret)
{
	unsigned value = 0, i;

	if (in->len < count)
		return false;
	for (i = 0; i < count; i++) {
		if (in->ptr[i] < '0' || in->ptr[i] > '9')
			return false;
		value = value * 10 + (unsigned)(in->ptr[i] - '0');
	}
	*in = span_from(*in, count);
	*ret = value;
	return true;
}

/* One of the characters of set. */
static bool take_one(struct span *in, const char *set)
{
	if (!in->len || !in->ptr[0] || !strchr(set, in->ptr[0]))
		return false;
	*in = span_from(*in, 1);
	return true;
}

/* ".123", or nothing. */
static bool take_fraction(struct span *in, uint64_t *ret_ms)
{
	uint64_t weight = 100, ms = 0;
	unsigned digit, count = 0;

	if (take_one(in, ".")) {
		while (count < FRACTION_MAX && take_digits(in, 1, &digit)) {
			ms += weight * digit;
			weight /= 10;
			count++;
		}
		if (!count)
			return false;
	}
	*ret_ms = ms;
	return true;
}

/* Seconds that the local time is ahead of UTC. */
static bool take_offset(struct span *in, int64_t *ret_s)
{
	unsigned hours, minutes;
	bool behind;

	*ret_s = 0;
	if (take_one(in, "Zz"))
		return true;
	behind = in->len && in->ptr[0] == '-';
	if (!take_one(in, "+-") || !take_digits(in, 2, &hours) ||
	    !take_one(in, ":") || !take_digits(in, 2, &minutes) || hours > 23 ||
	    minutes > 59)
		return false;
	*ret_s = (int64_t)hours * 3600 + (int64_t)minutes * 60;
	if (behind)
		*ret_s = -*ret_s;
	return true;
}

static bool take_date_time(struct span *in, struct civil *c)
{
	return take_digits(in, 4, &c->year) && take_one(in, "-") &&
	       take_digits(in, 2, &c->month) && take_one(in, "-") &&
	       take_digits(in, 2, &c->day) && take_one(in, "Tt ") &&
	       take_digits(in, 2, &c->hour) && take_one(in, ":") &&
	       take_digits(in, 2, &c->minute) && take_one(in, ":") &&
	       take_digits(in, 2, &c->second);
}

bool rfc3339_parse(struct span text, uint64_t *ret_ms)
{
	struct civil c = { 0 };
	uint64_t seconds, ms;
	int64_t offset_s;
	bool leap;

	if (!take_date_time(&text, &c) || !take_fraction(&text, &ms) ||
	    !take_offset(&text, &offset_s) || text.len)
		return false;
	leap = c.second == 60;
	if (leap)
		c.second = 59;
	if (!civil_to_unix(&c, &seconds))
		return false;
	seconds += leap;
	if (offset_s > 0 && (uint64_t)offset_s > seconds)
		return false;
	*ret_ms = (uint64_t)((int64_t)seconds - offset_s) * 1000 + ms;
	return true;
}
