/* SPDX-License-Identifier: Apache-2.0 */
/* test_span.c - views: compare, search, cut, parse, copy */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

static void span__compare(void **state)
{
	(void)state;
	assert_true(span_eq(SPAN("a\0b"), SPAN("a\0b")));
	assert_false(span_eq(SPAN("a\0b"), SPAN("a\0c")));
	assert_false(span_eq(SPAN("a"), SPAN("ab")));
	assert_true(span_eq(SPAN_NONE, SPAN("")));
	assert_true(span_eq_nocase(SPAN("aZ09-"), SPAN("Az09-")));
	/* only letters fold: '@' and '`', '[' and '{' differ by the case bit */
	assert_false(span_eq_nocase(SPAN("@["), SPAN("`{")));
	assert_false(span_eq_nocase(SPAN("\xc4"), SPAN("\xe4")));
	assert_true(span_starts(SPAN("abc"), SPAN("ab")));
	assert_true(span_starts(SPAN("abc"), SPAN("")));
	assert_true(span_starts(SPAN_NONE, SPAN_NONE));
	assert_false(span_starts(SPAN("a"), SPAN("ab")));
	assert_true(span_ends(SPAN("abc"), SPAN("bc")));
	assert_true(span_ends(SPAN("abc"), SPAN("abc")));
	assert_false(span_ends(SPAN("abc"), SPAN("xabc")));
	assert_false(span_ends(SPAN("abc"), SPAN("ab")));
	assert_int_equal(span_str(NULL).len, 0);
}

static void span__find_from_trim(void **state)
{
	struct span s = SPAN("a,b,");

	(void)state;
	assert_int_equal(span_find(s, ','), 1);
	assert_int_equal(span_find(s, 'x'), 4);
	assert_int_equal(span_find(SPAN_NONE, 'x'), 0);
	assert_int_equal(span_find(SPAN("a\0b"), '\0'), 1);
	assert_true(span_eq(span_from(s, 2), SPAN("b,")));
	assert_int_equal(span_from(s, 99).len, 0);
	assert_null(span_from(SPAN_NONE, 1).ptr);
	assert_true(span_eq(span_trim(SPAN(" \t a b\t ")), SPAN("a b")));
	assert_int_equal(span_trim(SPAN(" \t ")).len, 0);
	assert_true(span_eq(span_trim(SPAN("\r\na\n")), SPAN("\r\na\n")));
}

static void span__cut(void **state)
{
	struct span rest = SPAN("a,,b");

	(void)state;
	assert_true(span_eq(span_cut(&rest, ','), SPAN("a")));
	assert_true(span_eq(span_cut(&rest, ','), SPAN("")));
	assert_true(span_eq(rest, SPAN("b")));
	assert_true(span_eq(span_cut(&rest, ','), SPAN("b")));
	assert_int_equal(rest.len, 0);
	assert_int_equal(span_cut(&rest, ',').len, 0);
	rest = SPAN_NONE;
	assert_int_equal(span_cut(&rest, ',').len, 0);
}

static void span__parse_u64(void **state)
{
	static const struct {
		const char *text;
		bool fine;
		uint64_t value;
	} rows[] = {
		{ "0", true, 0 },
		{ "007", true, 7 },
		{ "18446744073709551615", true, UINT64_MAX },
		{ "18446744073709551616", false, 0 },
		{ "18446744073709551620", false, 0 },
		{ "99999999999999999999", false, 0 },
		{ "", false, 0 },
		{ "+1", false, 0 },
		{ "-1", false, 0 },
		{ " 1", false, 0 },
		{ "1 ", false, 0 },
		{ "0x1", false, 0 },
		{ "1.0", false, 0 },
	};
	uint64_t value;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		value = 42;
		assert_int_equal(span_parse_u64(span_str(rows[i].text), &value),
				 rows[i].fine);
		assert_int_equal(value, rows[i].fine ? rows[i].value : 42);
	}
}

static void span__copy(void **state)
{
	char dst[4] = "xxx";

	(void)state;
	assert_true(span_copy(SPAN("abc"), dst, sizeof(dst)));
	assert_string_equal(dst, "abc");
	assert_false(span_copy(SPAN("abcd"), dst, sizeof(dst)));
	assert_string_equal(dst, "");
	assert_false(span_copy(SPAN("a\0b"), dst, sizeof(dst)));
	assert_string_equal(dst, "");
	assert_true(span_copy(SPAN_NONE, dst, 1));
	assert_false(span_copy(SPAN_NONE, dst, 0));
}

static void decimal_check(uint64_t v)
{
	char ours[SPAN_DECIMAL_SIZE], libc[32];

	(void)snprintf(libc, sizeof(libc), "%llu", (unsigned long long)v);
	assert_true(span_eq(span_decimal(v, ours), span_str(libc)));
}

static void span__decimal(void **state)
{
	uint64_t v;

	(void)state;
	for (v = 0; v < 20000; v++)
		decimal_check(v);
	for (v = 1; v < UINT64_MAX / 10; v *= 10) {
		decimal_check(v - 1);
		decimal_check(v);
		decimal_check(v + 1);
	}
	decimal_check(UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(span__compare),
		cmocka_unit_test(span__find_from_trim),
		cmocka_unit_test(span__cut),
		cmocka_unit_test(span__parse_u64),
		cmocka_unit_test(span__copy),
		cmocka_unit_test(span__decimal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
