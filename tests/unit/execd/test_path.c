/* SPDX-License-Identifier: Apache-2.0 */
/* test_path.c - paths as clients write them, and where links lead */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/base/diag.h"
#include "src/execd/files/path.h"

static const struct {
	struct span text;
	int r;
	const char *path; /* or a part of the sentence */
} rows[] = {
	{ SPAN_INIT("/"), 0, "/" },
	{ SPAN_INIT("/a/b"), 0, "/a/b" },
	{ SPAN_INIT("//a//./b/"), 0, "/a/b" },
	{ SPAN_INIT("/a/../../b/.."), 0, "/" },
	{ SPAN_INIT("/a/.../..b"), 0, "/a/.../..b" },
	{ SPAN_INIT("rel"), 0, "/tmp/rel" },
	{ SPAN_INIT("./x/../.."), 0, "/" },
	{ SPAN_INIT("~"), 0, "/home/of" },
	{ SPAN_INIT("~/x"), 0, "/home/of/x" },
	{ SPAN_INIT("/~/x"), 0, "/~/x" },
	{ SPAN_INIT("a~"), 0, "/tmp/a~" },
	{ SPAN_INIT("$VAR/x"), 0, "/tmp/value/x" },
	{ SPAN_INIT("/${VAR}x"), 0, "/valuex" },
	{ SPAN_INIT("/$VAR$VAR"), 0, "/valuevalue" },
	{ SPAN_INIT("/$EMPTY/x"), 0, "/x" },
	{ SPAN_INIT("/a$"), 0, "/a$" },
	{ SPAN_INIT("/$-/${}/${"), 0, "/$-/${}/${" },
	{ SPAN_INIT("/$$VAR"), 0, "/$VAR" },
	{ SPAN_INIT("/\xff\n\""), 0, "/\xff\n\"" },
	{ SPAN_INIT(""), -EINVAL, "empty" },
	{ { "/a\0b", 4 }, -EINVAL, "NUL" },
	{ SPAN_INIT("/$UNSET"), -EINVAL, "\"UNSET\"" },
	{ SPAN_INIT("/${UN SET}"), -EINVAL, "not set" },
	{ SPAN_INIT("$EXECD_ACCESS_TOKEN"), -EINVAL, "not set" },
	{ SPAN_INIT("$JUPYTER_TOKEN"), -EINVAL, "not set" },
	{ SPAN_INIT("~nobody-has-this-name/x"), -EINVAL, "nobody-has-this" },
};

static void path__rows(void **state)
{
	char path[PATH_BYTES];
	struct diag d;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		d = (struct diag){ 0 };
		assert_int_equal(path_expand(rows[i].text, path, &d),
				 rows[i].r);
		if (!rows[i].r)
			assert_string_equal(path, rows[i].path);
		else
			assert_non_null(strstr(d.msg, rows[i].path));
	}
}

static void path__lengths(void **state)
{
	static char text[2 * PATH_BYTES], path[PATH_BYTES];
	struct diag d = { 0 };

	(void)state;
	memset(text, 'a', sizeof(text));
	text[0] = '/';
	assert_int_equal(path_expand(span_of(text, PATH_BYTES - 1), path, &d),
			 0);
	assert_int_equal(strlen(path), PATH_BYTES - 1);
	assert_int_equal(path_expand(span_of(text, PATH_BYTES), path, &d),
			 -ENAMETOOLONG);
	/* a variable may not make it longer either */
	memset(text, 'v', 3000);
	text[3000] = '\0';
	assert_int_equal(setenv("LONG", text, 1), 0);
	assert_int_equal(path_expand(SPAN("/$LONG$LONG"), path, &d),
			 -ENAMETOOLONG);
}

static void path__parts(void **state)
{
	char parent[PATH_BYTES];

	(void)state;
	assert_string_equal(path_base("/a/b"), "b");
	assert_string_equal(path_base("/"), "");
	path_parent("/a/b", parent);
	assert_string_equal(parent, "/a");
	path_parent("/a", parent);
	assert_string_equal(parent, "/");
	path_parent("/", parent);
	assert_string_equal(parent, "/");
}

static void follow(const char *name, const char *target, int r)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof(path), "%s", name);
	assert_int_equal(path_follow(path), r);
	if (!r)
		assert_string_equal(path, target);
}

static void path__links(void **state)
{
	char folder[] = "/tmp/test_path_XXXXXX", a[64], b[64], c[64], loop[64];

	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(a, sizeof(a), "%s/a", folder);
	(void)snprintf(b, sizeof(b), "%s/b", folder);
	(void)snprintf(c, sizeof(c), "%s/not-there", folder);
	(void)snprintf(loop, sizeof(loop), "%s/loop", folder);
	assert_int_equal(symlink("b", a), 0);
	assert_int_equal(symlink(c, b), 0);
	assert_int_equal(symlink("loop", loop), 0);
	follow(a, c, 0);
	follow(b, c, 0);
	follow(c, c, 0);
	follow(folder, folder, 0);
	follow(loop, NULL, -ELOOP);
	assert_int_equal(unlink(a) | unlink(b) | unlink(loop) | rmdir(folder),
			 0);
}

static int setup(void **state)
{
	(void)state;
	assert_int_equal(setenv("HOME", "/home/of", 1), 0);
	assert_int_equal(setenv("VAR", "value", 1), 0);
	assert_int_equal(setenv("EMPTY", "", 1), 0);
	assert_int_equal(setenv("EXECD_ACCESS_TOKEN", "secret", 1), 0);
	assert_int_equal(setenv("JUPYTER_TOKEN", "secret", 1), 0);
	return chdir("/tmp");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(path__rows),
		cmocka_unit_test(path__lengths),
		cmocka_unit_test(path__parts),
		cmocka_unit_test(path__links),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
