/* SPDX-License-Identifier: Apache-2.0 */
/* test_run_secrets.c - credentials of a run, and what stays out of its
 * environment
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/base/secret.h"
#include "src/cli/proc.h"
#include "src/cli/run.h"

static char path[] = "/tmp/sallyport-test-XXXXXX";

static int set_up(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(path);
}

static void read_one(struct run_secrets *s, const char *value)
{
	struct opt_list words = { .count = 1 };
	char word[64];

	(void)snprintf(word, sizeof(word), "name=@%s", path);
	words.items[0] = word;
	assert_int_equal(file_write(path, 0600, span_str(value)), 0);
	assert_int_equal(run_secrets_read(s, &words), 0);
	assert_true(span_eq(secret_open(s->items[0].value), span_str(value)));
	assert_string_equal(s->items[0].path, path);
}

static void environment__without_values(void **state)
{
	static char plain[] = "PATH=/bin", whole[] = "TOKEN=abcdefgh1",
		    part[] = "HEADER=Bearer abcdefgh1;",
		    empty[] = "EMPTY=", named[] = "abcdefgh1=x";
	static char *from[] = { plain, whole, part, empty, named, NULL };
	struct run_secrets s = { 0 };
	char **all;

	(void)state;
	read_one(&s, "abcdefgh1");
	all = run_secrets_environment(&s, from);
	assert_ptr_equal(all[0], plain);
	assert_ptr_equal(all[1], empty);
	assert_ptr_equal(all[2], named); /* a name is no value */
	assert_null(all[3]);
	free(all);
	run_secrets_wipe(&s);
}

static void environment__short_values_as_a_whole(void **state)
{
	static char plain[] = "PATH=/bin", whole[] = "X=bin";
	static char *from[] = { plain, whole, NULL };
	struct run_secrets s = { 0 };
	char **all;

	(void)state;
	read_one(&s, "bin");
	all = run_secrets_environment(&s, from);
	assert_ptr_equal(all[0], plain);
	assert_null(all[1]);
	free(all);
	run_secrets_wipe(&s);
}

static void secrets__refused(void **state)
{
	static const char *const words[] = { "name", "=@/etc/hostname",
					     "name=", "name=value",
					     "name=@/nonexistent" };
	struct run_secrets s;
	struct opt_list list = { .count = 1 };
	unsigned i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(words); i++) {
		s = (struct run_secrets){ 0 };
		list.items[0] = words[i];
		assert_true(run_secrets_read(&s, &list) < 0);
		run_secrets_wipe(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(environment__without_values),
		cmocka_unit_test(environment__short_values_as_a_whole),
		cmocka_unit_test(secrets__refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
