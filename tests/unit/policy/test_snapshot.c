/* SPDX-License-Identifier: Apache-2.0 */
/* test_snapshot.c - what snapshot_open() lets through, and what it refuses */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/compile.h"
#include "policy/load.h"
#include "policy/rules.h"
#include "src/base/buf.h"
#include "src/base/err.h"

static const char text[] =
	"deny: [bad.example]\n"
	"allow: [good.example, \"*.good.example\"]\n"
	"policies:\n"
	"- name: agents\n"
	"  egress:\n"
	"  - {action: allow, target: a.example, ports: [1, \"2-9\"]}\n"
	"  - {action: deny, target: \"*.a.example\", methods: [GET]}\n"
	"  - {action: allow, target: b.example, paths: [/x, \"/y*\"]}\n"
	"  - {action: deny, target: 10.0.0.0/8}\n"
	"  - {action: allow, target: 10.1.0.0/16, ports: [7]}\n"
	"  - {action: allow, target: \"2001:db8::/32\"}\n"
	"  inspect: [\"*.i.example\"]\n"
	"  limits: {connections: 0, bytesPerSecond: 12345}\n";

struct blobs {
	struct buf policy, overlay;
};

static void compile_both(struct blobs *b)
{
	struct policy_set *set = NULL;
	struct diag d = { 0 };

	buf_init(&b->policy, 1 << 20);
	buf_init(&b->overlay, 1 << 20);
	if (policy_load_text(span_str(text), "f", &set, &d))
		fail_msg("%u:%u: %s", d.line, d.col, d.msg);
	assert_int_equal(policy_compile(set->policies, &b->policy), 0);
	assert_int_equal(policy_compile_overlay(set, &b->overlay), 0);
	policy_set_free(set);
}

static void free_both(struct blobs *b)
{
	buf_fini(&b->policy);
	buf_fini(&b->overlay);
}

/* Asks around, for the sanitizers. */
static void ask_everything(const struct snapshot *overlay,
			   const struct snapshot *policy)
{
	static const char *const hosts[] = { "",
					     "a.example",
					     "x.a.example",
					     "b.example",
					     "i.i.example",
					     "bad.example",
					     "good.example" };
	static const char *const ips[] = { "10.1.2.3", "2001:db8::1", "::" };
	struct verdict_origin o;
	char sentence[512];
	struct addr address;
	struct verdict v;
	unsigned i, k;

	for (i = 0; i < ARRAY_LEN(hosts); i++) {
		for (k = 0; k < 3 * ARRAY_LEN(ips); k++) {
			struct policy_query q = {
				.stage = k / 3,
				.protocol = PROTOCOL_TCP,
				.host = span_str(hosts[i]),
				.address = &address,
				.port = 7,
				.method = SPAN("GET"),
				.path = SPAN("/y"),
			};

			assert_true(addr_parse(span_str(ips[k % 3]), &address));
			policy_match(overlay, policy, &q, &v);
			policy_origin(overlay, policy, &v, &o);
			policy_sentence(overlay, policy, &v, sentence,
					sizeof(sentence));
		}
	}
}

static void snapshot__opens_what_was_compiled(void **state)
{
	struct snapshot policy, overlay;
	struct blobs b;

	(void)state;
	compile_both(&b);
	assert_int_equal(
		snapshot_open(b.policy.data, buf_len(&b.policy), &policy), 0);
	assert_int_equal(
		snapshot_open(b.overlay.data, buf_len(&b.overlay), &overlay),
		0);
	assert_int_equal(policy.generation, 0); /* until somebody says */
	assert_int_equal(snapshot_rule_count(&policy), 6);
	assert_true(span_eq(policy.name, SPAN("")));
	assert_int_equal(snapshot_rule_count(&overlay), 3);
	assert_true(span_eq(overlay.name, SPAN("operator")));
	ask_everything(&overlay, &policy);
	assert_int_equal(snapshot_limits(&policy)->of[LIMIT_CONNECTIONS], 0);
	assert_int_equal(snapshot_limits(&policy)->of[LIMIT_BYTES], 12345);
	assert_true(snapshot_limits(&policy)->of[LIMIT_DNS] == LIMIT_UNSAID);
	assert_false(policy_limits_say(snapshot_limits(&overlay)));
	free_both(&b);
}

