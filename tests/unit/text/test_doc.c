/* SPDX-License-Identifier: Apache-2.0 */
/* test_doc.c - trees, types, places and refusals of src/text/doc.c */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/base/err.h"
#include "src/text/doc.h"

static struct doc *parse(const char *text)
{
	struct diag d = { 0 };
	struct doc *doc;
	int r = doc_parse(span_str(text), &doc, &d);

	if (r)
		fail_msg("%s: %s", text, d.msg);
	return doc;
}

static void doc__types_plain_scalars_and_leaves_quoted_ones(void **state)
{
	static const struct {
		const char *text;
		enum doc_kind kind;
	} rows[] = {
		{ "", DOC_NULL },
		{ "# only a comment\n", DOC_NULL },
		{ "~", DOC_NULL },
		{ "null", DOC_NULL },
		{ "NULL", DOC_NULL },
		{ "nuLL", DOC_STRING },
		{ "true", DOC_BOOL },
		{ "False", DOC_BOOL },
		{ "yes", DOC_STRING },
		{ "on", DOC_STRING },
		{ "0", DOC_NUMBER },
		{ "-12", DOC_NUMBER },
		{ "+3", DOC_NUMBER },
		{ "1.5", DOC_NUMBER },
		{ ".5", DOC_NUMBER },
		{ "5.", DOC_NUMBER },
		{ "1e9", DOC_NUMBER },
		{ "1e", DOC_STRING },
		{ "1.2.3", DOC_STRING },
		{ "0x10", DOC_STRING },
		{ "0o7", DOC_STRING },
		{ ".", DOC_STRING },
		{ "-", DOC_LIST },
		{ "\"true\"", DOC_STRING },
		{ "'12'", DOC_STRING },
		{ "\"\"", DOC_STRING },
		{ "[]", DOC_LIST },
		{ "{}", DOC_MAP },
		{ "10.0.0.0/8", DOC_STRING },
	};
	struct doc *doc;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		doc = parse(rows[i].text);
		if (doc_root(doc)->kind != rows[i].kind)
			fail_msg("%s is %s, expected %s", rows[i].text,
				 doc_kind_name(doc_root(doc)->kind),
				 doc_kind_name(rows[i].kind));
		doc_free(doc);
	}
}

static void doc__remembers_places(void **state)
{
	struct doc *doc = parse("# head\n"
				"policies:\n"
				"  - name: one   # first\n"
				"    rules: [allow, 443]\n"
				"  - {\"name\":\"two\"}\n");
	const struct doc_node *list = doc_find(doc_root(doc), "policies");
	const struct doc_node *one = list->children, *two = one->next, *rules;

	(void)state;
	assert_int_equal(list->count, 2);
	assert_int_equal(list->key_line, 2);
	assert_int_equal(list->key_col, 1);
	assert_int_equal(one->line, 3);
	assert_int_equal(one->col, 5);
	assert_null(one->key.ptr);
	assert_string_equal(doc_find(one, "name")->text.ptr, "one");
	rules = doc_find(one, "rules");
	assert_int_equal(rules->children->next->line, 4);
	assert_int_equal(rules->children->next->col, 20);
	assert_int_equal(rules->children->next->kind, DOC_NUMBER);
	assert_string_equal(doc_find(two, "name")->text.ptr, "two");
	assert_null(doc_find(two, "rules"));
	assert_null(doc_find(rules, "name"));
	assert_null(two->next);
	doc_free(doc);
}

static void doc__reads_json_in_every_layout(void **state)
{
	static const char *const texts[] = {
		"{\"a\":{\"b\":[1,true,null,\"x\\u00e9\\/\"]}}",
		"{\n\t\"a\":\n{\"b\":[1,true\n,null,\"x\\u00e9/\"]\n}}\n",
		"{ \"a\" : { \"b\" : [ 1 , true , null , \"x\303\251/\" ] } }",
		"a:\n  b:\n  - 1\n  - true\n  -\n  - \"x\303\251/\"\n",
	};
	const struct doc_node *n;
	struct doc *doc;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(texts); i++) {
		doc = parse(texts[i]);
		n = doc_find(doc_find(doc_root(doc), "a"), "b");
		assert_int_equal(n->count, 4);
		n = n->children;
		assert_int_equal(n->kind, DOC_NUMBER);
		assert_int_equal(n->next->kind, DOC_BOOL);
		assert_int_equal(n->next->next->kind, DOC_NULL);
		assert_string_equal(n->next->next->next->text.ptr,
				    "x\303\251/");
		doc_free(doc);
	}
}

