/* SPDX-License-Identifier: Apache-2.0 */
/* test_model.c - choosing policies, printing them, reading them back */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/compile.h"
#include "policy/load.h"
#include "src/base/buf.h"
#include "src/base/err.h"

static struct policy_set *load_one(struct span text)
{
	struct policy_set *set = NULL;
	struct diag d = { 0 };

	if (policy_load_one(text, "body", SPAN_NONE, &set, &d))
		fail_msg("%.*s\n%u:%u: %s", SPAN_FMT(text), d.line, d.col,
			 d.msg);
	return set;
}

static const char *const policies[] = {
	"{\"name\":\"a\",\"defaultAction\":\"deny\",\"egress\":[]}",

	"{\"name\":\"a\",\"defaultAction\":\"allow\",\"egress\":["
	"{\"action\":\"deny\",\"target\":\"a.example\"},"
	"{\"action\":\"allow\",\"target\":\"*.b.example\","
	"\"ports\":[443,\"8000-8100\"],\"protocol\":\"udp\"},"
	"{\"action\":\"allow\",\"target\":\"10.0.0.0/8\"},"
	"{\"action\":\"allow\",\"target\":\"10.0.0.1\","
	"\"protocol\":\"icmp\"},"
	"{\"action\":\"allow\",\"target\":\"2001:db8::/32\"},"
	"{\"action\":\"allow\",\"target\":\"0.0.0.0/0\"},"
	"{\"action\":\"allow\",\"target\":\"::/0\"},"
	"{\"action\":\"allow\",\"target\":\"c.example\","
	"\"methods\":[\"GET\",\"M-SEARCH\"],"
	"\"paths\":[\"/\",\"/v1/*\",\"/a%20b\",\"/\\\"q\\\"\"]}]}",

	"{\"name\":\"A.b_c-1\",\"sandboxes\":{\"ids\":[\"x\",\"y*\"],"
	"\"labels\":{\"team\":\"r\\\"ed\",\"\xc3\xa9\":\"\"}},"
	"\"defaultAction\":\"deny\",\"egress\":[],"
	"\"inspect\":[\"i.example\",\"*.i.example\"],"
	"\"passthrough\":[\"*.p.example\"]}",

	"{\"name\":\"l\",\"defaultAction\":\"deny\",\"egress\":[],"
	"\"limits\":{\"connections\":0,\"connectionsPerSecond\":1000000,"
	"\"bytesPerSecond\":1000000000000,\"dnsPerSecond\":7,"
	"\"mintsPerSecond\":1}}",
};

static void model__emits_what_it_reads_back(void **state)
{
	struct buf out = BUF_INIT(65536);
	struct policy_set *set;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(policies); i++) {
		set = load_one(span_str(policies[i]));
		assert_int_equal(policy_emit(set->policies, &out), 0);
		if (!span_eq(buf_peek(&out), span_str(policies[i])))
			fail_msg("%s\nbecame\n%.*s", policies[i],
				 SPAN_FMT(buf_peek(&out)));
		buf_clear(&out);
		policy_set_free(set);
	}
	buf_fini(&out);
	buf_init(&out, 20);
	set = load_one(span_str(policies[0]));
	assert_int_equal(policy_emit(set->policies, &out), -ENOBUFS);
	policy_set_free(set);
	buf_fini(&out);
}

static void model__chooses_by_id_or_by_all_labels(void **state)
{
	static const struct policy_label red = { SPAN_INIT("team"),
						 SPAN_INIT("red") };
	static const struct policy_label both[] = {
		{ SPAN_INIT("stage"), SPAN_INIT("prod") },
		{ SPAN_INIT("team"), SPAN_INIT("red") },
	};
	struct policy_set *set = load_one(
		SPAN("{name: a, sandboxes: {ids: [box, \"ci-*\"], labels: "
		     "{team: red, stage: prod}}}"));
	const struct policy_model *m = set->policies;

	(void)state;
	assert_true(policy_chooses(m, SPAN("box"), NULL, 0));
	assert_true(policy_chooses(m, SPAN("ci-"), NULL, 0));
	assert_true(policy_chooses(m, SPAN("ci-77"), NULL, 0));
	assert_false(policy_chooses(m, SPAN("box2"), NULL, 0));
	assert_false(policy_chooses(m, SPAN("ci"), NULL, 0));
	assert_false(policy_chooses(m, SPAN(""), NULL, 0));
	assert_false(policy_chooses(m, SPAN("z"), &red, 1));
	assert_true(policy_chooses(m, SPAN("z"), both, 2));
	assert_ptr_equal(policy_select(set, SPAN("z"), both, 2), m);
	assert_null(policy_select(set, SPAN("z"), &red, 1));
	policy_set_free(set);

	set = load_one(SPAN("{name: a}"));
	assert_false(policy_chooses(set->policies, SPAN("z"), both, 2));
	policy_set_free(set);
}

static void model__cuts_a_long_rule(void **state)
{
	struct policy_set *set = load_one(span_str(policies[1]));
	const struct policy_rule *r = &set->policies->rules[7];
	char text[128], cut[24];

	(void)state;
	assert_string_equal(
		policy_rule_text(r, text, sizeof(text)),
		"allow c.example GET,M-SEARCH /,/v1/*,/a%20b,/\"q\"");
	assert_string_equal(policy_rule_text(r, cut, sizeof(cut)),
			    "allow c.example GET,...");
	policy_set_free(set);
}

static void model__names_are_total(void **state)
{
	enum policy_protocol p;

	(void)state;
	for (p = PROTOCOL_ANY; p < PROTOCOL_NUM; p++)
		assert_non_null(policy_protocol_name(p));
	assert_string_equal(policy_protocol_name(PROTOCOL_NUM), "unknown");
	assert_false(policy_protocol_parse(SPAN("sctp"), &p));
	for (unsigned i = 0; i < VERDICT_SOURCE_NUM; i++)
		assert_non_null(verdict_source_name(i));
	assert_string_equal(verdict_source_name(VERDICT_SOURCE_NUM), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(model__emits_what_it_reads_back),
		cmocka_unit_test(model__chooses_by_id_or_by_all_labels),
		cmocka_unit_test(model__cuts_a_long_rule),
		cmocka_unit_test(model__names_are_total),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
