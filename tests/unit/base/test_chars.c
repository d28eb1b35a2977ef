/* SPDX-License-Identifier: Apache-2.0 */
/* test_chars.c - every char, against the sets written out */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "src/base/chars.h"

#define DIGITS "0123456789"
#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define UPPER  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

static bool is_in(char c, const char *set)
{
	return c && strchr(set, c);
}

static void chars__are_what_the_sets_say(void **state)
{
	int i;
	char c;

	(void)state;
	for (i = 0; i < 256; i++) {
		c = (char)i;
		assert_int_equal(char_is_digit(c), is_in(c, DIGITS));
		assert_int_equal(char_is_lower(c), is_in(c, LOWER));
		assert_int_equal(char_is_letter(c), is_in(c, LOWER UPPER));
		assert_int_equal(char_is_alnum(c),
				 is_in(c, DIGITS LOWER UPPER));
	}
}

static void chars__hexadecimal_has_a_value(void **state)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	int i;
	char c;

	(void)state;
	for (i = 0; i < 256; i++) {
		c = (char)i;
		if (is_in(c, digits))
			assert_int_equal(char_hex(c),
					 (strchr(digits, c) - digits) % 16);
		else
			assert_int_equal(char_hex(c), -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chars__are_what_the_sets_say),
		cmocka_unit_test(chars__hexadecimal_has_a_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
