/* SPDX-License-Identifier: Apache-2.0 */
/* test_secret.c - secrets are bounded, wiped, and kept out of cores and forks
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/attrib.h"
#include "src/base/secret.h"

static bool is_zero(const char *p, size_t len)
{
	while (len--)
		if (*p++)
			return false;
	return true;
}

static void secret__holds_bytes(void **state)
{
	static const size_t lens[] = { 0,    1,	   39,	 40,	41,   64,
				       1000, 4096, 5000, 40000, 65536 };
	struct secret *s[ARRAY_LEN(lens)];
	size_t i, at;

	(void)state;
	for (i = 0; i < ARRAY_LEN(lens); i++) {
		assert_int_equal(secret_new(lens[i], &s[i]), 0);
		assert_int_equal(secret_len(s[i]), lens[i]);
		assert_true(is_zero(secret_open(s[i]).ptr, lens[i]));
		memset(secret_fill(s[i]), 'a' + (int)i, lens[i]);
	}
	for (i = 0; i < ARRAY_LEN(lens); i++) {
		for (at = 0; at < lens[i]; at++)
			assert_int_equal(secret_open(s[i]).ptr[at],
					 'a' + (int)i);
		assert_null(secret_free(s[i]));
	}
	assert_null(secret_free(NULL));
}

static void secret__dup(void **state)
{
	struct secret *s;

	(void)state;
	assert_int_equal(secret_dup(SPAN("tok\0en"), &s), 0);
	assert_true(span_eq(secret_open(s), SPAN("tok\0en")));
	secret_free(s);
	assert_int_equal(secret_dup(SPAN_NONE, &s), 0);
	assert_int_equal(secret_len(s), 0);
	secret_free(s);
}

static void secret__too_large(void **state)
{
	static char big[SECRET_MAX_BYTES + 1];
	struct secret *s = NULL;

	(void)state;
	assert_int_equal(secret_new(SECRET_MAX_BYTES + 1, &s), -E2BIG);
	assert_int_equal(secret_new(SIZE_MAX, &s), -E2BIG);
	assert_int_equal(secret_dup(span_of(big, sizeof(big)), &s), -E2BIG);
	assert_null(s);
}

/* The slab stays mapped, so what is left behind can be looked at. */
static void secret__wiped_on_free(void **state)
{
	struct secret *s, *again;
	const char *bytes;

	(void)state;
	assert_int_equal(secret_dup(SPAN("correct horse battery staple"), &s),
			 0);
	bytes = secret_open(s).ptr;
	secret_free(s);
	assert_true(is_zero(bytes, 28));
	/* and the slot is used again, zeroed */
	assert_int_equal(secret_new(28, &again), 0);
	assert_ptr_equal(again, s);
	assert_true(is_zero(secret_open(again).ptr, 28));
	secret_free(again);
}

static void secret__truncate_wipes_the_rest(void **state)
{
	struct secret *s;
	const char *bytes;

	(void)state;
	assert_int_equal(secret_dup(SPAN("token\n\n"), &s), 0);
	bytes = secret_open(s).ptr;
	secret_truncate(s, 7);
	assert_int_equal(secret_len(s), 7);
	secret_truncate(s, 5);
	assert_true(span_eq(secret_open(s), SPAN("token")));
	assert_true(is_zero(bytes + 5, 2));
	secret_truncate(s, 0);
	assert_true(is_zero(bytes, 7));
	secret_free(s);
}

static void secret__eq_and_wipe(void **state)
{
	char bytes[4] = "abc";

	(void)state;
	assert_true(secret_eq(SPAN("abc"), SPAN("abc")));
	assert_false(secret_eq(SPAN("abc"), SPAN("abd")));
	assert_false(secret_eq(SPAN("abc"), SPAN("xbc")));
	assert_false(secret_eq(SPAN("abc"), SPAN("ab")));
	assert_true(secret_eq(SPAN_NONE, SPAN("")));
	secret_wipe(bytes, 3);
	assert_true(is_zero(bytes, 4));
	secret_wipe(NULL, 0);
}

/* Does the smaps line "from-to perms ..." name the mapping that holds p? */
static bool line_holds(const char *line, const void *p)
{
	unsigned long from, to, at = (unsigned long)p;
	char *end;

	from = strtoul(line, &end, 16);
	if (*end != '-')
		return false;
	to = strtoul(end + 1, NULL, 16);
	return from <= at && at < to;
}

/* The "VmFlags:" line of the mapping that holds p. */
static void find_flags(const void *p, char *dst, size_t size)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	bool inside = false;
	char line[512];

	assert_non_null(f);
	dst[0] = '\0';
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, "VmFlags:", 8) == 0 && inside) {
			(void)snprintf(dst, size, "%s", line);
			break;
		}
		inside |= line_holds(line, p);
	}
	fclose(f);
}

static void secret__pages_are_not_dumped(void **state)
{
	struct secret *s;
	char flags[512];

	(void)state;
	assert_int_equal(secret_new(10, &s), 0);
	find_flags(secret_open(s).ptr, flags, sizeof(flags));
	assert_non_null(strstr(flags, " dd")); /* do not dump */
	assert_non_null(strstr(flags, " wf")); /* wipe on fork */
	secret_free(s);
}

static void secret__a_child_sees_nothing(void **state)
{
	struct secret *s, *mine;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(secret_dup(SPAN("only the parent"), &s), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		const char *bytes = secret_fill(s);

		if (!is_zero(bytes, 15) || secret_len(s))
			_exit(1);
		secret_free(s);
		if (secret_dup(SPAN("the child's own"), &mine) ||
		    !span_eq(secret_open(mine), SPAN("the child's own")))
			_exit(2);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_true(span_eq(secret_open(s), SPAN("only the parent")));
	secret_free(s);
}

static void *make_and_free(void *seed)
{
	unsigned n = *(unsigned *)seed, i, len, at;
	struct secret *s;

	for (i = 0; i < 3000; i++) {
		n = n * 1103515245 + 12345;
		len = n >> 16 & 0x1ff;
		if (secret_new(len, &s))
			return seed;
		for (at = 0; at < len; at++)
			if (secret_fill(s)[at])
				return seed;
		memset(secret_fill(s), 0xaa, len);
		secret_free(s);
	}
	return NULL;
}

static void secret__threads(void **state)
{
	unsigned seeds[4] = { 1, 2, 3, 4 };
	pthread_t threads[4];
	void *failed;
	int i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL,
						make_and_free, &seeds[i]),
				 0);
	for (i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
}

static void secret__process(void **state)
{
	struct rlimit limit;
	int status;
	pid_t pid;

	(void)state;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		secret_process_init();
		if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0 ||
		    getrlimit(RLIMIT_CORE, &limit) != 0 || limit.rlim_max)
			_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(secret__holds_bytes),
		cmocka_unit_test(secret__dup),
		cmocka_unit_test(secret__too_large),
		cmocka_unit_test(secret__wiped_on_free),
		cmocka_unit_test(secret__truncate_wipes_the_rest),
		cmocka_unit_test(secret__eq_and_wipe),
		cmocka_unit_test(secret__pages_are_not_dumped),
		cmocka_unit_test(secret__a_child_sees_nothing),
		cmocka_unit_test(secret__threads),
		cmocka_unit_test(secret__process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
