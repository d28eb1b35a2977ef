/* SPDX-License-Identifier: Apache-2.0 */
/* test_json.c - reading, refusing, writing and escaping of src/text/json.h */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/text/json.h"

static struct json *parse(const char *text)
{
	struct diag d = { 0 };
	struct json *j;

	if (json_parse(span_str(text), &j, &d))
		fail_msg("%s: %s", text, d.msg);
	return j;
}

static void assert_span(struct span s, const char *expected)
{
	if (!span_eq(s, span_str(expected)))
		fail_msg("found \"%.*s\", expected \"%s\"", SPAN_FMT(s),
			 expected);
}

static void parse__reads_every_kind(void **state)
{
	struct json *j = parse("{\"n\":null,\"b\":true,\"i\":-7,\"u\":7,"
			       "\"r\":1.5,\"s\":\"x\",\"a\":[1,2,3],\"o\":{}}");
	int64_t i = 0;
	uint64_t u = 0;

	(void)state;
	assert_int_equal(json_kind(j), JSON_KIND_OBJECT);
	assert_int_equal(json_kind(json_find(j, "n")), JSON_KIND_NULL);
	assert_int_equal(json_kind(json_find(j, "r")), JSON_KIND_NUMBER);
	assert_true(json_bool(json_find(j, "b")));
	assert_false(json_bool(json_find(j, "n")));
	assert_true(json_i64(json_find(j, "i"), &i));
	assert_int_equal(i, -7);
	assert_false(json_u64(json_find(j, "i"), &u));
	assert_true(json_u64(json_find(j, "u"), &u));
	assert_int_equal(u, 7);
	assert_false(json_u64(json_find(j, "r"), &u));
	assert_span(json_text(json_find(j, "s")), "x");
	assert_int_equal(json_count(json_find(j, "a")), 3);
	assert_int_equal(json_kind(json_find(j, "o")), JSON_KIND_OBJECT);
	json_free(j);
}

/* Readers are total: nothing reads as nothing. */
static void read__of_nothing_is_nothing(void **state)
{
	void *cursor = NULL;
	struct span name;
	uint64_t u = 9;

	(void)state;
	assert_int_equal(json_kind(NULL), JSON_KIND_NONE);
	assert_null(json_find(NULL, "x"));
	assert_null(json_text(NULL).ptr);
	assert_false(json_u64(NULL, &u));
	assert_int_equal(u, 9);
	assert_int_equal(json_count(NULL), 0);
	assert_null(json_item(NULL, 0));
	assert_null(json_next(NULL, &cursor, &name));
	json_free(NULL);
}

static void parse__says_where_it_refuses(void **state)
{
	static const struct {
		const char *text;
		unsigned line;
		const char *says;
	} rows[] = {
		{ "", 1, "not JSON" },
		{ "{", 1, "not JSON" },
		{ "{\"a\":1,\n\"a\":2}", 2, "duplicate" },
		{ "{}x", 1, "not JSON" },
		{ "[1,]", 1, "not JSON" },
		{ "\"\xff\"", 1, "not JSON" },
		{ "{'a':1}", 1, "not JSON" },
		{ "nul", 1, "not JSON" },
		{ "{\"a\\u0000b\":1}", 1, "not JSON" },
	};
	struct diag d;
	struct json *j;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		d = (struct diag){ 0 };
		assert_int_equal(json_parse(span_str(rows[i].text), &j, &d),
				 -EINVAL);
		if (d.line != rows[i].line || !strstr(d.msg, rows[i].says))
			fail_msg("%s: line %u: %s", rows[i].text, d.line,
				 d.msg);
	}
	/* a caller may not care why */
	assert_int_equal(json_parse(SPAN("{"), &j, NULL), -EINVAL);
}

