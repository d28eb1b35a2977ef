/* SPDX-License-Identifier: Apache-2.0 */
/* test_diagnosis.c - containers in words, and what they wrote */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/buf.h"
#include "src/control/lifecycle/box.h"
#include "src/control/lifecycle/diagnosis.h"
#include "src/control/lifecycle/log_frames.h"
#include "src/text/json.h"

static void assert_frames(struct span body, const char *expected)
{
	struct buf out = BUF_INIT(4096);

	assert_int_equal(log_frames_text(body, &out), 0);
	assert_true(span_eq(buf_peek(&out), span_str(expected)));
	buf_fini(&out);
}

static void frames__become_text(void **state)
{
	(void)state;
	assert_frames(SPAN("\1\0\0\0\0\0\0\3ab\n\2\0\0\0\0\0\0\2c\n"),
		      "ab\nc\n");
	assert_frames(SPAN("\1\0\0\0\0\0\0\11cut"), "cut");
	assert_frames(SPAN("\1\0\0\0\377\377\377\377cut"), "cut");
	assert_frames(SPAN("\1\0\0\0\0\0\0\0"), "");
	assert_frames(SPAN("a terminal\n"), "a terminal\n");
	assert_frames(SPAN(""), "");
}

static void frames__have_a_bound(void **state)
{
	struct buf out = BUF_INIT(4);

	(void)state;
	assert_int_not_equal(
		log_frames_text(SPAN("\1\0\0\0\0\0\0\6abcdef"), &out), 0);
	buf_fini(&out);
}

static void tail__begins_with_a_line(void **state)
{
	(void)state;
	assert_true(span_eq(log_frames_tail(SPAN("one\ntwo\nthree\n"), 9),
			    SPAN("three\n")));
	assert_true(span_eq(log_frames_tail(SPAN("one\n"), 4), SPAN("one\n")));
	assert_int_equal(log_frames_tail(SPAN("no line"), 3).len, 0);
}

static void duration__has_a_unit(void **state)
{
	uint64_t s = 0;

	(void)state;
	assert_true(diagnosis_duration(SPAN("90"), &s) && s == 90);
	assert_true(diagnosis_duration(SPAN("90s"), &s) && s == 90);
	assert_true(diagnosis_duration(SPAN("10m"), &s) && s == 600);
	assert_true(diagnosis_duration(SPAN("2h"), &s) && s == 7200);
	assert_true(diagnosis_duration(SPAN("1d"), &s) && s == 86400);
	assert_false(diagnosis_duration(SPAN(""), &s));
	assert_false(diagnosis_duration(SPAN("m"), &s));
	assert_false(diagnosis_duration(SPAN("1w"), &s));
	assert_false(diagnosis_duration(SPAN("-1s"), &s));
	assert_false(diagnosis_duration(SPAN("18446744073709551615d"), &s));
}

static void events__in_their_order(void **state)
{
	struct buf out = BUF_INIT(4096);
	struct box *b = box_new();
	struct json *j = NULL;

	(void)state;
	b->created_ms = 1767323045000; /* 2026-01-02T03:04:05Z */
	box_set_state(b, BOX_FAILED, "", "It\nended.", b->created_ms + 9000);
	assert_int_equal(
		json_parse(SPAN("{\"State\":{\"ExitCode\":137,\"OOMKilled\":"
				"true,\"StartedAt\":\"2026-01-02T03:04:06Z\","
				"\"FinishedAt\":\"2026-01-02T03:04:07Z\"}}"),
			   &j, NULL),
		0);
	diagnosis_put_events(&out, b, j, 3);
	if (!span_eq(buf_peek(&out),
		     SPAN("2026-01-02T03:04:06.000Z container Normal Started "
			  "The container was started.\n"
			  "2026-01-02T03:04:07.000Z container Warning Exited "
			  "The container ended with status 137, out of memory."
			  "\n"
			  "2026-01-02T03:04:14.000Z sandbox Warning Failed "
			  "It\\x0aended.\n")))
		fail_msg("%.*s", SPAN_FMT(buf_peek(&out)));
	json_free(j);
	box_free(b);
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames__become_text),
		cmocka_unit_test(frames__have_a_bound),
		cmocka_unit_test(tail__begins_with_a_line),
		cmocka_unit_test(duration__has_a_unit),
		cmocka_unit_test(events__in_their_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
