/* SPDX-License-Identifier: Apache-2.0 */
/* test_case.c - questions in words, and case files that are none */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/case.h"

#define POLICY "--- policy p.yaml\npolicies: [{name: p}]\n"
#define DENIED "deny: denied by the default action of policy p (p.yaml:1)\n"

static void question__reads_every_form(void **state)
{
	static const struct {
		const char *text;
		enum policy_stage stage;
		enum policy_protocol protocol;
		const char *host, *address;
		uint16_t port;
		const char *method, *path;
	} rows[] = {
		{ "name A.example.", POLICY_NAME, 0, "a.example", NULL, 0, NULL,
		  NULL },
		{ "connect a.example", POLICY_CONNECT, PROTOCOL_TCP,
		  "a.example", NULL, 443, NULL, NULL },
		{ " connect  udp a.example:53 at ::1 ", POLICY_CONNECT,
		  PROTOCOL_UDP, "a.example", "::1", 53, NULL, NULL },
		{ "connect icmp 10.0.0.1", POLICY_CONNECT, PROTOCOL_ICMP, NULL,
		  "10.0.0.1", 0, NULL, NULL },
		{ "connect [::1]:22", POLICY_CONNECT, PROTOCOL_TCP, NULL, "::1",
		  22, NULL, NULL },
		{ "connect ::1", POLICY_CONNECT, PROTOCOL_TCP, NULL, "::1", 443,
		  NULL, NULL },
		{ "get https://A.example/a/../b?c=d", POLICY_REQUEST,
		  PROTOCOL_TCP, "a.example", NULL, 443, "GET", "/b" },
		{ "POST http://a.example at 10.0.0.1", POLICY_REQUEST,
		  PROTOCOL_TCP, "a.example", "10.0.0.1", 80, "POST", "/" },
		{ "PUT https://[2001:db8::1]:8443/x", POLICY_REQUEST,
		  PROTOCOL_TCP, NULL, "2001:db8::1", 8443, "PUT", "/x" },
		{ "GET https://a.example/a%2fb", POLICY_REQUEST, PROTOCOL_TCP,
		  "a.example", NULL, 443, "GET", NULL },
	};
	struct policy_question q;
	char text[ADDR_TEXT_SIZE];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct diag d = { 0 };

		if (policy_question_parse(span_str(rows[i].text), &q, &d))
			fail_msg("%s: %s", rows[i].text, d.msg);
		assert_int_equal(q.query.stage, rows[i].stage);
		assert_int_equal(q.query.protocol, rows[i].protocol);
		assert_int_equal(q.query.port, rows[i].port);
		assert_true(span_eq(q.query.host, span_str(rows[i].host)));
		assert_true(span_eq(q.query.method, span_str(rows[i].method)));
		assert_true(span_eq(q.query.path, span_str(rows[i].path)));
		assert_int_equal(!q.query.address, !rows[i].address);
		if (rows[i].address)
			assert_string_equal(
				addr_text(q.query.address, text, sizeof(text)),
				rows[i].address);
		policy_question_fini(&q);
	}
}

static void question__refuses_with_column(void **state)
{
	static const struct {
		const char *text, *error;
		unsigned col;
	} rows[] = {
		{ "", "found the end of the question", 0 },
		{ "name", "found the end of the question, expected a host", 0 },
		{ "name 10.0.0.1", "found \"10.0.0.1\", expected a host", 6 },
		{ "name a b", "found \"b\", expected nothing more", 8 },
		{ "connect a:0", "found \"a:0\"", 9 },
		{ "connect a:1 of x", "found \"of\", expected nothing, or",
		  13 },
		{ "connect a:1 at x", "found \"x\", expected an address", 16 },
		{ "connect a:1 at", "found the end of the question", 0 },
		{ "connect a:1 at ::1 x", "found \"x\"", 20 },
		{ "GET a.example", "found \"a.example\", expected a URL", 5 },
		{ "GET", "found the end of the question, expected a URL", 0 },
		{ "GET https:///x", "expected a host or address", 0 },
		{ "G(T https://a/x", "found \"G(T\", expected name", 1 },
		{ "GET https://u@a/x", "found \"u@a\"", 13 },
	};
	struct policy_question q;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct diag d = { 0 };

		assert_int_equal(
			policy_question_parse(span_str(rows[i].text), &q, &d),
			-EINVAL);
		if (!strstr(d.msg, rows[i].error) || d.col != rows[i].col)
			fail_msg("%s: %u: %s", rows[i].text, d.col, d.msg);
	}
}

static void note(void *ctx, const char *sentence)
{
	char *dst = ctx;

	(void)snprintf(dst, 1024, "%s", sentence);
}

static void case__reports_another_answer(void **state)
{
	struct policy_case_result result;
	struct diag d = { 0 };
	char told[1024] = "";

	(void)state;
	assert_int_equal(
		policy_case_run(SPAN(POLICY "--- ask p\n# c\nname a.example\n"
					    "\t" DENIED "name b.example\n"
					    "  allow: what\n"),
				"x.case", note, told, &result, &d),
		0);
	assert_int_equal(result.questions, 2);
	assert_int_equal(result.failed, 1);
	assert_string_equal(told, "x.case:7: name b.example\n"
				  "  expected allow: what\n"
				  "  found    deny: denied by the default "
				  "action of policy p (p.yaml:1)");

	assert_int_equal(policy_case_run(SPAN(POLICY "--- error\np.yaml: x\n"),
					 "x.case", note, told, &result, &d),
			 0);
	assert_int_equal(result.failed, 1);
	assert_non_null(strstr(told, "found    no error"));
}

static void case__refuses_what_is_no_case(void **state)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{ "x\n", "x.case:1: found text outside of any section" },
		{ "--- what\n", "x.case:1: found an unknown section" },
		{ "--- ask p\n", "x.case:1: found questions without a policy" },
		{ "--- error\n", "x.case:1: found an unknown section" },
		{ POLICY "--- ask q\n", "x.case:3: found a name that no pol" },
		{ POLICY "--- ask p\nname a\n",
		  "found a question without its" },
		{ POLICY "--- ask p\nname a\nname b\n",
		  "x.case:5: found a qu" },
		{ POLICY "--- ask p\n  deny\n",
		  "x.case:4: found a verdict wi" },
		{ POLICY "--- ask p\nname 1.2.3.4\n  deny\n",
		  "x.case:4:6: found \"1.2.3.4\"" },
		{ POLICY "--- ask p\n--- policy q\n", "x.case:4: found a pol" },
		{ "--- policy q.yaml\n[]\n--- ask p\n",
		  "q.yaml:1:1: found a list, expected a map" },
	};
	struct policy_case_result result;
	char told[1024], text[1024];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct diag d = { 0 };

		assert_int_equal(policy_case_run(span_str(rows[i].text),
						 "x.case", note, told, &result,
						 &d),
				 -EINVAL);
		if (!strstr(diag_text(&d, text, sizeof(text)), rows[i].error))
			fail_msg("%s\ngave   %s\nwanted %s", rows[i].text, text,
				 rows[i].error);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(question__reads_every_form),
		cmocka_unit_test(question__refuses_with_column),
		cmocka_unit_test(case__reports_another_answer),
		cmocka_unit_test(case__refuses_what_is_no_case),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