static void parse__bounds_the_depth(void **state)
{
	char text[2 * JSON_DEPTH_MAX + 3];
	struct diag d = { 0 };
	struct json *j;

	(void)state;
	memset(text, '[', JSON_DEPTH_MAX);
	memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
	assert_int_equal(json_parse(span_of(text, 2 * JSON_DEPTH_MAX), &j, &d),
			 0);
	json_free(j);
	memset(text, '[', JSON_DEPTH_MAX + 1);
	memset(text + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
	assert_int_equal(
		json_parse(span_of(text, 2 * JSON_DEPTH_MAX + 2), &j, &d),
		-EINVAL);
	assert_non_null(strstr(d.msg, "nesting"));

	/* brackets inside strings are no nesting */
	j = parse("\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[[[[[[[\"");
	json_free(j);
}

static void parse__bounds_the_values(void **state)
{
	struct diag d = { 0 };
	struct json *j;

	(void)state;
	/* three numbers, the array, and one for what is behind a comma */
	assert_int_equal(json_parse_within(SPAN("[1,2,3]"), 4, &j, &d), 0);
	json_free(j);
	assert_int_equal(json_parse_within(SPAN("[1,2,3]"), 3, &j, &d),
			 -EINVAL);
	assert_string_equal(d.msg, "found more than 3 values");
	assert_int_equal(json_parse_within(SPAN("[[],{}]"), 3, &j, NULL),
			 -EINVAL);
	/* commas and brackets inside strings are no values */
	assert_int_equal(
		json_parse_within(SPAN("[\"[,,\\\",,{\"]"), 2, &j, NULL), 0);
	json_free(j);
}

static void parse__of_more_than_can_be_had_is_refused(void **state)
{
	const size_t len = 2 * JSON_VALUES_MAX;
	char *text = malloc(len);
	struct diag d = { 0 };
	struct json *j;
	size_t i;

	(void)state;
	assert_non_null(text);
	for (i = 0; i < len; i += 2)
		memcpy(text + i, "0,", 2);
	text[0] = '[';
	text[1] = '1';
	text[len - 1] = ']';
	assert_int_equal(json_parse(span_of(text, len), &j, &d), 0);
	assert_int_equal(json_count(j), JSON_VALUES_MAX - 1);
	json_free(j);
	text[2] = ',';
	assert_int_equal(json_parse(span_of(text, len), &j, &d), -EINVAL);
	assert_non_null(strstr(d.msg, "values"));
	free(text);
}

static void text__keeps_an_escaped_nul(void **state)
{
	struct json *j = parse("\"a\\u0000b\"");

	(void)state;
	assert_true(span_eq(json_text(j), span_of("a\0b", 3)));
	json_free(j);
}

static void get__says_found_and_expected(void **state)
{
	struct json *j = parse("{\"name\":5,\"count\":-1,\"list\":{}}");
	static const char *const known[] = { "name", "count", "lists", NULL };
	const struct json *array;
	struct span text = SPAN("untouched");
	struct diag d = { 0 };
	uint64_t u;

	(void)state;
	assert_int_equal(json_get_text(j, "thing", "nothing", &text, &d),
			 JSON_E_ABSENT);
	assert_span(text, "untouched");
	assert_false(diag_is_set(&d));
	assert_int_equal(json_get_text(j, "thing", "name", &text, &d), -EINVAL);
	assert_string_equal(d.msg, "thing: \"name\": found a number, expected "
				   "a string");
	d = (struct diag){ 0 };
	assert_int_equal(json_get_u64(j, "thing", "count", &u, &d), -EINVAL);
	d = (struct diag){ 0 };
	assert_int_equal(json_get_array(j, "thing", "list", &array, &d),
			 -EINVAL);
	assert_string_equal(d.msg, "thing: \"list\": found an object, expected "
				   "an array");
	d = (struct diag){ 0 };
	assert_int_equal(json_refuse_unknown(j, "thing", known, &d), -EINVAL);
	assert_string_equal(d.msg, "thing: unknown field \"list\"; did you "
				   "mean \"lists\"?");
	json_free(j);
}

static void out__puts_commas_and_names(void **state)
{
	struct buf buf = BUF_INIT(4096);
	struct json *j = parse("[1,{\"x\":[]}]");
	struct json_out o;

	(void)state;
	json_start(&o, &buf);
	json_open_object(&o, NULL);
	json_put_str(&o, "s", "a\"b");
	json_put_u64(&o, "u", UINT64_MAX);
	json_put_i64(&o, "i", INT64_MIN);
	json_open_array(&o, "list");
	json_put_bool(&o, NULL, true);
	json_open_object(&o, NULL);
	json_close(&o);
	json_put_null(&o, NULL);
	json_close(&o);
	json_put_json(&o, "copy", j);
	json_put_raw(&o, "raw", SPAN("[]"));
	json_put_name(&o, SPAN("odd\n"));
	json_put_bool(&o, NULL, false);
	json_close(&o);
	assert_int_equal(json_done(&o), 0);
	assert_span(buf_peek(&buf),
		    "{\"s\":\"a\\\"b\",\"u\":18446744073709551615,"
		    "\"i\":-9223372036854775808,\"list\":[true,{},null],"
		    "\"copy\":[1,{\"x\":[]}],\"raw\":[],\"odd\\n\":false}");
	json_free(j);
	buf_fini(&buf);
}

static void out__remembers_that_it_did_not_fit(void **state)
{
	struct buf buf = BUF_INIT(8);
	struct json_out o;

	(void)state;
	json_start(&o, &buf);
	json_open_object(&o, NULL);
	json_put_str(&o, "name", "much too long");
	json_close(&o);
	assert_int_equal(json_done(&o), -ENOBUFS);
	buf_fini(&buf);
}

static void emit__gives_what_was_parsed(void **state)
{
	static const char *const rows[] = {
		"{}",
		"[]",
		"null",
		"\"\"",
		"[[],{\"a\":{\"b\":[1,-2,true,false,null]}}]",
		"{\"z\":1,\"a\":2,\"m\":\"\\u0001\\u007f\"}",
		"0.5",
	};
	struct buf buf = BUF_INIT(4096);
	struct json *j;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		buf_clear(&buf);
		j = parse(rows[i]);
		assert_int_equal(json_emit(&buf, j), 0);
		assert_span(buf_peek(&buf), rows[i]);
		json_free(j);
	}
	buf_fini(&buf);
}

