/* SPDX-License-Identifier: Apache-2.0 */
/* test_civil.c - dates, compared with libc's */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "src/base/civil.h"

static void compare(uint64_t seconds)
{
	time_t t = (time_t)seconds;
	uint64_t back = 0;
	struct civil c;
	struct tm tm;

	assert_non_null(gmtime_r(&t, &tm));
	civil_from_unix(seconds, &c);
	if (c.year != (unsigned)tm.tm_year + 1900 ||
	    c.month != (unsigned)tm.tm_mon + 1 ||
	    c.day != (unsigned)tm.tm_mday ||
	    c.weekday != (unsigned)tm.tm_wday ||
	    c.hour != (unsigned)tm.tm_hour || c.minute != (unsigned)tm.tm_min ||
	    c.second != (unsigned)tm.tm_sec)
		fail_msg("%llu is told as %u-%u-%u %u:%u:%u, day %u",
			 (unsigned long long)seconds, c.year, c.month, c.day,
			 c.hour, c.minute, c.second, c.weekday);
	if (!civil_to_unix(&c, &back) || back != seconds)
		fail_msg("%llu comes back as %llu", (unsigned long long)seconds,
			 (unsigned long long)back);
}

/* The first and the last second of every day there is. */
static void civil__is_that_of_libc(void **state)
{
	uint64_t day;

	(void)state;
	for (day = 0; day <= 2932896; day++) {
		compare(day * 86400);
		compare(day * 86400 + 86399);
	}
	for (day = 0; day < 86400; day++)
		compare(1795910400 + day);
}

static void civil__ends_with_the_year_9999(void **state)
{
	struct civil c;

	(void)state;
	civil_from_unix(UINT64_MAX, &c);
	assert_int_equal(c.year, 9999);
	assert_int_equal(c.month, 12);
	assert_int_equal(c.day, 31);
	assert_int_equal(c.second, 59);
}

static void civil__that_is_none_is_refused(void **state)
{
	static const struct civil bad[] = {
		{ .year = 1969, .month = 12, .day = 31 },
		{ .year = 10000, .month = 1, .day = 1 },
		{ .year = 2026, .month = 0, .day = 1 },
		{ .year = 2026, .month = 13, .day = 1 },
		{ .year = 2026, .month = 2, .day = 29 },
		{ .year = 2100, .month = 2, .day = 29 },
		{ .year = 2026, .month = 1, .day = 0 },
		{ .year = 2026, .month = 1, .day = 1, .hour = 24 },
		{ .year = 2026, .month = 1, .day = 1, .minute = 60 },
		{ .year = 2026, .month = 1, .day = 1, .second = 60 },
	};
	uint64_t seconds = 7;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(civil_to_unix(&bad[i], &seconds));
	assert_int_equal(seconds, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(civil__is_that_of_libc),
		cmocka_unit_test(civil__ends_with_the_year_9999),
		cmocka_unit_test(civil__that_is_none_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
