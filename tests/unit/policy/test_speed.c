/* SPDX-License-Identifier: Apache-2.0 */
/* test_speed.c - prints what a decision costs; asserts nothing about time
 *
 * Rules: 70% exact names, 15% wildcards, 15% prefixes of mixed lengths; a
 * third of the name rules have methods and paths. Questions: half about names
 * that have a rule, half about names that have none. "far" asks 16384
 * different ones in turn, so that nothing is in the near caches; "near" asks
 * the same 256 again and again, as sandboxes do. Times depend on the machine
 * and on the build (Debug is -O1), so none is checked.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "policy/compile.h"
#include "policy/explain.h"
#include "src/base/clock.h"
#include "src/base/err.h"

enum { FAR = 16384, NEAR = 256, ROUNDS = 40, NAME_SIZE = 48 };

struct bench {
	unsigned count;
	struct policy_rule *rules;
	char (*names)[NAME_SIZE];
	struct policy_query *questions;
	char (*hosts)[NAME_SIZE];
	struct addr *addresses;
};

static const struct policy_ports https[] = { { 443, 443 } };
static const struct span get[] = { SPAN_INIT("GET") };
static const struct span v1[] = { SPAN_INIT("/v1/*") };

static uint32_t state_of_chance = 1;

static uint32_t chance(uint32_t below)
{
	state_of_chance = state_of_chance * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)(state_of_chance >> 4) * below >> 28);
}

static void make_rule(struct bench *b, unsigned i)
{
	struct policy_rule *r = &b->rules[i];
	char text[32];

	*r = (struct policy_rule){ .action =
					   i % 7 ? VERDICT_ALLOW : VERDICT_DENY,
				   .ports = https,
				   .port_count = i % 2,
				   .file = SPAN("bench.yaml"),
				   .line = i + 1 };
	(void)snprintf(b->names[i], NAME_SIZE, "svc%u.region%u.example%u.com",
		       i, i % 17, i % 1009);
	r->target.name = span_str(b->names[i]);
	if (i % 20 < 14) {
		r->target.kind = TARGET_NAME;
	} else if (i % 20 < 17) {
		r->target.kind = TARGET_WILDCARD;
	} else {
		r->target.kind = TARGET_ADDRESS;
		(void)snprintf(text, sizeof(text), "%u.%u.%u.%u/%u",
			       11 + chance(200), chance(256), chance(256),
			       chance(256), 16 + chance(17));
		assert_true(cidr_parse(span_str(text), &r->target.cidr));
	}
	if (i % 3 == 0 && r->target.kind != TARGET_ADDRESS) {
		r->methods = get;
		r->paths = v1;
		r->method_count = r->path_count = 1;
		r->protocol = PROTOCOL_TCP;
	}
}

static void make_question(struct bench *b, unsigned i)
{
	unsigned rule = chance(b->count);
	char text[32];

	(void)snprintf(b->hosts[i], NAME_SIZE, "%s%s",
		       rule % 20 >= 14 ? "deep.er." : "",
		       i % 2 ? b->names[rule] : "www.unknown-host.example.org");
	(void)snprintf(text, sizeof(text), "%u.%u.%u.%u", 11 + chance(200),
		       chance(256), chance(256), chance(256));
	assert_true(addr_parse(span_str(text), &b->addresses[i]));
	b->questions[i] = (struct policy_query){
		.stage = POLICY_CONNECT,
		.protocol = PROTOCOL_TCP,
		.host = span_str(b->hosts[i]),
		.port = 443,
		.method = SPAN("GET"),
		.path = SPAN("/v1/models"),
	};
}

static void bench_init(struct bench *b, unsigned count)
{
	unsigned i;

	b->count = count;
	b->rules = must_alloc(count * sizeof(*b->rules));
	b->names = must_alloc(count * sizeof(*b->names));
	b->questions = must_alloc(FAR * sizeof(*b->questions));
	b->hosts = must_alloc(FAR * sizeof(*b->hosts));
	b->addresses = must_alloc(FAR * sizeof(*b->addresses));
	for (i = 0; i < count; i++)
		make_rule(b, i);
	for (i = 0; i < FAR; i++)
		make_question(b, i);
}

static void bench_fini(struct bench *b)
{
	free(b->rules);
	free(b->names);
	free(b->questions);
	free(b->hosts);
	free(b->addresses);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The best of the rounds: what the code costs, not what its neighbours do. */
static double measure(const struct bench *b, const struct policy_pair *pair,
		      unsigned questions)
{
	uint64_t start, best = UINT64_MAX;
	unsigned i, round, allowed = 0;
	struct verdict v;

	for (round = 0; round < ROUNDS; round++) {
		start = now_ns();
		for (i = 0; i < FAR; i++) {
			policy_pair_match(pair, &b->questions[i % questions],
					  &v);
			allowed += v.kind == VERDICT_ALLOW;
		}
		best = MIN(best, now_ns() - start);
	}
	assert_true(allowed > 0 && allowed < ROUNDS * FAR);
	return (double)best / FAR;
}

static void report(const struct bench *b, const struct policy_pair *pair,
		   const char *what)
{
	print_message("%6u rules, %-20s near %4.0f ns, far %4.0f ns\n",
		      b->count, what, measure(b, pair, NEAR),
		      measure(b, pair, FAR));
}

static void speed_at(unsigned count)
{
	struct policy_model m = { .name = SPAN("bench"), .rule_count = count };
	struct policy_set set = { .policy_count = 0 };
	struct policy_rule overlay[5];
	struct policy_pair pair;
	struct bench b;
	uint64_t start;
	unsigned i;

	bench_init(&b, count);
	m.rules = b.rules;
	/* an overlay, as every node has one */
	for (i = 0; i < ARRAY_LEN(overlay); i++) {
		overlay[i] = b.rules[i];
		overlay[i].action = VERDICT_DENY;
	}
	set.deny = overlay;
	set.deny_count = ARRAY_LEN(overlay);
	start = clock_ms();
	assert_int_equal(policy_pair_init(&pair, &set, &m, 1), 0);
	print_message("%6u rules: compiled in %llu ms to %zu KiB\n", count,
		      (unsigned long long)(clock_ms() - start),
		      pair.policy.len / 1024);

	report(&b, &pair, "connect by name");
	for (i = 0; i < FAR; i++)
		b.questions[i].address = &b.addresses[i];
	report(&b, &pair, "connect with address");
	for (i = 0; i < FAR; i++) {
		b.questions[i].address = NULL;
		b.questions[i].stage = POLICY_REQUEST;
	}
	report(&b, &pair, "request");
	policy_pair_fini(&pair);
	bench_fini(&b);
}

static void speed__of_a_decision(void **state)
{
	(void)state;
	speed_at(100);
	speed_at(10000);
	speed_at(100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(speed__of_a_decision),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
