/* SPDX-License-Identifier: Apache-2.0 */
/* civil.c - Unix time as a date and a time of day, in UTC */

#include "src/base/civil.h"

enum {
	DAY_S = 24 * 60 * 60,
	DAYS_OF_400_YEARS = 146097,
	LEAP_DAYS_BEFORE_1970 = 477,
};

static const uint64_t end_s = 253402300799; /* 9999-12-31T23:59:59Z */

static bool is_leap(unsigned year)
{
	return !(year % 4) && (year % 100 || !(year % 400));
}

/* From 1970-01-01 to the first of January of the year. */
static uint64_t days_before(unsigned year)
{
	unsigned past = year - 1;

	return (uint64_t)(year - 1970) * 365 + past / 4 - past / 100 +
	       past / 400 - LEAP_DAYS_BEFORE_1970;
}

static unsigned days_of_month(unsigned year, unsigned month)
{
	static const unsigned char days[] = { 31, 28, 31, 30, 31, 30,
					      31, 31, 30, 31, 30, 31 };

	return days[month - 1] + (month == 2 && is_leap(year));
}

static void date_from_days(uint64_t days, struct civil *c)
{
	/* By the mean length of a year: right or one off. */
	c->year = 1970 + (unsigned)(days * 400 / DAYS_OF_400_YEARS);
	while (days_before(c->year) > days)
		c->year--;
	while (days_before(c->year + 1) <= days)
		c->year++;

	days -= days_before(c->year);
	c->month = 1;
	while (days >= days_of_month(c->year, c->month))
		days -= days_of_month(c->year, c->month++);
	c->day = (unsigned)days + 1;
}

void civil_from_unix(uint64_t seconds, struct civil *ret)
{
	uint64_t days;
	unsigned rest;

	if (seconds > end_s)
		seconds = end_s;
	days = seconds / DAY_S;
	rest = (unsigned)(seconds % DAY_S);
	date_from_days(days, ret);
	ret->weekday = (unsigned)((days + 4) % 7); /* it began on a Thursday */
	ret->hour = rest / 3600;
	ret->minute = rest / 60 % 60;
	ret->second = rest % 60;
}

bool civil_to_unix(const struct civil *c, uint64_t *ret)
{
	uint64_t days;
	unsigned month;

	if (c->year < 1970 || c->year > 9999 || c->month < 1 || c->month > 12 ||
	    c->day < 1 || c->day > days_of_month(c->year, c->month) ||
	    c->hour > 23 || c->minute > 59 || c->second > 59)
		return false;
	days = days_before(c->year) + c->day - 1;
	for (month = 1; month < c->month; month++)
		days += days_of_month(c->year, month);
	*ret = days * DAY_S + c->hour * 3600U + c->minute * 60U + c->second;
	return true;
}
