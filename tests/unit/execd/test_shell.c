/* SPDX-License-Identifier: Apache-2.0 */
/* test_shell.c - texts of any length as arguments, and what a shell makes of
 * them */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/execd/process/shell.h"

enum { ARG_LIMIT = 128 * 1024 };

/* Runs it; its stdout. */
static void run(const struct shell_args *a, struct buf *out)
{
	const char *const *argv = shell_args_list(a);
	int ends[2], status;
	pid_t pid;
	char *room;
	ssize_t n;

	assert_false(pipe(ends));
	pid = fork();
	if (!pid) {
		(void)dup2(ends[1], 1);
		(void)close(ends[0]);
		(void)close(ends[1]);
		(void)execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	(void)close(ends[1]);
	do {
		assert_false(buf_reserve(out, 65536, &room));
		n = read(ends[0], room, 65536);
		buf_commit(out, (size_t)MAX(n, 0));
	} while (n > 0);
	(void)close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void args__of_a_short_text_are_the_text(void **state)
{
	struct shell_args *a = shell_args_new(
		"/bin/sh", &(struct shell_texts){ .text = SPAN("echo $0 $#") });
	const char *const *argv = shell_args_list(a);

	(void)state;
	assert_string_equal(argv[0], "/bin/sh");
	assert_string_equal(argv[1], "-c");
	assert_string_equal(argv[2], "echo $0 $#");
	assert_null(argv[3]);
	(void)shell_args_free(a);
}

/* A text of about `len` bytes, full of sequences that must not be torn, which
 * prints its own length. */
static char *long_text(size_t len, size_t shift)
{
	char *text = malloc(len + 64);
	size_t at = 0;

	assert_non_null(text);
	at += (size_t)sprintf(text, "x='%.*s", (int)shift, "....");
	while (at < len) {
		memcpy(text + at, "\xe2\x82\xac", 3);
		at += 3;
	}
	(void)sprintf(text + at, "'; printf %%s \"$x\"");
	return text;
}

static void args__of_a_long_text_run_all_of_it(void **state)
{
	static const char *const shells[] = { "/bin/bash", "/bin/dash" };
	const size_t lens[] = { ARG_LIMIT - 30, ARG_LIMIT, 300000, 1000000 };
	struct buf out = BUF_INIT(4 << 20);
	struct shell_args *a;
	size_t i, j, shift;
	char *text;

	(void)state;
	for (i = 0; i < ARRAY_LEN(shells); i++)
		for (j = 0; j < ARRAY_LEN(lens); j++)
			for (shift = 0; shift < 3; shift++) {
				text = long_text(lens[j], shift);
				a = shell_args_new(
					shells[i],
					&(struct shell_texts){
						.text = span_str(text) });
				buf_clear(&out);
				run(a, &out);
				/* between the quotes */
				assert_true(span_eq(
					buf_peek(&out),
					span_of(text + 3,
						strlen(text) - 3 -
							strlen("'; printf %s "
							       "\"$x\""))));
				(void)shell_args_free(a);
				free(text);
			}
	buf_fini(&out);
}

static void args__run_all_four_texts_in_order(void **state)
{
	struct shell_args *a = shell_args_new(
		"/bin/sh", &(struct shell_texts){
				   .first = SPAN("echo first; nonsense-x"),
				   .before = SPAN("echo before; "),
				   .text = SPAN("echo \"text [$1] $#\"\nfalse"),
				   .after = SPAN("\necho \"after $?\""),
			   });
	struct buf out = BUF_INIT(1 << 20);

	(void)state;
	run(a, &out);
	assert_true(span_eq(buf_peek(&out), SPAN("first\nbefore\ntext [] 0\n"
						 "after 1\n")));
	buf_fini(&out);
	(void)shell_args_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(args__of_a_short_text_are_the_text),
		cmocka_unit_test(args__of_a_long_text_run_all_of_it),
		cmocka_unit_test(args__run_all_four_texts_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
