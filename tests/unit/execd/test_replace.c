/* SPDX-License-Identifier: Apache-2.0 */
/* test_replace.c - a file that changes while it is rewritten, and odd texts */

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/execd/files/fault.h"
#include "src/execd/files/replace.h"
#include "src/execd/whole.h"
#include "src/httpd/httpd.h"

enum { LARGE = 3 * 1024 * 1024 };

static char folder[] = "/tmp/test_replace_XXXXXX", path[64];
static struct buf text = BUF_INIT(16 * 1024 * 1024);

static void put(struct span bytes)
{
	assert_int_equal(whole_write(path, 0640, bytes), 0);
}

static struct span get(void)
{
	buf_clear(&text);
	assert_int_equal(whole_read(path, &text), 0);
	return buf_peek(&text);
}

static int setup(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/file", folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	buf_fini(&text);
	(void)unlink(path);
	return rmdir(folder); /* nothing else is in it */
}

static const struct {
	struct span before, old, new, after;
	uint64_t count;
} rows[] = {
	{ SPAN_INIT(""), SPAN_INIT("a"), SPAN_INIT("b"), SPAN_INIT(""), 0 },
	{ SPAN_INIT("a"), SPAN_INIT("a"), SPAN_INIT(""), SPAN_INIT(""), 1 },
	{ SPAN_INIT("aaaaa"), SPAN_INIT("aa"), SPAN_INIT("b"), SPAN_INIT("bba"),
	  2 },
	{ SPAN_INIT("abcab"), SPAN_INIT("abc"), SPAN_INIT("abcabc"),
	  SPAN_INIT("abcabcab"), 1 },
	{ SPAN_INIT("ab"), SPAN_INIT("abc"), SPAN_INIT("x"), SPAN_INIT("ab"),
	  0 },
	{ SPAN_INIT("\0a\0"), SPAN_INIT("\0"), SPAN_INIT("\xff\n"),
	  SPAN_INIT("\xff\n"
		    "a\xff\n"),
	  2 },
};

static void replace__rows(void **state)
{
	struct replacement *x;
	struct fault f;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		put(rows[i].before);
		f = (struct fault){ 0 };
		x = replacement_new(path, rows[i].old, rows[i].new);
		while (replacement_step(x, &f))
			;
		assert_false(fault_is_set(&f));
		assert_int_equal(replacement_count(x), rows[i].count);
		x = replacement_free(x);
		assert_true(span_eq(get(), rows[i].after));
	}
}

/* Whenever somebody else writes into it, it stays what he made of it. */
static void replace__changed_meanwhile(void **state)
{
	char *large = malloc(LARGE);
	struct replacement *x;
	struct fault f;
	unsigned steps, i;
	bool more = true;
	int fd;

	(void)state;
	assert_non_null(large);
	memset(large, 'x', LARGE);
	memcpy(large + LARGE - 100, "needle", 6);
	for (steps = 1; more; steps++) {
		put(span_of(large, LARGE));
		f = (struct fault){ 0 };
		x = replacement_new(path, SPAN("needle"), SPAN("pin"));
		for (i = 0; i < steps && more; i++)
			more = replacement_step(x, &f);
		fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
		assert_int_equal(write(fd, "more", 4), 4);
		assert_int_equal(close(fd), 0);
		while (more && replacement_step(x, &f))
			;
		assert_int_equal(f.status, more ? 500 : 0);
		x = replacement_free(x);
		assert_int_equal(get().len, more ? LARGE + 4 : LARGE + 1);
	}
	assert_true(steps > 10);
	free(large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replace__rows),
		cmocka_unit_test(replace__changed_meanwhile),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
