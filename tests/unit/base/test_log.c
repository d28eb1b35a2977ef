/* SPDX-License-Identifier: Apache-2.0 */
/* test_log.c - levels, the shape of a line, and escaping foreign bytes */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/base/attrib.h"
#include "src/base/err.h"
#include "src/base/log.h"

static void log__levels(void **state)
{
	enum log_level level = LOG_WARN;

	(void)state;
	assert_true(log_level_parse(SPAN("error"), &level));
	assert_int_equal(level, LOG_ERROR);
	assert_true(log_level_parse(SPAN("debug"), &level));
	assert_int_equal(level, LOG_DEBUG);
	assert_false(log_level_parse(SPAN("Debug"), &level));
	assert_false(log_level_parse(SPAN("debu"), &level));
	assert_false(log_level_parse(SPAN(""), &level));
	assert_int_equal(level, LOG_DEBUG);

	log_set_level(LOG_WARN);
	assert_true(log_enabled(LOG_ERROR));
	assert_true(log_enabled(LOG_WARN));
	assert_false(log_enabled(LOG_INFO));
	log_set_level(LOG_INFO);
}

static void log__escape(void **state)
{
	static const struct {
		struct span bytes;
		size_t size;
		const char *text;
	} rows[] = {
		{ SPAN_INIT(""), 64, "" },
		{ SPAN_INIT("plain ~!"), 64, "plain ~!" },
		{ SPAN_INIT("a\nb\0c\x1b[31m"), 64, "a\\x0ab\\x00c\\x1b[31m" },
		{ SPAN_INIT("\\x41"), 64, "\\x5cx41" },
		{ SPAN_INIT("\x7f\x80\xff"), 64, "\\x7f\\x80\\xff" },
		{ SPAN_INIT("0123456789"), 10, "012..." },
		{ SPAN_INIT("\n\n\n"), 12, "\\x0a\\x0a..." },
		{ SPAN_INIT("abc"), 4, "..." },
		{ SPAN_INIT("abc"), 2, "." },
		{ SPAN_INIT("abc"), 1, "" },
		{ SPAN_INIT(""), 1, "" },
	};
	char *dst;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		dst = malloc(rows[i].size); /* exact, for ASan */
		assert_non_null(dst);
		assert_ptr_equal(log_escape(rows[i].bytes, dst, rows[i].size),
				 dst);
		assert_string_equal(dst, rows[i].text);
		free(dst);
	}
	assert_null(log_escape(SPAN(""), NULL, 0));
	assert_null(log_escape(SPAN("a"), NULL, 0));
}

/* Whatever the bytes and the room: printable, terminated, in bounds. */
static void log__escape_is_total(void **state)
{
	char bytes[40], *dst;
	size_t len, size, i;
	int round;

	(void)state;
	srandom(6);
	for (round = 0; round < 20000; round++) {
		len = (size_t)random() % sizeof(bytes);
		size = 1 + (size_t)random() % 200;
		for (i = 0; i < len; i++)
			bytes[i] = (char)random();
		dst = malloc(size);
		assert_non_null(dst);
		log_escape(span_of(bytes, len), dst, size);
		assert_true(strlen(dst) < size);
		for (i = 0; dst[i]; i++)
			assert_in_range(dst[i], 0x20, 0x7e);
		free(dst);
	}
}

/* What log_line() writes, into dst. */
static void capture(char *dst, size_t size, const char *sentence)
{
	int saved = dup(STDERR_FILENO), ends[2];
	ssize_t len;

	assert_true(saved >= 0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	log_warn("%s", sentence);
	log_debug("not this one");
	assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
	close(saved);
	close(ends[1]);
	len = read(ends[0], dst, size - 1);
	assert_true(len > 0);
	dst[len] = '\0';
	close(ends[0]);
}

static void log__line(void **state)
{
	static char line[4096], longer[4096];

	(void)state;
	log_init("gateway", LOG_INFO);
	capture(line, sizeof(line), "listener was opened");
	/* "2026-11-29T21:42:13.123Z gateway warn ..." */
	assert_int_equal(line[10], 'T');
	assert_string_equal(line + 24, " gateway warn listener was opened\n");

	/* a line too long is cut, and still one line */
	memset(longer, 'x', sizeof(longer) - 1);
	capture(line, sizeof(line), longer);
	assert_true(strlen(line) < 2048);
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
}

static void err__texts(void **state)
{
	(void)state;
	assert_string_equal(err_text(-2), "No such file or directory");
	assert_string_equal(err_text(2), "No such file or directory");
	assert_string_equal(err_text(-123456), "unknown error");
	assert_int_equal(err_origin(-5), -5);
	assert_int_equal(err_trace(3), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log__levels),
		cmocka_unit_test(log__escape),
		cmocka_unit_test(log__escape_is_total),
		cmocka_unit_test(log__line),
		cmocka_unit_test(err__texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
