/* SPDX-License-Identifier: Apache-2.0 */
/* test_env.c - the environment of programs and where it comes from */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/execd/process/env.h"

static void set__keeps_one_of_each_name(void **state)
{
	struct env *v = env_new_empty();
	const char *const *list;
	char name[16];
	int i;

	(void)state;
	for (i = 0; i < 500; i++) {
		(void)snprintf(name, sizeof(name), "N%d", i % 250);
		assert_false(env_set(v, span_str(name), SPAN("x")));
	}
	list = env_list(v);
	for (i = 0; list[i]; i++)
		;
	assert_int_equal(i, 250);
	for (i = 0; i < 250; i += 2) {
		(void)snprintf(name, sizeof(name), "N%d", i);
		env_unset(v, span_str(name));
		env_unset(v, span_str(name));
	}
	list = env_list(v);
	for (i = 0; list[i]; i++)
		assert_true(strstr(list[i], "=x"));
	assert_int_equal(i, 125);
	assert_null(env_get(v, "N0"));
	assert_string_equal(env_get(v, "N249"), "x");
	(void)env_free(v);
}

static void set__refuses_what_no_program_can_have(void **state)
{
	struct env *v = env_new_empty();

	(void)state;
	assert_int_equal(env_set(v, SPAN(""), SPAN("1")), -EINVAL);
	assert_int_equal(env_set(v, SPAN("A=B"), SPAN("1")), -EINVAL);
	assert_int_equal(env_set(v, SPAN("A\0"), SPAN("1")), -EINVAL);
	assert_int_equal(env_set(v, SPAN("A"), SPAN("1\0")), -EINVAL);
	assert_null(env_list(v)[0]);
	assert_null(env_get(v, "A"));
	(void)env_free(v);
}

static void expand__replaces_names(void **state)
{
	static const struct {
		const char *text, *expanded;
	} cases[] = {
		{ "", "" },
		{ "plain", "plain" },
		{ "$A/bin", "one/bin" },
		{ "${A}bin", "onebin" },
		{ "$Abin", "" },
		{ "$A$A$", "oneone$" },
		{ "${A", "${A" },
		{ "${}x$1$-", "${}x$1$-" },
		{ "$NONE.", "." },
	};
	struct env *v = env_new_empty();
	struct buf out = BUF_INIT(256);
	size_t i;

	(void)state;
	assert_false(env_set(v, SPAN("A"), SPAN("one")));
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		buf_clear(&out);
		assert_false(env_expand(v, span_str(cases[i].text), &out));
		assert_true(
			span_eq(buf_peek(&out), span_str(cases[i].expanded)));
	}
	out.max = 2;
	assert_true(env_expand(v, SPAN("$A"), &out) < 0);
	buf_fini(&out);
	(void)env_free(v);
}

static void file_put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_false(fclose(f));
}

static void new__reads_ours_and_the_file(void **state)
{
	char path[] = "/tmp/execd-env-XXXXXX";
	struct env *v;

	(void)state;
	assert_true(close(mkstemp(path)) == 0);
	file_put(path, "# comment\nPLAIN=a b\r\nBOTH=$OURS:${PLAIN}\n"
		       "export TOLD=\"x $OURS\"\nRAW='$OURS'\nEMPTY=\n"
		       "nothing here\n=none\nOURS=theirs");
	assert_false(setenv("EXECD_ENVS", path, 1));
	assert_false(setenv("EXECD_ACCESS_TOKEN", "secret", 1));
	assert_false(setenv("JUPYTER_TOKEN", "secret", 1));
	assert_false(setenv("OURS", "ours", 1));
	v = env_new();
	assert_null(env_get(v, "EXECD_ACCESS_TOKEN"));
	assert_string_equal(env_get(v, "EXECD_ENVS"), path);
	assert_null(env_get(v, "JUPYTER_TOKEN"));
	assert_string_equal(env_get(v, "PLAIN"), "a b");
	assert_string_equal(env_get(v, "BOTH"), "ours:a b");
	assert_string_equal(env_get(v, "TOLD"), "x ours");
	assert_string_equal(env_get(v, "RAW"), "$OURS");
	assert_string_equal(env_get(v, "EMPTY"), "");
	assert_string_equal(env_get(v, "OURS"), "theirs");
	(void)env_free(v);
	/* what is no file is no reason to wait or to fail */
	assert_false(unlink(path));
	assert_false(mkfifo(path, 0600));
	v = env_new();
	assert_string_equal(env_get(v, "OURS"), "ours");
	(void)env_free(v);
	assert_false(unlink(path));
	assert_false(unsetenv("EXECD_ENVS"));
}

/* Ten thousand names for a value of 100 KiB would be a gigabyte. */
static void take_text__stops_before_memory_does(void **state)
{
	struct env *v = env_new_empty();
	struct buf text = BUF_INIT(ENV_FILE_MAX);
	const char *const *at;
	size_t bytes = 0;
	unsigned i;

	(void)state;
	assert_false(buf_put_str(&text, "LARGE="));
	for (i = 0; i < 100 * 1024; i++)
		assert_false(buf_put_str(&text, "x"));
	for (i = 0; i < 10000; i++)
		assert_false(buf_putf(&text, "\nV%u=$LARGE", i));
	env_take_text(v, buf_peek(&text));
	for (at = env_list(v); *at; at++)
		bytes += strlen(*at) + 1;
	assert_true(bytes <= ENV_ENTRIES_MAX);
	assert_true(bytes > ENV_ENTRIES_MAX - 101 * 1024);
	assert_int_equal(strlen(env_get(v, "V0")), 100 * 1024);
	assert_null(env_get(v, "V9999"));
	(void)env_free(v);
	buf_fini(&text);
}

static void new__reads_quoted_values(void **state)
{
	static const struct {
		const char *name, *value;
	} rows[] = {
		{ "A", "two\nlines 'no" },
		{ "B", "it's" },
		{ "C", "a\tb\nc\\d\"e $OURS" },
		{ "D", "\"open" },
		{ "E", "'x'y" },
		{ "F", "last" },
	};
	char path[] = "/tmp/execd-env-XXXXXX";
	struct env *v;
	size_t i;

	(void)state;
	assert_true(close(mkstemp(path)) == 0);
	file_put(path, "A='two\nlines \"no'\nA=\"two\nlines 'no\"  \n"
		       "B=\"it's\"\nC=\"a\\tb\\nc\\\\d\\\"e \\$OURS\"\n"
		       "D=\"open\nE='x'y\nF='first'\n"
		       "export F = last\n");
	assert_false(setenv("EXECD_ENVS", path, 1));
	v = env_new();
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(env_get(v, rows[i].name), rows[i].value);
	(void)env_free(v);
	assert_false(unlink(path));
	assert_false(unsetenv("EXECD_ENVS"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set__keeps_one_of_each_name),
		cmocka_unit_test(set__refuses_what_no_program_can_have),
		cmocka_unit_test(expand__replaces_names),
		cmocka_unit_test(new__reads_ours_and_the_file),
		cmocka_unit_test(take_text__stops_before_memory_does),
		cmocka_unit_test(new__reads_quoted_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
