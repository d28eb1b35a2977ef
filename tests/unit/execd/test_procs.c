/* SPDX-License-Identifier: Apache-2.0 */
/* test_procs.c - a line of /proc/PID/stat, names that try to be one, our own */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/execd/process/procs.h"

#define MIDDLE                                                        \
	"34816 77 4194304 99 0 0 0 0 0 0 0 20 0 1 0 2455917 3133440 " \
	"393 18446744073709551615 1 2 3 0 0 0 0 "

static void line__what_it_says(void **state)
{
	static const char *const lines[] = {
		"77 (cat) S 5 77 60 " MIDDLE "4 66562 0 0 0 17 1\n",
		"77 (a) R 1 2 3 ()) S 5 77 60 " MIDDLE "4 66562 0\n",
		"77 (\n) S 5 77 60 " MIDDLE "4 66562 ",
	};
	struct proc_stat p;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		assert_true(proc_stat_parse(lines[i], &p));
		assert_int_equal(p.state, 'S');
		assert_int_equal(p.group, 77);
		assert_int_equal(p.session, 60);
		assert_int_equal(p.ignored, 4);
		assert_int_equal(p.caught, 66562);
	}
}

static void line__cut_short_or_none(void **state)
{
	static const char *const bad[] = {
		"",
		"77 (cat",
		"77 (cat)",
		"77 (cat) S",
		"77 (cat) S 5 x 60 " MIDDLE "4 66562 0\n",
		"77 (cat) S 5 77 60 " MIDDLE "4",
	};
	struct proc_stat p;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(proc_stat_parse(bad[i], &p));
}

static unsigned note_self(void *ctx, pid_t pid, const struct proc_stat *p)
{
	if (pid == getpid())
		*(struct proc_stat *)ctx = *p;
	return 1;
}

static void walk__finds_this_process(void **state)
{
	struct proc_stat p = { 0 };

	(void)state;
	assert_true(signal(SIGUSR2, SIG_IGN) != SIG_ERR);
	assert_true(procs_each(note_self, &p) > 0);
	assert_int_equal(p.state, 'R');
	assert_int_equal(p.group, getpgrp());
	assert_int_equal(p.session, getsid(0));
	assert_true(p.ignored & (1U << (SIGUSR2 - 1)));
}

static void newest__is_this_or_younger(void **state)
{
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(0);
	assert_true(pid > 0);
	assert_true(procs_newest() >= pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line__what_it_says),
		cmocka_unit_test(line__cut_short_or_none),
		cmocka_unit_test(walk__finds_this_process),
		cmocka_unit_test(newest__is_this_or_younger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
