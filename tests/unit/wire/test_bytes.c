/* SPDX-License-Identifier: Apache-2.0 */
/* test_bytes.c - the fast searches agree with the slow and obvious ones */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <stdlib.h>

#include "src/wire/bytes.h"

static bool is_control(unsigned char c)
{
	return (c < 0x20 && c != '\t') || c == 0x7f;
}

static void bytes__classes(void **state)
{
	int c;

	(void)state;
	for (c = 0; c < 256; c++) {
		bool alnum = c < 128 && isalnum(c);

		assert_int_equal(byte_is((char)c, BYTE_CONTROL),
				 is_control((unsigned char)c));
		assert_int_equal(byte_is((char)c, BYTE_HEX),
				 c < 128 && isxdigit(c));
		assert_int_equal(byte_is((char)c, BYTE_TOKEN),
				 alnum || (c && strchr("!#$%&'*+-.^_`|~", c)));
		assert_int_equal(byte_is((char)c, BYTE_AUTHORITY),
				 alnum || (c && strchr("-._:[]", c)));
		assert_int_equal(byte_is((char)c, BYTE_UNRESERVED),
				 alnum || (c && strchr("-._~", c)));
	}
}

static void bytes__hex(void **state)
{
	const char *digits = "0123456789abcdef", *upper = "0123456789ABCDEF";
	unsigned i;

	(void)state;
	for (i = 0; i < 16; i++) {
		assert_int_equal(byte_hex(digits[i]), i);
		assert_int_equal(byte_hex(upper[i]), i);
	}
}

/* Every byte value at every place of buffers around the block sizes. */
static void bytes__control_find(void **state)
{
	char text[48];
	size_t len, at;
	int c;

	(void)state;
	for (len = 0; len <= sizeof(text); len++) {
		for (at = 0; at < len; at++) {
			for (c = 0; c < 256; c++) {
				const char *hit;

				memset(text, at % 2 ? 'x' : '\t', sizeof(text));
				text[at] = (char)c;
				hit = is_control((unsigned char)c) ? text + at
								   : text + len;
				assert_ptr_equal(control_find(text, text + len),
						 hit);
				assert_ptr_equal(
					control_find_slow(text, text + len),
					hit);
			}
		}
	}
}

static void bytes__control_find_random(void **state)
{
	char text[64];
	size_t len, at, i;
	int round;

	(void)state;
	srandom(1);
	for (round = 0; round < 20000; round++) {
		len = (size_t)random() % sizeof(text);
		for (i = 0; i < len; i++)
			text[i] = (char)(random() % 40 ? random() | 0x20
						       : random());
		for (at = 0; at < len; at++)
			if (is_control((unsigned char)text[at]))
				break;
		assert_ptr_equal(control_find(text, text + len), text + at);
		assert_ptr_equal(control_find_slow(text, text + len),
				 text + at);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes__classes),
		cmocka_unit_test(bytes__hex),
		cmocka_unit_test(bytes__control_find),
		cmocka_unit_test(bytes__control_find_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
