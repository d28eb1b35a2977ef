/* SPDX-License-Identifier: Apache-2.0 */
/* test_frame.c - frames of interpreters: whole, cut, split, and none */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/execd/code/frame.h"

static const struct {
	const char *text;
	enum frame_word word;
	uint64_t run;
	const char *payload;
} good[] = {
	{ "ready 0 13\nPython 3.11.2", FRAME_READY, 0, "Python 3.11.2" },
	{ "begin 1 0\n", FRAME_BEGIN, 1, "" },
	{ "count 1 2\n42", FRAME_COUNT, 1, "42" },
	{ "result 7 2\n{}", FRAME_RESULT, 7, "{}" },
	{ "show 7 3\n\n\n\n", FRAME_SHOW, 7, "\n\n\n" },
	{ "error 18446744073709551615 1\nx", FRAME_ERROR, UINT64_MAX, "x" },
	{ "exit 3 3\n130", FRAME_EXIT, 3, "130" },
	{ "done 4 0\n", FRAME_DONE, 4, "" },
};

static void frame__each_word(void **state)
{
	struct frame f;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good); i++) {
		struct span text = span_str(good[i].text);

		assert_int_equal(frame_parse(text, &f), (ssize_t)text.len);
		assert_int_equal(f.word, good[i].word);
		assert_true(f.run == good[i].run);
		assert_true(span_eq(f.payload, span_str(good[i].payload)));
	}
}

static void frame__every_cut_asks_for_more(void **state)
{
	struct frame f = { .run = 99 };
	size_t i, n;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good); i++)
		for (n = 0; n < strlen(good[i].text); n++)
			assert_int_equal(
				frame_parse(span_of(good[i].text, n), &f), 0);
	assert_true(f.run == 99);
}

static void frame__what_follows_is_left(void **state)
{
	struct span two = SPAN("count 1 1\n5done 1 0\n");
	struct frame f;
	ssize_t n;

	(void)state;
	n = frame_parse(two, &f);
	assert_int_equal(n, 11);
	assert_int_equal(frame_parse(span_from(two, (size_t)n), &f), 9);
	assert_int_equal(f.word, FRAME_DONE);
}

static void frame__refuses(void **state)
{
	static const char *const bad[] = {
		"\n",
		"done\n",
		"done 1\n",
		"done  0\n",
		"done 1 \n",
		"done 1 0 \n",
		" done 1 0\n",
		"done 1 0 0\n",
		"Done 1 0\n",
		"done -1 0\n",
		"done 1 -1\n",
		"done 0x1 0\n",
		"done 1 0\r\n",
		"none 1 0\n",
		" 1 0\n",
		"done 18446744073709551616 0\n",
		"result 1 18446744073709551616\n",
	};
	struct frame f;
	char text[64];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(frame_parse(span_str(bad[i]), &f), -EPROTO);
	assert_int_equal(frame_parse(span_of("\0\0\0\n", 4), &f), -EPROTO);

	(void)snprintf(text, sizeof(text), "result 1 %d\n", FRAME_PAYLOAD_MAX);
	assert_int_equal(frame_parse(span_str(text), &f), 0);
	(void)snprintf(text, sizeof(text), "result 1 %d\n",
		       FRAME_PAYLOAD_MAX + 1);
	assert_int_equal(frame_parse(span_str(text), &f), -EPROTO);
}

static void frame__a_line_without_end_is_refused_early(void **state)
{
	char text[FRAME_HEAD_MAX + 2];
	struct frame f;

	(void)state;
	memset(text, 'r', sizeof(text));
	assert_int_equal(frame_parse(span_of(text, FRAME_HEAD_MAX), &f), 0);
	assert_int_equal(frame_parse(span_of(text, FRAME_HEAD_MAX + 1), &f),
			 -EPROTO);
	assert_int_equal(frame_parse(span_of(text, sizeof(text)), &f), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame__each_word),
		cmocka_unit_test(frame__every_cut_asks_for_more),
		cmocka_unit_test(frame__what_follows_is_left),
		cmocka_unit_test(frame__refuses),
		cmocka_unit_test(frame__a_line_without_end_is_refused_early),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
