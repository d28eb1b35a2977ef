/* SPDX-License-Identifier: Apache-2.0 */
/* test_snapshot.c - what snapshot_open() lets through, and what it refuses */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/compile.h"
#include "policy/layout.h"
#include "policy/load.h"
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
	assert_int_equal(policy_compile(set->policies, 41, &b->policy), 0);
	assert_int_equal(policy_compile_overlay(set, 42, &b->overlay), 0);
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
	assert_int_equal(snapshot_generation(&policy), 41);
	assert_int_equal(snapshot_rule_count(&policy), 6);
	assert_true(span_eq(snapshot_name(&policy), SPAN("agents")));
	assert_int_equal(snapshot_rule_count(&overlay), 3);
	assert_true(span_eq(snapshot_name(&overlay), SPAN("operator")));
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

static void compile__reports_a_small_buffer(void **state)
{
	struct policy_set *set = NULL;
	struct diag d = { 0 };
	struct buf out;
	size_t max, len;

	(void)state;
	assert_int_equal(policy_load_text(span_str(text), "f", &set, &d), 0);
	buf_init(&out, 1 << 20);
	assert_int_equal(policy_compile(set->policies, 1, &out), 0);
	len = buf_len(&out);
	buf_fini(&out);
	for (max = 0; max < len; max++) {
		buf_init(&out, max);
		assert_int_equal(policy_compile(set->policies, 1, &out),
				 -ENOBUFS);
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
		cmocka_unit_test(compile__reports_a_small_buffer),
		cmocka_unit_test(match__bounds_the_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
