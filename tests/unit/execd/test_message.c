/* SPDX-License-Identifier: Apache-2.0 */
/* test_message.c - messages of a Jupyter kernel: jupyter_messages.jsonl is what
 * a real server sent for five cells and one that killed its kernel
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/execd/code/bundle.h"
#include "src/execd/code/jupyter/message.h"
#include "src/execd/code/jupyter/server.h"
#include "src/execd/whole.h"
#include "src/text/json.h"

/* The kinds told of request `id`, one letter each. */
static void kinds_of(const char *id, char *dst, size_t size)
{
	static const char letters[] = {
		[MESSAGE_OTHER] = '.',	[MESSAGE_STREAM] = 's',
		[MESSAGE_RESULT] = 'r', [MESSAGE_ERROR] = 'e',
		[MESSAGE_REPLY] = 'p',	[MESSAGE_BUSY] = 'b',
		[MESSAGE_IDLE] = 'i',	[MESSAGE_RESTART] = 'X'
	};
	struct buf file = BUF_INIT(1024 * 1024);
	struct span rest, line;
	struct message m;
	size_t n = 0;

	assert_int_equal(whole_read(SOURCE_DIR
				    "/tests/unit/execd/jupyter_messages.jsonl",
				    &file),
			 0);
	rest = buf_peek(&file);
	while (rest.len) {
		line = span_cut(&rest, '\n');
		assert_int_equal(message_parse(line, span_str(id), &m), 0);
		if (m.kind != MESSAGE_OTHER && n + 1 < size)
			dst[n++] = letters[m.kind];
		message_fini(&m);
	}
	dst[n] = '\0';
	buf_fini(&file);
}

static void message__recorded_cells(void **state)
{
	static const char *const expected[][2] = {
		{ "r-1", "bssrpiX" }, { "r-2", "brrpiX" }, { "r-3", "bepiX" },
		{ "r-4", "bpiX" },    { "r-5", "bpeiX" },  { "r-6", "bX" },
		{ "r-7", "X" },	      { "", "X" },
	};
	char kinds[64];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(expected); i++) {
		kinds_of(expected[i][0], kinds, sizeof(kinds));
		assert_string_equal(kinds, expected[i][1]);
	}
}

#define OF_R1 "\"parent_header\":{\"msg_id\":\"r-1\"},"

static void message__members(void **state)
{
	static const char stream[] =
		"{\"header\":{\"msg_type\":\"stream\"}," OF_R1
		"\"content\":{\"name\":\"stderr\",\"text\":\"a\\n\"}}";
	static const char result[] =
		"{\"msg_type\":\"execute_result\"," OF_R1
		"\"content\":{\"execution_count\":7,\"data\":{\"text/plain\":"
		"\"4\"}}}";
	static const char reply[] = "{\"msg_type\":\"execute_reply\"," OF_R1
				    "\"content\":{\"status\":\"aborted\"}}";
	struct message m;

	(void)state;
	assert_int_equal(message_parse(span_str(stream), SPAN("r-1"), &m), 0);
	assert_int_equal(m.kind, MESSAGE_STREAM);
	assert_true(m.is_stderr && span_eq(m.text, SPAN("a\n")));
	message_fini(&m);
	assert_int_equal(message_parse(span_str(stream), SPAN("r-2"), &m), 0);
	assert_int_equal(m.kind, MESSAGE_OTHER);
	message_fini(&m);
	assert_int_equal(message_parse(span_str(result), SPAN("r-1"), &m), 0);
	assert_int_equal(m.kind, MESSAGE_RESULT);
	assert_true(m.count == 7 && !m.failed);
	message_fini(&m);
	assert_int_equal(message_parse(span_str(reply), SPAN("r-1"), &m), 0);
	assert_true(m.kind == MESSAGE_REPLY && m.failed);
	message_fini(&m);
}

static void message__refuses(void **state)
{
	static const char *const bad[] = {
		"",
		"{",
		"[]",
		"{}",
		"7",
		"{\"msg_type\":\"status\"}",
		"{\"msg_type\":\"status\",\"content\":[]}",
		"{\"msg_type\":7,\"content\":{}}",
		"{\"header\":{},\"content\":{}}",
	};
	struct message m;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(message_parse(span_str(bad[i]), SPAN("r"), &m),
				 -EINVAL);
}