static void doc__refuses_with_place_and_sentence(void **state)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{ "a: &x 1\n", "1:4: found a YAML anchor or tag" },
		{ "a: !!str 1\n", "1:4: found a YAML anchor or tag" },
		{ "a: ! 1\n", "1:4: found a YAML anchor or tag" },
		{ "a: &x [1]\n", "1:4: found a YAML anchor or tag" },
		{ "a: !x {b: 1}\n", "1:4: found a YAML anchor or tag" },
		{ "a: 1\nb: *a\n", "2:4: found an unquoted '*'" },
		{ "- target: *.example.com\n", "1:11: found an unquoted '*'" },
		{ "a: 1\n---\nb: 2\n", "2:1: found a second document" },
		{ "a: 1\nb: 2\na: 3\n", "3:1: found the key \"a\" twice" },
		{ "{\"a\":1,\"a\":1}", "1:8: found the key \"a\" twice" },
		{ "? [1]\n: 2\n", "1:3: found a list or map as a key" },
		{ "a: \"x\\0y\"\n", "1:4: found a NUL" },
		{ "a: [1, 2\n", "2:1: found text that is no YAML or JSON" },
		{ "a: \t- x: [\n", "found text that is no YAML or JSON" },
		{ "a: \377\n", "found bytes that are no text" },
		{ "\"\\ud83d\"", "found text that is no YAML or JSON" },
		{ "{,}", "found text that is no YAML or JSON" },
	};
	struct doc *doc = NULL;
	char text[800];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct diag d = { 0 };

		assert_int_equal(doc_parse(span_str(rows[i].text), &doc, &d),
				 -EINVAL);
		assert_null(doc);
		diag_text(&d, text, sizeof(text));
		if (!strstr(text, rows[i].error))
			fail_msg("%s\ngave   %s\nwanted %s", rows[i].text, text,
				 rows[i].error);
	}
}

static void doc__bounds_depth_and_size(void **state)
{
	char *deep = must_alloc(2 * DOC_DEPTH_MAX + 3);
	struct diag d = { 0 };
	struct doc *doc = NULL;

	(void)state;
	memset(deep, '[', DOC_DEPTH_MAX);
	memset(deep + DOC_DEPTH_MAX, ']', DOC_DEPTH_MAX);
	doc = doc_free(parse(deep));
	memset(deep, '[', DOC_DEPTH_MAX + 1);
	memset(deep + DOC_DEPTH_MAX + 1, ']', DOC_DEPTH_MAX + 1);
	assert_int_equal(doc_parse(span_str(deep), &doc, &d), -EINVAL);
	assert_non_null(strstr(d.msg, "nested too deep"));
	assert_int_equal(d.col, DOC_DEPTH_MAX + 1);
	free(deep);

	d = (struct diag){ 0 };
	assert_int_equal(doc_parse(span_of("", DOC_TEXT_MAX + 1), &doc, &d),
			 -EINVAL);
	assert_non_null(strstr(d.msg, "33554433 bytes"));
	assert_null(doc);
}

static void doc__holds_many_small_values(void **state)
{
	enum { COUNT = 200000 };
	char *text = must_alloc(2 * COUNT + 2);
	struct doc *doc;
	unsigned i;

	(void)state;
	text[0] = '[';
	for (i = 0; i < COUNT; i++) {
		text[2 * i + 1] = '1';
		text[2 * i + 2] = i == COUNT - 1 ? ']' : ',';
	}
	doc = parse(text);
	assert_int_equal(doc_root(doc)->count, COUNT);
	doc_free(doc);
	free(text);
}

