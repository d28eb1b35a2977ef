/* SPDX-License-Identifier: Apache-2.0 */
/* test_event.c - every kind of frame, byte for byte */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/base/buf.h"
#include "src/execd/event.h"
#include "src/text/json.h"

static void assert_frame(const struct event *ev, const char *expected)
{
	struct buf out = BUF_INIT(1 << 20);

	assert_false(event_put(&out, ev));
	if (!span_eq(buf_peek(&out), span_str(expected)))
		fail_msg("found %.*s, expected %s", SPAN_FMT(buf_peek(&out)),
			 expected);
	buf_fini(&out);
}

static void put__of_each_type(void **state)
{
	const struct span trace[] = { SPAN_INIT("exit status 3"),
				      SPAN_INIT("") };
	const struct {
		struct event event;
		const char *frame;
	} cases[] = {
		{ { .type = EVENT_INIT, .text = SPAN("f00d"), .timestamp = 7 },
		  "{\"type\":\"init\",\"text\":\"f00d\",\"timestamp\":7}"
		  "\n\n" },
		{ { .type = EVENT_PING,
		    .text = SPAN("pong"),
		    .timestamp = 1749000000123 },
		  "{\"type\":\"ping\",\"text\":\"pong\","
		  "\"timestamp\":1749000000123}\n\n" },
		{ { .type = EVENT_STATUS,
		    .text = SPAN("busy"),
		    .timestamp = 7 },
		  "{\"type\":\"status\",\"text\":\"busy\",\"timestamp\":7}"
		  "\n\n" },
		{ { .type = EVENT_STDOUT, .text = SPAN("\n"), .timestamp = 7 },
		  "{\"type\":\"stdout\",\"text\":\"\\n\",\"timestamp\":7}"
		  "\n\n" },
		{ { .type = EVENT_STDERR, .text = SPAN("no"), .timestamp = 7 },
		  "{\"type\":\"stderr\",\"text\":\"no\",\"timestamp\":7}"
		  "\n\n" },
		{ { .type = EVENT_RESULT,
		    .results = SPAN("{\"text\":\"4\"}"),
		    .timestamp = 7 },
		  "{\"type\":\"result\",\"timestamp\":7,"
		  "\"results\":{\"text\":\"4\"}}\n\n" },
		{ { .type = EVENT_EXECUTION_COUNT,
		    .execution_count = 12,
		    .timestamp = 7 },
		  "{\"type\":\"execution_count\",\"execution_count\":12,"
		  "\"timestamp\":7}\n\n" },
		{ { .type = EVENT_ERROR,
		    .ename = SPAN("CommandExecError"),
		    .evalue = SPAN("3"),
		    .traceback = trace,
		    .traceback_count = 1,
		    .timestamp = 7 },
		  "{\"type\":\"error\",\"timestamp\":7,\"error\":{"
		  "\"ename\":\"CommandExecError\",\"evalue\":\"3\","
		  "\"traceback\":[\"exit status 3\"]}}\n\n" },
		{ { .type = EVENT_ERROR,
		    .ename = SPAN("E"),
		    .traceback = trace,
		    .traceback_count = 2 },
		  "{\"type\":\"error\",\"error\":{\"ename\":\"E\","
		  "\"traceback\":[\"exit status 3\",\"\"]}}\n\n" },
		{ { .type = EVENT_EXECUTION_COMPLETE,
		    .execution_time = 3,
		    .timestamp = 7 },
		  "{\"type\":\"execution_complete\",\"execution_time\":3,"
		  "\"timestamp\":7}\n\n" },
		{ { .type = EVENT_EXECUTION_COMPLETE, .timestamp = 7 },
		  "{\"type\":\"execution_complete\",\"timestamp\":7}\n\n" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++)
		assert_frame(&cases[i].event, cases[i].frame);
}

static void put__of_any_bytes_is_one_line_of_json(void **state)
{
	const struct event ev = {
		.type = EVENT_STDOUT,
		.text = SPAN("\"\\\x00\x1b[0m\x7f\r\n\x85\xc2\x85\xe2\x80\xa8"
			     "\xe2\x80\xa9\x0b\x1c\xff\xed\xa0\x80\xe2\x82"
			     "\xe2\x82\xac"),
	};

	(void)state;
	assert_frame(&ev, "{\"type\":\"stdout\",\"text\":\"\\\"\\\\\\u0000"
			  "\\u001b[0m\\u007f\\r\\n\xef\xbf\xbd\\u0085\\u2028"
			  "\\u2029\\u000b\\u001c\xef\xbf\xbd\xef\xbf\xbd"
			  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
			  "\xe2\x82\xac\"}\n\n");
}

static void put__is_whole_or_nothing(void **state)
{
	const struct event ev = { .type = EVENT_STDOUT, .text = SPAN("hello") };
	struct buf whole = BUF_INIT(1 << 10), out;
	size_t max;

	(void)state;
	assert_false(event_put(&whole, &ev));
	for (max = 0; max < buf_len(&whole) + 1; max++) {
		buf_init(&out, max + 1);
		assert_false(buf_put(&out, SPAN("x")));
		if (max < buf_len(&whole)) {
			assert_true(event_put(&out, &ev) < 0);
			assert_int_equal(buf_len(&out), 1);
		} else {
			assert_false(event_put(&out, &ev));
		}
		buf_fini(&out);
	}
	buf_fini(&whole);
}

static void end__tells_status_signal_and_timeout(void **state)
{
	struct event_end e;

	(void)state;
	event_end(&e, 0, 5, 7);
	assert_frame(&e.event, "{\"type\":\"execution_complete\","
			       "\"execution_time\":5,\"timestamp\":7}\n\n");
	event_end(&e, 127 << 8, 5, 7);
	assert_frame(&e.event,
		     "{\"type\":\"error\",\"timestamp\":7,\"error\":{"
		     "\"ename\":\"CommandExecError\",\"evalue\":\"127\","
		     "\"traceback\":[\"exit status 127\"]}}\n\n");
	event_end(&e, 9, 5, 7);
	assert_frame(&e.event,
		     "{\"type\":\"error\",\"timestamp\":7,\"error\":{"
		     "\"ename\":\"CommandExecError\",\"evalue\":\"137\","
		     "\"traceback\":[\"signal 9 (SIGKILL)\"]}}\n\n");
	event_end(&e, 11 | 0x80, 5, 7); /* with a core */
	assert_frame(&e.event,
		     "{\"type\":\"error\",\"timestamp\":7,\"error\":{"
		     "\"ename\":\"CommandExecError\",\"evalue\":\"139\","
		     "\"traceback\":[\"signal 11 (SIGSEGV)\"]}}\n\n");
	event_end_timeout(&e, 1500, 7);
	assert_frame(&e.event,
		     "{\"type\":\"error\",\"timestamp\":7,\"error\":{"
		     "\"ename\":\"CommandExecError\",\"evalue\":\"124\","
		     "\"traceback\":[\"timed out after 1500 ms\"]}}\n\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put__of_each_type),
		cmocka_unit_test(put__of_any_bytes_is_one_line_of_json),
		cmocka_unit_test(put__is_whole_or_nothing),
		cmocka_unit_test(end__tells_status_signal_and_timeout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