/* A limit out of its bounds would be an overflow somewhere. */
static void snapshot__refuses_limits_out_of_bounds(void **state)
{
	struct snapshot_head *h;
	struct snapshot s;
	struct blobs b;
	unsigned i;

	(void)state;
	compile_both(&b);
	h = (struct snapshot_head *)b.policy.data;
	for (i = 0; i < LIMIT_NUM; i++) {
		h->limits.of[i] = policy_limit_max((enum policy_limit)i);
		assert_int_equal(snapshot_open(h, buf_len(&b.policy), &s), 0);
		h->limits.of[i]++;
		assert_int_equal(snapshot_open(h, buf_len(&b.policy), &s),
				 -EINVAL);
		h->limits.of[i] = LIMIT_UNSAID;
	}
	free_both(&b);
}

static void snapshot__same_input_same_bytes(void **state)
{
	struct blobs a, b;

	(void)state;
	compile_both(&a);
	compile_both(&b);
	assert_true(span_eq(buf_peek(&a.policy), buf_peek(&b.policy)));
	assert_true(span_eq(buf_peek(&a.overlay), buf_peek(&b.overlay)));
	free_both(&a);
	free_both(&b);
}

static void snapshot__refuses_truncated_and_misaligned(void **state)
{
	struct snapshot s;
	struct blobs b;
	size_t len, cut;
	char *copy;

	(void)state;
	compile_both(&b);
	len = buf_len(&b.policy);
	for (cut = 0; cut < len; cut++) {
		copy = must_alloc(cut + 1);
		memcpy(copy, b.policy.data, cut);
		assert_int_equal(snapshot_open(copy, cut, &s), -EINVAL);
		free(copy);
	}
	copy = must_alloc(len + 16);
	memcpy(copy + 8, b.policy.data, len);
	assert_int_equal(snapshot_open(copy + 8, len, &s), -EINVAL);
	memcpy(copy, b.policy.data, len);
	assert_int_equal(snapshot_open(copy, len + 1, &s), -EINVAL);
	assert_int_equal(snapshot_open(copy, len, &s), 0);
	free(copy);
	free_both(&b);
}

/* Every byte set to a few values, one at a time: refused, or harmless. */
static void snapshot__survives_every_broken_byte(void **state)
{
	static const uint8_t values[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };
	struct snapshot policy, overlay;
	struct blobs b;
	size_t at, len;
	unsigned i;
	uint8_t kept;

	(void)state;
	compile_both(&b);
	len = buf_len(&b.policy);
	assert_int_equal(
		snapshot_open(b.overlay.data, buf_len(&b.overlay), &overlay),
		0);
	for (at = 0; at < len; at++) {
		kept = (uint8_t)b.policy.data[at];
		for (i = 0; i < ARRAY_LEN(values); i++) {
			b.policy.data[at] = (char)values[i];
			if (!snapshot_open(b.policy.data, len, &policy))
				ask_everything(&overlay, &policy);
		}
		b.policy.data[at] = (char)kept;
	}
	free_both(&b);
}