static void doc__finds_a_duplicate_among_many_keys(void **state)
{
	char text[4096] = "", line[32];
	struct doc *doc = NULL;
	struct diag d = { 0 };
	size_t len = 0;
	int i;

	(void)state;
	for (i = 0; i < 100; i++) {
		(void)snprintf(line, sizeof(line), "k%d: %d\n", i, i);
		memcpy(text + len, line, strlen(line) + 1);
		len += strlen(line);
	}
	doc = parse(text);
	assert_int_equal(doc_root(doc)->count, 100);
	assert_string_equal(doc_find(doc_root(doc), "k77")->text.ptr, "77");
	doc = doc_free(doc);

	memcpy(text + len, "k50: 1\n", sizeof("k50: 1\n"));
	assert_int_equal(doc_parse(span_str(text), &doc, &d), -EINVAL);
	assert_int_equal(d.line, 101);
	assert_non_null(strstr(d.msg, "\"k50\" twice"));
}

static void doc__getters_say_what_was_found(void **state)
{
	struct doc *doc = parse("s: text\nb: true\nn: 80\nf: 1.5\nl: [x]\n"
				"z:\n");
	const struct doc_node *root = doc_root(doc);
	struct span s = SPAN_NONE;
	struct diag d = { 0 };
	uint64_t u = 0;
	bool b = false;

	(void)state;
	assert_int_equal(doc_get_string(doc_find(root, "s"), &s, &d), 0);
	assert_true(span_eq(s, SPAN("text")));
	assert_int_equal(doc_get_bool(doc_find(root, "b"), &b, &d), 0);
	assert_true(b);
	assert_int_equal(doc_get_u64(doc_find(root, "n"), 1, 65535, &u, &d), 0);
	assert_int_equal(u, 80);

	assert_int_equal(doc_get_string(doc_find(root, "n"), &s, &d), -EINVAL);
	assert_string_equal(d.msg, "n: found a number, expected a string");
	assert_int_equal(d.line, 3);
	assert_int_equal(d.col, 4);
	d = (struct diag){ 0 };
	assert_int_equal(doc_get_bool(doc_find(root, "z"), &b, &d), -EINVAL);
	assert_string_equal(d.msg, "z: found null, expected true or false");
	d = (struct diag){ 0 };
	assert_int_equal(doc_get_u64(doc_find(root, "f"), 0, 9, &u, &d),
			 -EINVAL);
	assert_string_equal(d.msg, "f: found \"1.5\", expected a whole number "
				   "from 0 to 9");
	d = (struct diag){ 0 };
	assert_int_equal(doc_get_u64(doc_find(root, "n"), 0, 79, &u, &d),
			 -EINVAL);
	d = (struct diag){ 0 };
	assert_int_equal(doc_get_string(doc_find(root, "l")->children->next
						? NULL
						: doc_find(root, "l"),
					&s, &d),
			 -EINVAL);
	assert_string_equal(d.msg, "l: found a list, expected a string");
	doc_free(doc);
}

static void doc__check_keys_suggests(void **state)
{
	static const char *const known[] = { "name", "egress", NULL };
	struct doc *doc = parse("name: x\negres: []\n");
	struct diag d = { 0 };

	(void)state;
	assert_int_equal(doc_check_keys(doc_root(doc), known, &d), -EINVAL);
	assert_string_equal(d.msg, "found the unknown key \"egres\", expected "
				   "perhaps \"egress\"");
	assert_int_equal(d.line, 2);
	assert_int_equal(d.col, 1);
	doc_free(doc);

	doc = parse("name: x\nzzzzzzzz: []\n");
	d = (struct diag){ 0 };
	assert_int_equal(doc_check_keys(doc_root(doc), known, &d), -EINVAL);
	assert_string_equal(d.msg, "found the unknown key \"zzzzzzzz\"");
	doc_free(doc);

	doc = parse("[1]");
	d = (struct diag){ 0 };
	assert_int_equal(doc_check_keys(doc_root(doc), known, &d), -EINVAL);
	assert_string_equal(d.msg, "found a list, expected a map");
	doc_free(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			doc__types_plain_scalars_and_leaves_quoted_ones),
		cmocka_unit_test(doc__remembers_places),
		cmocka_unit_test(doc__reads_json_in_every_layout),
		cmocka_unit_test(doc__refuses_with_place_and_sentence),
		cmocka_unit_test(doc__bounds_depth_and_size),
		cmocka_unit_test(doc__holds_many_small_values),
		cmocka_unit_test(doc__finds_a_duplicate_among_many_keys),
		cmocka_unit_test(doc__getters_say_what_was_found),
		cmocka_unit_test(doc__check_keys_suggests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