static void message__execute(void **state)
{
	struct buf out = BUF_INIT(4096);
	struct json *j = NULL;
	const struct json *content;

	(void)state;
	assert_int_equal(message_execute(&out, SPAN("r-1"), SPAN("s"),
					 SPAN("a\n\"\xff")),
			 0);
	assert_int_equal(json_parse(buf_peek(&out), &j, NULL), 0);
	content = json_find(j, "content");
	assert_true(
		span_eq(json_text(json_find(json_find(j, "header"), "msg_id")),
			SPAN("r-1")));
	assert_true(span_eq(json_text(json_find(content, "code")),
			    SPAN("a\n\"\xef\xbf\xbd")));
	assert_true(json_bool(json_find(content, "store_history")));
	assert_false(json_bool(json_find(content, "allow_stdin")));
	assert_true(span_eq(json_text(json_find(j, "channel")), SPAN("shell")));
	json_free(j);
	buf_fini(&out);
}

static void message__kernels(void **state)
{
	static const char specs[] =
		"{\"default\":\"python3\",\"kernelspecs\":{"
		"\"python3\":{\"spec\":{\"language\":\"python\"}},"
		"\"py\":{\"spec\":{\"language\":\"Python\"}},"
		"\"gophernotes\":{\"spec\":{\"language\":\"go\"}},"
		"\"bash\":{\"spec\":{}}, \"odd\":7}}";
	static const char only[] =
		"{\"default\":\"python3\",\"kernelspecs\":{"
		"\"python3\":{\"spec\":{\"language\":\"python\"}}}}";
	struct json *j = NULL;

	(void)state;
	assert_int_equal(json_parse(span_str(specs), &j, NULL), 0);
	assert_true(span_eq(message_kernel(j, SPAN("python")), SPAN("py")));
	assert_true(
		span_eq(message_kernel(j, SPAN("go")), SPAN("gophernotes")));
	assert_true(span_eq(message_kernel(j, SPAN("bash")), SPAN("bash")));
	assert_null(message_kernel(j, SPAN("java")).ptr);
	json_free(j);
	assert_int_equal(json_parse(span_str(only), &j, NULL), 0);
	assert_true(
		span_eq(message_kernel(j, SPAN("python")), SPAN("python3")));
	json_free(j);
	assert_null(message_kernel(NULL, SPAN("python")).ptr);
}

static void server__where_it_is(void **state)
{
	static const struct {
		const char *text, *host, *base;
		uint16_t port;
		bool is_address;
	} good[] = {
		{ "http://127.0.0.1:44771", "127.0.0.1:44771", "", 44771,
		  true },
		{ "http://localhost:8888/", "localhost:8888", "", 8888, false },
		{ "http://[::1]:1/a/b//", "[::1]:1", "/a/b", 1, true },
		{ " jupyter ", "jupyter", "", 80, false },
	};
	static const char *const bad[] = {
		"",
		"http://",
		"https://127.0.0.1:1",
		"ftp://x",
		"http://a b",
		"http://u@h:1",
		"http://h:0",
		"http://h:1/a b",
		"http://h:1/a?b",
		"http://h:1/\r\nX: y",
	};
	struct jupyter j;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good); i++) {
		memset(&j, 0, sizeof(j));
		assert_true(jupyter_parse(good[i].text, &j));
		assert_string_equal(j.host, good[i].host);
		assert_string_equal(j.base, good[i].base);
		assert_string_equal(j.wrong, "");
		assert_int_equal(j.at.port, good[i].port);
		assert_int_equal(j.at.is_address, good[i].is_address);
	}
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		assert_false(jupyter_parse(bad[i], &j));
		assert_true(j.wrong[0] != '\0');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message__recorded_cells),
		cmocka_unit_test(message__members),
		cmocka_unit_test(message__refuses),
		cmocka_unit_test(message__execute),
		cmocka_unit_test(message__kernels),
		cmocka_unit_test(server__where_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
