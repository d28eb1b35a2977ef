/* SPDX-License-Identifier: Apache-2.0 */
/* test_glob.c - names against patterns, and patterns that are none */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "src/base/clock.h"
#include "src/base/diag.h"
#include "src/execd/files/glob.h"

static const struct {
	const char *pattern, *name;
	bool matches;
} rows[] = {
	{ "**", "anything.txt", true },
	{ "*", "", true },
	{ "*.txt", "a.txt", true },
	{ "*.txt", "a.txt2", false },
	{ "*.txt", ".txt", true },
	{ "**/*.txt", "a.txt", true },
	{ "**/**/a", "a", true },
	{ "src/*.txt", "a.txt", false },
	{ "a*b*c", "aXbXbXc", true },
	{ "a*b*c", "aXbXbX", false },
	{ "a?b",
	  "a\xe2\x98\xba"
	  "b",
	  true },
	{ "a???b",
	  "a\xe2\x98\xba"
	  "b",
	  false },
	{ "a?b",
	  "a\xff"
	  "b",
	  true },
	{ "a??b",
	  "a\xe2\x98"
	  "b",
	  true },
	{ "\xff", "\xff", true },
	{ "\xff", "\xfe", false },
	{ "\xc3\xbf", "\xff", false },
	{ "[a-c]", "b", true },
	{ "[a-c]", "d", false },
	{ "[!a-c]", "d", true },
	{ "[^a-c]", "b", false },
	{ "[a-\xce\xb6]*", "\xce\xb1", true },
	{ "[x-]", "-", true },
	{ "[-x]", "-", true },
	{ "[\\]a]", "]", true },
	{ "[\\-x]", "-", true },
	{ "[a-b-d]", "-", true },
	{ "[a-b-d]", "c", false },
	{ "[[]", "[", true },
	{ "e[\\*\\?]", "e*", true },
	{ "a\\*b", "a*b", true },
	{ "a\\*b", "aXb", false },
	{ "]", "]", true },
	{ "*\\}", "}", true },
	{ "ab{c,d}", "abd", true },
	{ "ab{c,d,*}", "abcde", true },
	{ "a{,bc}", "a", true },
	{ "a{,bc}", "abc", true },
	{ "a{,bc}", "ab", false },
	{ "{a,{b,c}d}e", "cde", true },
	{ "{a,{b,c}d}e", "ade", false },
	{ "*.{js,t[sx],\\,}", "x.ts", true },
	{ "*.{js,t[sx],\\,}", "x.,", true },
	{ "{}x", "x", true },
	{ "a}b,c", "a}b,c", true },
	{ "\\{a,b}", "{a,b}", true },
	{ "\\\\{a,b}", "\\b", true },
	{ "", "", true },
	{ "", "a", false },
	{ "A", "a", false },
};

static void glob__rows(void **state)
{
	struct diag d = { 0 };
	struct glob *g;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(glob_new(span_str(rows[i].pattern), &g, &d),
				 0);
		if (glob_matches(g, span_str(rows[i].name)) != rows[i].matches)
			fail_msg("%s and %s", rows[i].pattern, rows[i].name);
		assert_null(glob_free(g));
	}
}

static void glob__bad_patterns(void **state)
{
	static const char *const bad[] = {
		"\\",
		"a\\",
		"[",
		"[^",
		"[^bc",
		"a[",
		"[]a]",
		"[!]",
		"[\\]",
		"{",
		"{a,b",
		"ab{c,d}[",
		"{{{{{{{{{a}}}}}}}}}",
		"{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}",
	};
	char longest[GLOB_BYTES_MAX + 2];
	struct glob *g = NULL;
	struct diag d;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		d = (struct diag){ 0 };
		assert_true(glob_new(span_str(bad[i]), &g, &d) < 0);
		assert_true(diag_is_set(&d));
	}
	memset(longest, '?', sizeof(longest));
	d = (struct diag){ 0 };
	assert_true(glob_new(span_of(longest, GLOB_BYTES_MAX + 1), &g, &d) < 0);
	assert_int_equal(glob_new(span_of(longest, GLOB_BYTES_MAX), &g, &d), 0);
	g = glob_free(g);
}

/* Stars do not multiply. */
static void glob__hard_patterns(void **state)
{
	char name[255], pattern[GLOB_BYTES_MAX];
	struct diag d = { 0 };
	struct glob *g;
	uint64_t from;
	size_t i;

	(void)state;
	memset(name, 'a', sizeof(name));
	for (i = 0; i < sizeof(pattern); i++)
		pattern[i] = i & 1 ? 'a' : '*';
	pattern[sizeof(pattern) - 1] = 'b';
	assert_int_equal(glob_new(span_of(pattern, sizeof(pattern)), &g, &d),
			 0);
	from = clock_ms();
	for (i = 0; i < 100; i++)
		assert_false(glob_matches(g, span_of(name, sizeof(name))));
	assert_true(clock_ms() - from < 5000);
	g = glob_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(glob__rows),
		cmocka_unit_test(glob__bad_patterns),
		cmocka_unit_test(glob__hard_patterns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