/* What people read is put together from what is matched. */
static void snapshot__has_every_rule_as_it_was_written(void **state)
{
	static const char rules[] =
		"policies:\n"
		"- name: p\n"
		"  sandboxes: {ids: [a, \"b*\"], labels: {k: v}}\n"
		"  defaultAction: allow\n"
		"  egress:\n"
		"  - {action: allow, target: a.example}\n"
		"  - {action: allow, target: \"*.a.example\", ports: [1]}\n"
		"  - {action: deny, target: a.example, ports: [1, \"2-9\"]}\n"
		"  - {action: deny, target: 10.0.0.0/8, protocol: udp}\n"
		"  - {action: allow, target: 10.0.0.1, protocol: icmp}\n"
		"  - {action: allow, target: \"2001:db8::/32\", ports: [7]}\n"
		"  - {action: allow, target: \"*.a.example\", methods: [GET,"
		" POST], paths: [/x, \"/y*\"]}\n"
		"  - {action: allow, target: b.example, methods: [GET, POST],"
		" paths: [/x, \"/y*\"], ports: [1]}\n"
		"  - {action: deny, target: a.example}\n"
		"  inspect: [\"*.i.example\", i.example]\n"
		"  passthrough: [z.example]\n"
		"  limits: {connections: 5}\n";
	CLEANUP(buf_fini) struct buf written = BUF_INIT(1 << 16);
	CLEANUP(buf_fini) struct buf compiled = BUF_INIT(1 << 16);
	CLEANUP(buf_fini) struct buf bytes = BUF_INIT(1 << 16);
	CLEANUP_POLICY_SET struct policy_set *set = NULL;
	struct policy_ports ports[2];
	struct span strings[4];
	struct policy_rule_room room = { .ports = ports,
					 .strings = strings,
					 .port_room = 2,
					 .string_room = 4 };
	struct policy_model *brief;
	struct policy_rule rule;
	struct diag d = { 0 };
	struct snapshot s;
	uint32_t i;

	(void)state;
	if (policy_load_text(span_str(rules), "file", &set, &d))
		fail_msg("%u:%u: %s", d.line, d.col, d.msg);
	assert_int_equal(policy_compile(set->policies, &bytes), 0);
	assert_int_equal(snapshot_open(bytes.data, buf_len(&bytes), &s), 0);
	brief = policy_model_brief(set->policies);
	assert_int_equal(brief->rule_count, 0);
	assert_int_equal(policy_emit(set->policies, &written), 0);
	assert_int_equal(policy_emit_compiled(brief, &s, &compiled), 0);
	assert_int_equal(buf_len(&written), buf_len(&compiled));
	assert_memory_equal(written.data, compiled.data, buf_len(&written));
	assert_int_equal(snapshot_rule_count(&s), 9);
	for (i = 0; i < 9; i++) {
		policy_rule_read(&s, i, &room, &rule);
		assert_int_equal(rule.line, 6 + i);
		assert_true(span_eq(rule.file, SPAN("file")));
	}
	free(brief);
}

/* Overlays come from many files. */
static void snapshot__knows_the_files_of_overlays(void **state)
{
	static const struct policy_source sources[] = {
		{ SPAN("deny: [a.example, b.example]\nallow: [c.example]\n"),
		  "one" },
		{ SPAN("\ndeny: [d.example]\n"), "two" },
		{ SPAN("allow: [e.example]\n"), "three" },
	};
	static const struct {
		const char *file;
		uint32_t line;
	} expected[] = { { "one", 1 },
			 { "one", 1 },
			 { "two", 2 },
			 { "one", 2 },
			 { "three", 1 } };
	CLEANUP(buf_fini) struct buf bytes = BUF_INIT(1 << 16);
	CLEANUP_POLICY_SET struct policy_set *set = NULL;
	struct policy_rule_room none = { 0 };
	struct policy_rule rule;
	struct diag d = { 0 };
	struct snapshot s;
	uint32_t i;

	(void)state;
	assert_int_equal(policy_load_texts(sources, 3, &set, &d), 0);
	assert_int_equal(policy_compile_overlay(set, &bytes), 0);
	assert_int_equal(snapshot_open(bytes.data, buf_len(&bytes), &s), 0);
	for (i = 0; i < ARRAY_LEN(expected); i++) {
		policy_rule_read(&s, i, &none, &rule);
		assert_true(span_eq(rule.file, span_str(expected[i].file)));
		assert_int_equal(rule.line, expected[i].line);
	}
}

