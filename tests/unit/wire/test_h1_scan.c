/* SPDX-License-Identifier: Apache-2.0 */
/* test_h1_scan.c - the end of a head, the same for every splitting */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "src/base/attrib.h"
#include "src/wire/h1.h"

enum { LIMIT = 4096 };

/* Feeds in steps of 1..max_step bytes; random when that is over 1. Each feed
 * is an exact heap copy, so that ASan sees one byte too far. */
static int scan_in_steps(struct span bytes, size_t limit, size_t max_step)
{
	struct h1_scan scan = { 0 };
	size_t len = 0;
	char *copy;
	int r = 0;

	while (!r && len < bytes.len) {
		len += max_step > 1 ? 1 + (size_t)random() % max_step : 1;
		len = MIN(len, bytes.len);
		copy = malloc(len);
		assert_non_null(copy);
		memcpy(copy, bytes.ptr, len);
		r = h1_scan(&scan, span_of(copy, len), limit);
		free(copy);
	}
	return r;
}

static void check_every_splitting(struct span bytes, size_t limit, int expected)
{
	int i;

	assert_int_equal(scan_in_steps(bytes, limit, 1), expected);
	assert_int_equal(scan_in_steps(bytes, limit, bytes.len), expected);
	for (i = 0; i < 20; i++)
		assert_int_equal(scan_in_steps(bytes, limit, 12), expected);
}

static const struct {
	struct span bytes;
	int length;
} good[] = {
	{ SPAN_INIT("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 27 },
	{ SPAN_INIT("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET"), 27 },
	{ SPAN_INIT("GET / HTTP/1.1\r\nHost: a\r\n\r\n\0\n\r"), 27 },
	{ SPAN_INIT("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 29 },
	{ SPAN_INIT("HTTP/1.1 200 OK\r\n\r\n"), 19 },
	{ SPAN_INIT("x\r\n\r\n"), 5 },
	{ SPAN_INIT("a\tb \xff\r\nc:\td\r\n\r\n"), 15 },
};

static void scan__finds_the_end(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good); i++)
		check_every_splitting(good[i].bytes, LIMIT, good[i].length);
}

static void scan__every_truncation_needs_more(void **state)
{
	struct h1_scan scan;
	size_t i, len;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good); i++) {
		for (len = 0; len < (size_t)good[i].length; len++) {
			scan = (struct h1_scan){ 0 };
			assert_int_equal(
				h1_scan(&scan, span_of(good[i].bytes.ptr, len),
					LIMIT),
				0);
		}
	}
}

static void scan__limit_is_exact(void **state)
{
	size_t i, len;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good); i++) {
		len = (size_t)good[i].length;
		check_every_splitting(good[i].bytes, len, (int)len);
		check_every_splitting(good[i].bytes, len + 1, (int)len);
		check_every_splitting(good[i].bytes, len - 1, -H1_E_TOO_LARGE);
		check_every_splitting(good[i].bytes, len - 2, -H1_E_TOO_LARGE);
		check_every_splitting(good[i].bytes, 1, -H1_E_TOO_LARGE);
		check_every_splitting(good[i].bytes, 0, -H1_E_TOO_LARGE);
	}
}