static void escape__makes_literals_of_any_bytes(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "", "\"\"" },
		{ "plain text", "\"plain text\"" },
		{ "q\"b\\s/", "\"q\\\"b\\\\s/\"" },
		{ "\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\"" },
		{ "\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\"" },
		{ "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
		  "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"" },
		/* what ends a line for some, or acts on a terminal */
		{ "\xc2\x80\xc2\x9f\xc2\xa0", "\"\\u0080\\u009f\xc2\xa0\"" },
		{ "\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xae\xe2\x80\xaf",
		  "\"\xe2\x80\xa7\\u2028\\u202e\xe2\x80\xaf\"" },
		{ "\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa",
		  "\"\\u2066\\u2069\xe2\x81\xaa\"" },
		/* each byte that is part of nothing becomes U+FFFD */
		{ "a\xff"
		  "b",
		  "\"a\xef\xbf\xbd"
		  "b\"" },
		{ "\xc3", "\"\xef\xbf\xbd\"" },
		{ "\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"" }, /* overlong */
		{ "\xe0\x80\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xed\xa0\x80", /* a surrogate */
		  "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xf4\x90\x80\x80", /* beyond U+10FFFF */
		  "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xf8\x88", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
	};
	struct buf buf = BUF_INIT(4096);
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		buf_clear(&buf);
		assert_int_equal(json_escape(&buf, span_str(rows[i].in)), 0);
		assert_span(buf_peek(&buf), rows[i].out);
	}
	buf_clear(&buf);
	assert_int_equal(json_escape(&buf, span_of("a\0b", 3)), 0);
	assert_span(buf_peek(&buf), "\"a\\u0000b\"");
	buf_fini(&buf);
}

/* Whatever the bytes: the literal is JSON. */
static void escape__is_always_json(void **state)
{
	struct buf buf = BUF_INIT(4096);
	unsigned char bytes[3];
	struct json *j;
	unsigned i;

	(void)state;
	srand(1);
	for (i = 0; i < 20000; i++) {
		bytes[0] = (unsigned char)(i & 255);
		bytes[1] = (unsigned char)(i >> 8 | 0x80);
		bytes[2] = (unsigned char)rand();
		buf_clear(&buf);
		assert_int_equal(json_escape(&buf, span_of(bytes, 3)), 0);
		assert_int_equal(json_parse(buf_peek(&buf), &j, NULL), 0);
		json_free(j);
	}
	buf_fini(&buf);
}

/* Every byte at every place of words and of what is left of them. */
static void plain_len__ends_before_what_is_escaped(void **state)
{
	char text[19];
	unsigned c, i;
	bool plain;

	(void)state;
	for (c = 0; c < 256; c++) {
		plain = c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
		for (i = 0; i < sizeof(text); i++) {
			memset(text, 'a', sizeof(text));
			text[i] = (char)c;
			assert_int_equal(
				json_plain_len(span_of(text, sizeof(text))),
				plain ? sizeof(text) : i);
		}
	}
	assert_int_equal(json_plain_len(SPAN_NONE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__reads_every_kind),
		cmocka_unit_test(read__of_nothing_is_nothing),
		cmocka_unit_test(parse__says_where_it_refuses),
		cmocka_unit_test(parse__bounds_the_depth),
		cmocka_unit_test(parse__bounds_the_values),
		cmocka_unit_test(parse__of_more_than_can_be_had_is_refused),
		cmocka_unit_test(text__keeps_an_escaped_nul),
		cmocka_unit_test(get__says_found_and_expected),
		cmocka_unit_test(out__puts_commas_and_names),
		cmocka_unit_test(out__remembers_that_it_did_not_fit),
		cmocka_unit_test(emit__gives_what_was_parsed),
		cmocka_unit_test(escape__makes_literals_of_any_bytes),
		cmocka_unit_test(escape__is_always_json),
		cmocka_unit_test(plain_len__ends_before_what_is_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