/* More names than places of 24 bits can tell apart. */
static void snapshot__of_many_long_names_has_wide_slots(void **state)
{
	enum { NAMES = 300000, NAME_LEN = 240 };
	struct policy_rule *rules = must_alloc(NAMES * sizeof(*rules));
	char *names = must_alloc((size_t)NAMES * (NAME_LEN + 1));
	struct policy_query q = { .stage = POLICY_CONNECT,
				  .protocol = PROTOCOL_TCP,
				  .port = 1 };
	struct policy_model m = { .name = SPAN("m"),
				  .rules = rules,
				  .rule_count = NAMES,
				  .file = SPAN("f") };
	struct buf bytes = BUF_INIT((size_t)1 << 28);
	struct verdict_origin o;
	struct snapshot s;
	struct verdict v;
	unsigned i, k;
	char *name;

	(void)state;
	for (i = 0; i < NAMES; i++) {
		name = names + (size_t)i * (NAME_LEN + 1);
		for (k = 0; k < NAME_LEN; k++)
			name[k] = k % 40 == 39 ? '.' : 'n';
		(void)snprintf(name + NAME_LEN - 8, 9, "%08u", i);
		rules[i].action = VERDICT_ALLOW;
		rules[i].protocol = PROTOCOL_TCP;
		rules[i].target.name = span_of(name, NAME_LEN);
		rules[i].file = m.file;
	}
	policy_limits_init(&m.limits);
	assert_int_equal(policy_compile(&m, &bytes), 0);
	assert_int_equal(snapshot_open(bytes.data, buf_len(&bytes), &s), 0);
	assert_int_equal(s.head->wide, 1);
	for (i = 0; i < NAMES; i += 999) {
		q.host = rules[i].target.name;
		policy_match(NULL, &s, &q, &v);
		assert_int_equal(v.kind, VERDICT_ALLOW);
		assert_int_equal(v.rule, i);
		policy_origin(NULL, &s, &v, &o);
		assert_int_equal(o.rule.len, 6 + NAME_LEN);
	}
	q.host = SPAN("nobody.example");
	policy_match(NULL, &s, &q, &v);
	assert_int_equal(v.source, VERDICT_DEFAULT);
	buf_fini(&bytes);
	free(names);
	free(rules);
}

static void compile__reports_a_small_buffer(void **state)
{
	struct policy_set *set = NULL;
	struct diag d = { 0 };
	struct buf out;
	size_t max, len;

	(void)state;
	assert_int_equal(policy_load_text(span_str(text), "f", &set, &d), 0);
	buf_init(&out, 1 << 20);
	assert_int_equal(policy_compile(set->policies, &out), 0);
	len = buf_len(&out);
	buf_fini(&out);
	for (max = 0; max < len; max++) {
		buf_init(&out, max);
		assert_int_equal(policy_compile(set->policies, &out), -ENOBUFS);
		assert_int_equal(buf_len(&out), 0);
		buf_fini(&out);
	}
	policy_set_free(set);
}

/* Long names with the most labels a name can have, and one host too long. */
static void match__bounds_the_name(void **state)
{
	struct policy_query q = { .stage = POLICY_CONNECT,
				  .protocol = PROTOCOL_TCP,
				  .port = 1 };
	struct snapshot policy;
	struct verdict v;
	struct blobs b;
	char host[400];
	size_t i;

	(void)state;
	compile_both(&b);
	assert_int_equal(
		snapshot_open(b.policy.data, buf_len(&b.policy), &policy), 0);
	for (i = 0; i < sizeof(host); i++)
		host[i] = i % 2 ? '.' : 'a';
	q.host = span_of(host, 253);
	policy_match(NULL, &policy, &q, &v);
	assert_int_equal(v.source, VERDICT_DEFAULT);
	q.host = span_of(host, 254);
	policy_match(NULL, &policy, &q, &v);
	assert_int_equal(v.source, VERDICT_NOTHING);
	memset(host, '.', sizeof(host));
	q.host = span_of(host, 253);
	policy_match(NULL, &policy, &q, &v);
	assert_int_equal(v.source, VERDICT_DEFAULT);
	free_both(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(snapshot__opens_what_was_compiled),
		cmocka_unit_test(snapshot__refuses_limits_out_of_bounds),
		cmocka_unit_test(snapshot__same_input_same_bytes),
		cmocka_unit_test(snapshot__refuses_truncated_and_misaligned),
		cmocka_unit_test(snapshot__survives_every_broken_byte),
		cmocka_unit_test(snapshot__has_every_rule_as_it_was_written),
		cmocka_unit_test(snapshot__knows_the_files_of_overlays),
		cmocka_unit_test(snapshot__of_many_long_names_has_wide_slots),
		cmocka_unit_test(compile__reports_a_small_buffer),
		cmocka_unit_test(match__bounds_the_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
