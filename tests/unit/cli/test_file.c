/* SPDX-License-Identifier: Apache-2.0 */
/* test_file.c - whole files, their bounds, and values that are secrets */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/base/buf.h"
#include "src/base/secret.h"
#include "src/cli/body.h"
#include "src/cli/proc.h"

static char folder[] = "/tmp/sallyport-test-XXXXXX";
static char path[64];

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/file", folder);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	(void)unlink(path);
	return rmdir(folder);
}

static void file__round_trip_and_bound(void **state)
{
	struct buf all CLEANUP(buf_fini) = BUF_INIT(8);
	struct stat st;

	(void)state;
	assert_int_equal(file_write(path, 0600, SPAN("12345678")), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(file_read(path, &all), 0); /* exactly the bound */
	assert_true(span_eq(buf_peek(&all), SPAN("12345678")));
	buf_clear(&all);
	assert_int_equal(file_write(path, 0644, SPAN("123456789")), 0);
	assert_int_equal(file_read(path, &all), -EFBIG);
	assert_int_equal(file_read("/nonexistent", &all), -ENOENT);
}

static void value__one_line_break_is_cut(void **state)
{
	static const struct {
		struct span text, value;
	} cases[] = {
		{ SPAN_INIT("token\n"), SPAN_INIT("token") },
		{ SPAN_INIT("token\r\n"), SPAN_INIT("token") },
		{ SPAN_INIT("token"), SPAN_INIT("token") },
		{ SPAN_INIT(" a b \n\n"), SPAN_INIT(" a b \n") },
	};
	char from[80];
	struct secret *s;
	unsigned i;

	(void)state;
	(void)snprintf(from, sizeof(from), "@%s", path);
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(file_write(path, 0600, cases[i].text), 0);
		assert_int_equal(value_read(from, &s), 0);
		assert_true(span_eq(secret_open(s), cases[i].value));
		s = secret_free(s);
	}
	assert_int_equal(file_write(path, 0600, SPAN("\n")), 0);
	assert_true(value_read(from, &s) < 0);	  /* empty */
	assert_true(value_read("token", &s) < 0); /* on the command line */
	assert_true(value_read("@/nonexistent", &s) < 0);
}

static void value__headers_cannot_carry_all(void **state)
{
	static const struct {
		struct span value;
		bool sound;
	} cases[] = {
		{ SPAN_INIT("Aa0 ~!\t"), true },
		{ SPAN_INIT("a\nb"), false },
		{ SPAN_INIT("a\rb"), false },
		{ SPAN_INIT("a\0b"), false },
		{ SPAN_INIT("a\x7f"), false },
		{ SPAN_INIT("\xc3\xa4"), false },
	};
	struct secret *s;
	unsigned i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(secret_dup(cases[i].value, &s), 0);
		assert_int_equal(body_value_is_sound(SPAN("n"), s),
				 cases[i].sound);
		s = secret_free(s);
	}
}

static void folder__deep(void **state)
{
	char deep[96];

	(void)state;
	(void)snprintf(deep, sizeof(deep), "%s/a/b", folder);
	assert_int_equal(folder_make(deep, 0700), 0);
	assert_int_equal(folder_make(deep, 0700), 0);
	assert_int_equal(rmdir(deep), 0);
	(void)snprintf(deep, sizeof(deep), "%s/a", folder);
	assert_int_equal(rmdir(deep), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file__round_trip_and_bound),
		cmocka_unit_test(value__one_line_break_is_cut),
		cmocka_unit_test(value__headers_cannot_carry_all),
		cmocka_unit_test(folder__deep),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