static void scan__refuses_at_once(void **state)
{
	static const struct {
		struct span bytes;
		enum h1_error error;
	} rows[] = {
		{ SPAN_INIT("GET / HTTP/1.1\nHost: a\n\n"), H1_E_BARE_LF },
		{ SPAN_INIT("\nGET / HTTP/1.1\r\n\r\n"), H1_E_BARE_LF },
		{ SPAN_INIT("GET / HTTP/1.1\r\n\n"), H1_E_BARE_LF },
		{ SPAN_INIT("GET / HTTP/1.1\rHost: a\r\n\r\n"), H1_E_BARE_CR },
		{ SPAN_INIT("GET / HTTP/1.1\r\r\n\r\n"), H1_E_BARE_CR },
		{ SPAN_INIT("GET / HTTP/1.1\r\n\r\r\n"), H1_E_BARE_CR },
		{ SPAN_INIT("a\r\nb: c\rd\r\n\r\n"), H1_E_BARE_CR },
		{ SPAN_INIT("a\r\nb: c\0d\r\n\r\n"), H1_E_NUL },
		{ SPAN_INIT("a\r\nb: c\x01\r\n\r\n"), H1_E_CONTROL },
		{ SPAN_INIT("a\r\nb: c\x7f\r\n\r\n"), H1_E_CONTROL },
		{ SPAN_INIT("a\r\nb: \x0b"
			    "c\r\n\r\n"),
		  H1_E_CONTROL },
		{ SPAN_INIT("\r\n\r\nGET / HTTP/1.1\r\n"), H1_E_START_LINE },
		{ SPAN_INIT("\x16\x03\x01\x02\x00\x01\x00"), H1_E_CONTROL },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++)
		check_every_splitting(rows[i].bytes, LIMIT,
				      -(int)rows[i].error);
}

static void scan__bounds_the_lines(void **state)
{
	char head[2048];
	size_t len, i;

	(void)state;
	len = (size_t)snprintf(head, sizeof(head), "\r\nstart\r\n");
	for (i = 0; i < HEADERS_MAX; i++)
		len += (size_t)snprintf(head + len, sizeof(head) - len,
					"a:b\r\n");
	memcpy(head + len, "\r\n", 2);
	check_every_splitting(span_of(head, len + 2), LIMIT, (int)len + 2);
	memcpy(head + len, "a:b\r\n\r\n", 7);
	check_every_splitting(span_of(head, len + 7), LIMIT,
			      -H1_E_TOO_MANY_FIELDS);
}

static void error__texts_are_total(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < H1_ERROR_NUM; i++)
		assert_true(strlen(h1_error_text((enum h1_error)i)) > 4);
	assert_string_equal(h1_error_text(H1_ERROR_NUM), "unknown error");
}

static void sniff__tells_http_from_other_text(void **state)
{
	static const struct {
		const char *bytes;
		int expected;
	} cases[] = {
		{ "GET / HTTP/1.1\r\n", 1 },
		{ "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 1 },
		{ "get / HTTP/1.0\n", 1 },
		{ "X HTTP/9.9\r\n", 1 }, /* refused later, with a reason */
		{ "GET / HTTP/1.1 \r\n", 1 },
		{ "", 0 },
		{ "\r\n", 0 },
		{ "G", 0 },
		{ "GET / HTTP/1.1", 0 },
		{ "GET / HTTP/1.1\r", 0 },
		{ "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", -1 },
		{ "GET /\r\n", -1 },
		{ "HTTP/1.1\r\n", -1 },
		{ "GET / http/1.1\r\n", -1 },
		{ "\x16\x03\x01", -1 },
		{ "AMQP\x01\x01", -1 },
		{ "(x", -1 },
		{ " GET / HTTP/1.1\r\n", -1 },
		{ "EHLO me\r\nGET / HTTP/1.1\r\n", -1 },
	};
	char line[20000];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(h1_sniff(span_str(cases[i].bytes)),
				 cases[i].expected);
	assert_int_equal(h1_sniff(SPAN("AMQP\0\0\x09\x01")), -1);
	memset(line, 'a', sizeof(line));
	assert_int_equal(h1_sniff(span_of(line, 16000)), 0);
	assert_int_equal(h1_sniff(span_of(line, sizeof(line))), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scan__finds_the_end),
		cmocka_unit_test(scan__every_truncation_needs_more),
		cmocka_unit_test(scan__limit_is_exact),
		cmocka_unit_test(scan__refuses_at_once),
		cmocka_unit_test(scan__bounds_the_lines),
		cmocka_unit_test(sniff__tells_http_from_other_text),
		cmocka_unit_test(error__texts_are_total),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
