/* SPDX-License-Identifier: Apache-2.0 */
/* test_table.c - cells of tables, and audit records as sentences */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/base/diag.h"
#include "src/base/span.h"
#include "src/cli/api.h"
#include "src/cli/audit_stream.h"
#include "src/cli/body.h"
#include "src/cli/table.h"
#include "src/text/json.h"

static void table__cells(void **state)
{
	static const struct {
		const char *member, *cell;
	} cases[] = {
		{ "s", "x\\x1by" },    { "n", "-7" },	 { "t", "true" },
		{ "z", "-" },	       { "none", "-" },	 { "a", "1,b,c" },
		{ "o", "k=v,l=1,m" },  { "o.l", "1,m" }, { "e", "-" },
		{ "o.k.deeper", "-" },
	};
	struct json *j CLEANUP_JSON = NULL;
	char cell[64];
	unsigned i;

	(void)state;
	assert_int_equal(
		json_parse(SPAN("{\"s\":\"x\\u001by\",\"n\":-7,"
				"\"t\":true,\"z\":null,\"e\":[],"
				"\"a\":[1,\"b\",\"c\"],"
				"\"o\":{\"k\":\"v\",\"l\":[1,\"m\"]}}"),
			   &j, NULL),
		0);
	for (i = 0; i < ARRAY_LEN(cases); i++)
		assert_string_equal(
			table_cell(j, cases[i].member, cell, sizeof(cell)),
			cases[i].cell);
	/* cut, not overrun */
	assert_int_equal(strlen(table_cell(j, "s", cell, 4)) < 4, 1);
}

static void audit__sentences(void **state)
{
	static const struct {
		const char *record, *sentence;
	} cases[] = {
		{ "{\"time\":\"T\",\"kind\":\"http\",\"sandbox\":\"s\","
		  "\"scheme\":\"https\",\"host\":\"a.test\",\"port\":443,"
		  "\"verdict\":\"allow\",\"method\":\"GET\",\"path\":\"/x\","
		  "\"binding\":\"b\",\"injected\":true,\"status\":200}",
		  "T s allow GET https://a.test/x 200 injected b" },
		{ "{\"time\":\"T\",\"kind\":\"dns\",\"sandbox\":\"s\","
		  "\"scheme\":\"dns\",\"host\":\"b.test\","
		  "\"verdict\":\"deny\",\"reason\":\"policy\","
		  "\"port\":53,\"detail\":\"by rule 3\"}",
		  "T s deny  dns dns://b.test (policy): by rule 3" },
		{ "{\"kind\":\"connect\",\"original\":\"1.2.3.4:25\","
		  "\"verdict\":\"deny\",\"reason\":\"unknown_sandbox\"}",
		  "- - deny  connect tcp://1.2.3.4:25 (unknown_sandbox)" },
		{ "{}", "- - -     - tcp://-" },
		{ "{\"host\":\"\\n\\u0007\",\"verdict\":7}",
		  "- - -     - tcp://\\x0a\\x07" },
	};
	struct json *j;
	char line[512];
	unsigned i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(
			json_parse(span_str(cases[i].record), &j, NULL), 0);
		assert_string_equal(audit_sentence(j, line, sizeof(line)),
				    cases[i].sentence);
		j = json_free(j);
	}
}

static void api__paths(void **state)
{
	struct api_path p;

	(void)state;
	api_path_set(&p, "/v1/things", SPAN("a/b c%"));
	assert_string_equal(p.text, "/v1/things/a%2Fb%20c%25");
	api_path_set(&p, "/v1/audit?sandbox=", SPAN("x&y"));
	assert_string_equal(p.text, "/v1/audit?sandbox=x%26y");
}

static int count(void *ctx, const struct json *binding)
{
	(void)binding;
	return ++*(int *)ctx == 3 ? 9 : 0;
}

static void body__bindings_in_each_form(void **state)
{
	static const struct {
		const char *text;
		int seen, result;
	} cases[] = {
		{ "{\"name\":\"a\"}", 1, 0 },
		{ "[{\"name\":\"a\"},{\"name\":\"b\"}]", 2, 0 },
		{ "{\"bindings\":[{},{}]}", 2, 0 },
		{ "[]", 0, 0 },
		{ "[{},{},{},{}]", 3, 9 }, /* stops where it fails */
	};
	struct json *j;
	unsigned i;
	int seen;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		seen = 0;
		assert_int_equal(json_parse(span_str(cases[i].text), &j, NULL),
				 0);
		assert_int_equal(body_each_binding(j, count, &seen),
				 cases[i].result);
		assert_int_equal(seen, cases[i].seen);
		j = json_free(j);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table__cells),
		cmocka_unit_test(audit__sentences),
		cmocka_unit_test(api__paths),
		cmocka_unit_test(body__bindings_in_each_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
