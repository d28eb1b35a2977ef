/* SPDX-License-Identifier: Apache-2.0 */
/* test_bundle.c - values and failures of a cell as events tell them, and how a
 * cell is asked for
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
#include "src/execd/code/language.h"
#include "src/text/json.h"

static struct json *parse(const char *text)
{
	struct json *j;

	assert_int_equal(json_parse(span_str(text), &j, NULL), 0);
	return j;
}

static void bundle__members(void **state)
{
	static const struct {
		const char *data, *told;
		int count;
	} rows[] = {
		{ "{}", "{}", 0 },
		{ "{\"text/plain\":\"4\"}", "{\"text\":\"4\"}", 1 },
		{ "{\"text/html\":[\"<b>\\n\",\"x\"],\"text/plain\":\"\"}",
		  "{\"text/html\":\"<b>\\nx\",\"text\":\"\"}", 2 },
		{ "{\"application/json\":{\"a\":[1,null]}}",
		  "{\"application/json\":\"{\\\"a\\\":[1,null]}\"}", 1 },
		{ "{\"x\":null,\"y\":7,\"z\":[],\"w\":[1,\"a\"]}",
		  "{\"y\":\"7\",\"z\":\"[]\",\"w\":\"[1,\\\"a\\\"]\"}", 3 },
		{ "{\"t\":\"\\u2028\\u0000\\u00e9\"}",
		  "{\"t\":\"\\u2028\\u0000\xc3\xa9\"}", 1 },
	};
	size_t i, left_out;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct json *data = parse(rows[i].data);
		struct buf out = BUF_INIT(4096);

		assert_int_equal(bundle_put(&out, data, &left_out),
				 rows[i].count);
		assert_int_equal(left_out, 0);
		assert_int_equal(buf_put(&out, span_of("", 1)), 0);
		assert_string_equal(buf_peek(&out).ptr, rows[i].told);
		buf_fini(&out);
		json_free(data);
	}
}

static void bundle__what_is_no_object_is_empty(void **state)
{
	struct json *data = parse("[1]");
	struct buf out = BUF_INIT(4096);
	size_t left_out;

	(void)state;
	assert_int_equal(bundle_put(&out, data, &left_out), 0);
	assert_int_equal(bundle_put(&out, NULL, &left_out), 0);
	json_free(data);
	buf_fini(&out);
}

static void bundle__too_much_is_left_out(void **state)
{
	struct buf text = BUF_INIT(8 * 1024 * 1024),
		   out = BUF_INIT(4 * 1024 * 1024);
	struct json *data = NULL;
	size_t left_out;
	char *at;

	(void)state;
	assert_int_equal(buf_put_str(&text, "{\"a\":\""), 0);
	assert_int_equal(buf_reserve(&text, BUNDLE_MAX, &at), 0);
	memset(at, 'x', BUNDLE_MAX);
	buf_commit(&text, BUNDLE_MAX);
	assert_int_equal(buf_put_str(&text, "\",\"text/plain\":\"big\"}"), 0);
	assert_int_equal(json_parse(buf_peek(&text), &data, NULL), 0);
	assert_int_equal(bundle_put(&out, data, &left_out), 1);
	assert_int_equal(left_out, BUNDLE_MAX);
	assert_true(span_eq(buf_peek(&out), SPAN("{\"text\":\"big\"}")));
	json_free(data);
	buf_fini(&text);
	buf_fini(&out);
}

static void failure__is_read(void **state)
{
	struct json *j = parse("{\"ename\":\"E\",\"evalue\":\"v\","
			       "\"traceback\":[\"a\",7,\"b\"]}");
	struct failure *f = malloc(sizeof(*f));

	(void)state;
	failure_read(j, f);
	assert_true(span_eq(f->ename, SPAN("E")));
	assert_true(span_eq(f->evalue, SPAN("v")));
	assert_int_equal(f->line_count, 3);
	assert_true(span_eq(f->lines[1], SPAN("")));
	json_free(j);

	j = parse("{\"ename\":7,\"traceback\":\"x\"}");
	failure_read(j, f);
	assert_true(span_eq(f->ename, SPAN("Error")));
	assert_int_equal(f->evalue.len, 0);
	assert_int_equal(f->line_count, 0);
	json_free(j);
	free(f);
}

static void failure__is_bounded(void **state)
{
	struct buf text = BUF_INIT(1024 * 1024);
	struct failure *f = malloc(sizeof(*f));
	struct json *j = NULL;
	int i;

	(void)state;
	assert_int_equal(buf_put_str(&text, "{\"traceback\":[\"0\""), 0);
	for (i = 0; i < 2 * FAILURE_LINES_MAX; i++)
		assert_int_equal(buf_put_str(&text, ",\"x\""), 0);
	assert_int_equal(buf_put_str(&text, "]}"), 0);
	assert_int_equal(json_parse(buf_peek(&text), &j, NULL), 0);
	failure_read(j, f);
	assert_int_equal(f->line_count, FAILURE_LINES_MAX);
	json_free(j);
	free(f);
	buf_fini(&text);
}

static void language__asks_for_a_cell(void **state)
{
	const struct language *python = language_find(SPAN("python"));
	const struct language *bash = language_find(SPAN("bash"));
	struct buf out = BUF_INIT(4096);

	(void)state;
	assert_non_null(python);
	assert_non_null(language_find(SPAN("javascript")));
	assert_null(language_find(SPAN("Python")));
	assert_null(language_find(SPAN("")));
	assert_true(*python->driver_len > 1000);

	assert_int_equal(language_request(&out, python, 7, SPAN("a\0\n")), 0);
	assert_true(span_eq(buf_peek(&out), SPAN("run 7 3\na\0\n")));
	buf_clear(&out);
	assert_int_equal(language_request(&out, bash, 8, SPAN("a'b''")), 0);
	assert_true(
		span_starts(buf_peek(&out),
			    SPAN("__sallyport_run=8\n"
				 "__sallyport_code='a'\\''b'\\'''\\'''\n")));
	buf_clear(&out);
	assert_int_equal(language_request(&out, bash, 9, SPAN("a\0b")),
			 -EINVAL);
	buf_fini(&out);
	buf_init(&out, 64);
	assert_int_equal(language_request(&out, bash, 9, SPAN("a")), -ENOBUFS);
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bundle__members),
		cmocka_unit_test(bundle__what_is_no_object_is_empty),
		cmocka_unit_test(bundle__too_much_is_left_out),
		cmocka_unit_test(failure__is_read),
		cmocka_unit_test(failure__is_bounded),
		cmocka_unit_test(language__asks_for_a_cell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
