/* SPDX-License-Identifier: Apache-2.0 */
/* test_state.c - a session's state as its shell tells it */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/execd/session/state.h"

#define M "00ff00ff00ff00ff00ff00ff00ff00ff"

static void assert_span(struct span found, const char *expected)
{
	if (!span_eq(found, span_str(expected)))
		fail_msg("found \"%.*s\", expected \"%s\"", SPAN_FMT(found),
			 expected);
}

static void read__finds_directory_and_exports(void **state)
{
	struct state s;

	(void)state;
	assert_true(
		state_read(SPAN(M "\n/tmp\n" M "\nexport A='1'\n" M), M, &s));
	assert_span(s.cwd, "/tmp");
	assert_span(s.exports, "export A='1'\n");
	/* the name of a directory may hold line ends */
	assert_true(state_read(SPAN(M "\n/a\n\nb\n\n" M "\n" M), M, &s));
	assert_span(s.cwd, "/a\n\nb\n");
	assert_span(s.exports, "");
}

static void read__takes_the_last_whole_one(void **state)
{
	static const char told[] =
		M "\n/1\n" M "\na\n" M M "\n/2\n" M "\nb\n" M;
	struct state s;

	(void)state;
	assert_true(state_read(
		SPAN(M "\n/1\n" M "\na\n" M M "\n/2\n" M "\nb\n" M), M, &s));
	assert_span(s.cwd, "/2");
	assert_span(s.exports, "b\n");
	/* cut in the second: the first stands */
	assert_true(state_read(span_of(told, sizeof(told) - 2), M, &s));
	assert_span(s.cwd, "/1");
}

static void read__refuses_every_truncation(void **state)
{
	static const char told[] = M "\n/tmp\n" M "\nexport A='1'\n" M;
	struct state s = { SPAN("kept"), SPAN("kept") };
	size_t len;

	(void)state;
	for (len = 0; len < sizeof(told) - 1; len++)
		assert_false(state_read(span_of(told, len), M, &s));
	assert_span(s.cwd, "kept");
	/* no path, a NUL */
	assert_false(state_read(SPAN(M "\ntmp\n" M "\n" M), M, &s));
	assert_false(state_read(SPAN(M "\n/t\0p\n" M "\n" M), M, &s));
}

static void put__asks_in_the_shell_s_own_way(void **state)
{
	static const struct {
		struct state_way way;
		int channel;
		const char *redirect;
	} cases[] = {
		{ { .bash = true, .proc = true }, 173, ">&173;" },
		{ { .bash = true }, 173, ">&173;" },
		{ { .proc = true }, 173, ">|/proc/self/fd/173;" },
		{ { 0 }, 9, ">&9;" },
	};
	struct buf out = BUF_INIT(4096);
	struct span text;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		state_before_put(&out, &cases[i].way, M);
		text = buf_peek(&out);
		assert_int_equal(state_channel(&cases[i].way),
				 cases[i].channel);
		assert_non_null(memmem(text.ptr, text.len, cases[i].redirect,
				       strlen(cases[i].redirect)));
		/* one line: errors of the command name its own lines */
		assert_int_equal(span_find(text, '\n'), text.len);
		assert_int_equal(!!memmem(text.ptr, text.len, "export -pf", 10),
				 cases[i].way.bash);
		buf_clear(&out);
	}
	buf_fini(&out);
}

static void clean__writes_as_cd_does(void **state)
{
	static const struct {
		const char *given, *clean;
	} cases[] = {
		{ "/", "/" },
		{ "//", "/" },
		{ "/usr/", "/usr" },
		{ "/usr//lib/./x/", "/usr/lib/x" },
		{ "/etc/..", "/" },
		{ "/../..", "/" },
		{ "/a/b/../../c/..d/...", "/c/..d/..." },
	};
	char path[64];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		assert_true(span_copy(span_str(cases[i].given), path,
				      sizeof(path)));
		state_clean_cwd(path);
		assert_string_equal(path, cases[i].clean);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read__finds_directory_and_exports),
		cmocka_unit_test(read__takes_the_last_whole_one),
		cmocka_unit_test(read__refuses_every_truncation),
		cmocka_unit_test(put__asks_in_the_shell_s_own_way),
		cmocka_unit_test(clean__writes_as_cd_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
