/* SPDX-License-Identifier: Apache-2.0 */
/* test_clock.c - two clocks, and the text of wall time */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <time.h>

#include "src/base/clock.h"

static void clock__goes_forward(void **state)
{
	const struct timespec pause = { .tv_nsec = 5 * 1000 * 1000 };
	uint64_t us = clock_us(), ms = clock_ms();

	(void)state;
	assert_in_range(ms, us / 1000, us / 1000 + 1000);
	assert_int_equal(nanosleep(&pause, NULL), 0);
	assert_true(clock_ms() >= ms + 4);
	assert_true(clock_us() >= us + 5000);
	/* after 2020, before 2200 */
	assert_in_range(clock_wall_ms(), 1577836800000, 7258118400000);
}

static void clock__text(void **state)
{
	static const struct {
		uint64_t wall_ms;
		const char *text;
	} rows[] = {
		{ 0, "1970-01-01T00:00:00.000Z" },
		{ 999, "1970-01-01T00:00:00.999Z" },
		{ 951782399001, "2000-02-28T23:59:59.001Z" },
		{ 951782400000, "2000-02-29T00:00:00.000Z" },
		{ 1795988533123, "2026-11-29T21:42:13.123Z" },
		{ 253402300799999, "9999-12-31T23:59:59.999Z" },
	};
	char text[CLOCK_TEXT_SIZE];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		clock_text(rows[i].wall_ms, text, sizeof(text));
		assert_string_equal(text, rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clock__goes_forward),
		cmocka_unit_test(clock__text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
