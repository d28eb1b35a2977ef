/* SPDX-License-Identifier: Apache-2.0 */
/* test_recent.c - what was said is not said again for a while */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "src/base/recent.h"

static void recent__quiet_for_a_while(void **state)
{
	static struct recent r;

	(void)state;
	assert_false(recent_was_said(&r, SPAN("a\0x"), 1000, 50));
	assert_true(recent_was_said(&r, SPAN("a\0x"), 1049, 50));
	assert_false(recent_was_said(&r, SPAN("a\0y"), 1049, 50));
	/* from when it was said, not from when it was held back */
	assert_false(recent_was_said(&r, SPAN("a\0x"), 1050, 50));
	assert_true(recent_was_said(&r, SPAN("a\0x"), 1099, 50));
	/* no time at all: never quiet */
	assert_false(recent_was_said(&r, SPAN("b"), 2000, 0));
	assert_false(recent_was_said(&r, SPAN("b"), 2000, 0));
}

/* However many keys: each is said at least once, and most are held back. */
static void recent__many_keys(void **state)
{
	static struct recent r;
	char key[32];
	unsigned round, i, said[2] = { 0, 0 };
	int len;

	(void)state;
	for (round = 0; round < 2; round++) {
		for (i = 0; i < RECENT_PLACES / 8; i++) {
			len = snprintf(key, sizeof(key), "name-%u.example", i);
			said[round] += !recent_was_said(
				&r, span_of(key, (size_t)len), 5, 10);
		}
	}
	assert_int_equal(said[0], RECENT_PLACES / 8);
	assert_in_range(said[1], 0, RECENT_PLACES / 32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recent__quiet_for_a_while),
		cmocka_unit_test(recent__many_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
