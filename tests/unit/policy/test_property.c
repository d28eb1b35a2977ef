/* SPDX-License-Identifier: Apache-2.0 */
/* test_property.c - the matcher against a reference anybody can check
 *
 * The reference walks every rule in order, as policy.h words it, without any
 * index. Policies and questions are drawn from a universe so small that they
 * meet all the time: few labels, few addresses, few ports. The seed is fixed,
 * and printed with a failure.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/compile.h"
#include "policy/explain.h"
#include "src/base/err.h"
#include "src/wire/url.h"

enum { RULES_MAX = 24, LISTS_MAX = 5, POLICIES = 4000, QUESTIONS = 150 };

static uint64_t state_of_chance;

static uint32_t chance(uint32_t below)
{
	state_of_chance += 0x9e3779b97f4a7c15u;
	uint64_t x = state_of_chance;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (uint32_t)((x ^ x >> 31) % below);
}

/* -- the universe ------------------------------------------------------- */

static const char *const hosts[] = {
	"a",	   "b",		"ab",	     "a.a",	"b.a",
	"a.b",	   "ab.a",	"b.ab",	     "c.a.b",	"b.a.b",
	"a.b.a.b", "c.b.a.b",	"a.c.b.a.b", "xa.b",	"d.c.b.a.b.a.b",
	"b.xa.b",  "a.a.a.a.a", "b.b.b",     "a-b.a.b", "_a.b",
};
static const char *const addresses[] = {
	"10.0.0.1",	 "10.0.0.2",  "10.0.1.1", "10.1.0.1",	 "11.0.0.1",
	"192.0.2.1",	 "127.0.0.1", "0.0.0.1",  "2001:db8::1", "2001:db8::2",
	"2001:db8:1::1", "::1",	      "fe80::1",
};
static const unsigned lengths_v4[] = { 0, 7, 8, 15, 16, 24, 30, 31, 32 };
static const unsigned lengths_v6[] = { 0, 16, 32, 47, 48, 64, 126, 127, 128 };
static const uint16_t ports[] = { 22, 80, 443, 8000, 8050, 8100, 65535, 1 };
static const char *const methods[] = { "GET", "POST", "PUT" };
static const char *const patterns[] = { "/*",	 "/",	"/v1/*",
					"/v1/a", "/v1", "/v2*" };
static const char *const paths[] = { "/",      "/v1", "/v1/", "/v1/a",
				     "/v1/ab", "/v2", "/v2x" };

#define ANY_OF(array) ((array)[chance(ARRAY_LEN(array))])

/* Enough room for one random policy; nothing is freed. */
struct world {
	struct policy_rule rules[3][RULES_MAX]; /* deny, allow, egress */
	struct policy_ports ports[3][RULES_MAX][3];
	struct span methods[3][RULES_MAX][2], paths[3][RULES_MAX][2];
	struct policy_target inspect[LISTS_MAX], passthrough[LISTS_MAX];
	struct policy_model model;
	struct policy_set set;
};

static struct policy_target random_host(void)
{
	return (struct policy_target){
		.kind = chance(2) ? TARGET_NAME : TARGET_WILDCARD,
		.name = span_str(ANY_OF(hosts)),
	};
}

static struct policy_target random_target(void)
{
	struct policy_target t = { .kind = TARGET_ADDRESS };
	char text[ADDR_TEXT_SIZE];
	const char *address;

	if (chance(3))
		return random_host();
	address = ANY_OF(addresses);
	(void)snprintf(text, sizeof(text), "%s/%u", address,
		       strchr(address, ':') ? ANY_OF(lengths_v6)
					    : ANY_OF(lengths_v4));
	assert_true(cidr_parse(span_str(text), &t.cidr));
	return t;
}

static void random_rule(struct world *w, unsigned list, unsigned at)
{
	struct policy_rule *r = &w->rules[list][at];
	unsigned i;

	*r = (struct policy_rule){
		.action = list == 2 ? chance(2) : list,
		.target = random_target(),
		.protocol = chance(3) ? PROTOCOL_ANY : chance(PROTOCOL_NUM),
		.ports = w->ports[list][at],
		.methods = w->methods[list][at],
		.paths = w->paths[list][at],
		.file = SPAN("file"),
		.line = at + 1,
	};
	r->port_count = chance(2) ? 0 : chance(4);
	r->method_count = chance(4) ? 0 : chance(3);
	r->path_count = chance(4) ? 0 : chance(3);
	for (i = 0; i < r->port_count; i++) {
		w->ports[list][at][i].first = ANY_OF(ports);
		w->ports[list][at][i].last = ANY_OF(ports);
		if (w->ports[list][at][i].last < w->ports[list][at][i].first)
			w->ports[list][at][i].last =
				w->ports[list][at][i].first;
	}
	for (i = 0; i < r->method_count; i++)
		w->methods[list][at][i] = span_str(ANY_OF(methods));
	for (i = 0; i < r->path_count; i++)
		w->paths[list][at][i] = span_str(ANY_OF(patterns));
	if (policy_rule_is_constrained(r))
		r->protocol = PROTOCOL_TCP;
}

static void random_world(struct world *w)
{
	unsigned counts[3] = { chance(4), chance(4), chance(RULES_MAX) };
	unsigned list, i;

	for (list = 0; list < 3; list++)
		for (i = 0; i < counts[list]; i++)
			random_rule(w, list, i);
	w->set = (struct policy_set){ .deny = w->rules[0],
				      .deny_count = counts[0],
				      .allow = w->rules[1],
				      .allow_count = counts[1] };
	w->model = (struct policy_model){
		.name = SPAN("random"),
		.default_action = chance(2),
		.rules = w->rules[2],
		.rule_count = counts[2],
		.inspect = w->inspect,
		.inspect_count = chance(LISTS_MAX),
		.passthrough = w->passthrough,
		.passthrough_count = chance(LISTS_MAX),
		.file = SPAN("file"),
		.line = 1,
	};
	for (i = 0; i < LISTS_MAX; i++) {
		w->inspect[i] = random_host();
		w->passthrough[i] = random_host();
	}
}

static void random_question(struct policy_query *q, struct addr *address)
{
	*q = (struct policy_query){
		.stage = chance(3),
		.protocol =
			chance(8) ? 1 + chance(PROTOCOL_NUM - 1) : PROTOCOL_ANY,
		.port = ANY_OF(ports),
	};
	if (chance(4))
		q->host = span_str(ANY_OF(hosts));
	if (!q->host.len || chance(2)) {
		assert_true(addr_parse(span_str(ANY_OF(addresses)), address));
		q->address = address;
	}
	if (q->stage != POLICY_REQUEST)
		return;
	if (chance(10))
		q->method = span_str(ANY_OF(methods));
	if (chance(10))
		q->path = span_str(ANY_OF(paths));
}

/* -- the reference ------------------------------------------------------ */

static bool ref_below(struct span name, struct span suffix)
{
	return name.len > suffix.len && span_ends(name, suffix) &&
	       name.ptr[name.len - suffix.len - 1] == '.';
}

static bool ref_target(const struct policy_target *t,
		       const struct policy_query *q)
{
	switch (t->kind) {
	case TARGET_NAME:
		return q->host.len && span_eq(t->name, q->host);
	case TARGET_WILDCARD:
		return ref_below(q->host, t->name);
	case TARGET_ADDRESS:
		return q->address && cidr_has(&t->cidr, q->address) &&
		       !(addr_is_v4(q->address) && t->cidr.prefix < 96);
	}
	return false;
}

/* Unknown facts fit a deny rule and no allow rule. */
static bool ref_quic(const struct policy_query *q)
{
	return q->stage != POLICY_NAME && q->protocol == PROTOCOL_UDP &&
	       (q->port == 443 || q->port == 853);
}

static bool ref_facts(const struct policy_rule *r, const struct policy_query *q)
{
	bool deny = r->action == VERDICT_DENY, port = !r->port_count;
	unsigned i;

	for (i = 0; i < r->port_count; i++)
		port |= r->ports[i].first <= q->port &&
			q->port <= r->ports[i].last;
	if (!port)
		return false;
	if (r->protocol == q->protocol)
		return true;
	if (r->protocol == PROTOCOL_ANY)
		return deny || !ref_quic(q);
	return q->protocol == PROTOCOL_ANY && deny;
}

static bool ref_http(const struct policy_rule *r, const struct policy_query *q)
{
	bool deny = r->action == VERDICT_DENY;
	bool method = !r->method_count || (!q->method.len && deny);
	bool path = !r->path_count || (!q->path.len && deny);
	unsigned i;

	for (i = 0; i < r->method_count; i++)
		method |= q->method.len && span_eq(r->methods[i], q->method);
	for (i = 0; i < r->path_count; i++)
		path |= q->path.len && url_path_matches(r->paths[i], q->path);
	return method && path;
}

/* What walking a list says: the rule that ended it, and the perhapses. */
struct ref_walk {
	int end, may_allow; /* -1: none */
	bool look_inside;
};

static struct ref_walk ref_list(const struct policy_rule *rules, unsigned count,
				const struct policy_query *q, bool opaque,
				bool address_denies_only)
{
	struct ref_walk w = { -1, -1, false };
	const struct policy_rule *r;
	bool constrained, deny;
	unsigned i;

	for (i = 0; i < count && w.end < 0; i++) {
		r = &rules[i];
		deny = r->action == VERDICT_DENY;
		constrained = policy_rule_is_constrained(r);
		if (address_denies_only &&
		    !(deny && r->target.kind == TARGET_ADDRESS))
			continue;
		if (!ref_target(&r->target, q))
			continue;
		if (q->stage == POLICY_NAME) {
			if (!deny || (!r->port_count && !constrained &&
				      r->protocol == PROTOCOL_ANY))
				w.end = (int)i;
			continue;
		}
		if (!ref_facts(r, q))
			continue;
		if (!constrained ||
		    (q->stage == POLICY_REQUEST && ref_http(r, q)) ||
		    (q->stage == POLICY_CONNECT && opaque && deny)) {
			w.end = (int)i;
		} else if (q->stage == POLICY_CONNECT && !opaque) {
			w.look_inside = true;
			if (!deny && w.may_allow < 0)
				w.may_allow = (int)i;
		}
	}
	return w;
}

/* The most specific entry: the name itself, then the longest suffix. */
static void ref_flags(const struct policy_model *m,
		      const struct policy_query *q, struct verdict *v)
{
	const struct policy_target *t;
	size_t best = 0, weight;
	unsigned i;

	for (i = 0; i < m->inspect_count + m->passthrough_count; i++) {
		t = i < m->inspect_count
			    ? &m->inspect[i]
			    : &m->passthrough[i - m->inspect_count];
		if (!ref_target(t, q))
			continue;
		weight = t->kind == TARGET_NAME ? 1000 : t->name.len;
		if (weight < best)
			continue;
		v->inspect =
			(weight == best && v->inspect) || i < m->inspect_count;
		v->passthrough = (weight == best && v->passthrough) ||
				 i >= m->inspect_count;
		best = weight;
	}
	if (v->passthrough)
		v->inspect = false;
}

static uint8_t ref_labels(struct span name)
{
	uint8_t labels = 0;

	for (; name.len; labels++)
		(void)span_cut(&name, '.');
	return labels;
}

/* 0.0.0.0/0 */
static const struct cidr all_of_v4 = {
	.ip = { [10] = 0xff, [11] = 0xff },
	.prefix = 96,
};

static void ref_conclude(struct verdict *v, enum verdict_source source,
			 const struct policy_rule *rules, int at)
{
	v->source = source;
	v->rule = (uint32_t)at;
	v->kind = rules[at].action;
	v->by_address = v->kind == VERDICT_ALLOW &&
			rules[at].target.kind == TARGET_ADDRESS;
	v->everywhere =
		v->by_address && (!rules[at].target.cidr.prefix ||
				  !memcmp(&rules[at].target.cidr, &all_of_v4,
					  sizeof(all_of_v4)));
	v->exact = rules[at].target.kind == TARGET_NAME ||
		   (rules[at].target.kind == TARGET_ADDRESS &&
		    rules[at].target.cidr.prefix == 128);
	v->labels = rules[at].target.kind == TARGET_ADDRESS
			    ? 0
			    : ref_labels(rules[at].target.name);
}

static struct verdict reference(const struct world *w,
				const struct policy_query *q)
{
	const struct policy_model *m = &w->model;
	struct verdict v = { .generation = 7 };
	struct ref_walk deny, allow, address = { -1, -1, false };
	struct ref_walk list = { -1, -1, false };
	bool opaque;

	ref_flags(m, q, &v);
	opaque = v.passthrough;
	deny = ref_list(w->set.deny, w->set.deny_count, q, opaque, false);
	if (deny.end >= 0) {
		ref_conclude(&v, VERDICT_OVERLAY_DENY, w->set.deny, deny.end);
		return v;
	}
	allow = ref_list(w->set.allow, w->set.allow_count, q, opaque, false);
	if (allow.end >= 0) {
		ref_conclude(&v, VERDICT_OVERLAY_ALLOW, w->set.allow,
			     allow.end);
		v.inspect |= deny.look_inside || allow.look_inside;
		return v;
	}
	address = ref_list(m->rules, m->rule_count, q, opaque, true);
	if (address.end >= 0) {
		ref_conclude(&v, VERDICT_ADDRESS_DENY, m->rules, address.end);
	} else {
		list = ref_list(m->rules, m->rule_count, q, opaque, false);
		v.kind = ref_quic(q) ? VERDICT_DENY : m->default_action;
		v.source = VERDICT_DEFAULT;
		if (list.end >= 0)
			ref_conclude(&v, VERDICT_RULE, m->rules, list.end);
	}
	if (v.kind == VERDICT_DENY && allow.may_allow >= 0)
		ref_conclude(&v, VERDICT_OVERLAY_ALLOW, w->set.allow,
			     allow.may_allow);
	else if (v.kind == VERDICT_DENY && list.may_allow >= 0)
		ref_conclude(&v, VERDICT_RULE, m->rules, list.may_allow);
	if (v.kind == VERDICT_ALLOW)
		v.inspect |= deny.look_inside || allow.look_inside ||
			     address.look_inside || list.look_inside;
	return v;
}

/* -- the comparison ----------------------------------------------------- */

static bool verdicts_equal(const struct verdict *a, const struct verdict *b)
{
	return a->kind == b->kind && a->source == b->source &&
	       a->inspect == b->inspect && a->passthrough == b->passthrough &&
	       a->by_address == b->by_address &&
	       a->everywhere == b->everywhere && a->exact == b->exact &&
	       a->labels == b->labels && a->generation == b->generation &&
	       (a->source == VERDICT_DEFAULT || a->rule == b->rule);
}

static void fail_question(const struct world *w, const struct policy_query *q,
			  const struct verdict *wanted,
			  const struct verdict *got, uint64_t seed)
{
	static const char *const names[] = { "deny", "allow", "egress" };
	const unsigned counts[] = { w->set.deny_count, w->set.allow_count,
				    w->model.rule_count };
	char text[300], flags[64], other[64];
	unsigned list, i;

	for (list = 0; list < 3; list++)
		for (i = 0; i < counts[list]; i++)
			print_message("%s %u: %s\n", names[list], i,
				      policy_rule_text(&w->rules[list][i], text,
						       sizeof(text)));
	print_message("default %s\n",
		      verdict_kind_name(w->model.default_action));
	fail_msg("seed %llu: stage %d %s %.*s %s port %u %.*s %.*s\n"
		 "wanted %s by %s %u, got %s by %s %u",
		 (unsigned long long)seed, q->stage,
		 policy_protocol_name(q->protocol), SPAN_FMT(q->host),
		 q->address ? addr_text(q->address, text, sizeof(text)) : "-",
		 q->port, SPAN_FMT(q->method), SPAN_FMT(q->path),
		 policy_verdict_text(wanted, flags, sizeof(flags)),
		 verdict_source_name(wanted->source), wanted->rule,
		 policy_verdict_text(got, other, sizeof(other)),
		 verdict_source_name(got->source), got->rule);
}

static void match__agrees_with_the_reference(void **state)
{
	CLEANUP_FREE struct world *w = must_alloc(sizeof(*w));
	unsigned i, k, by_source[VERDICT_SOURCE_NUM] = { 0 };
	unsigned looks = 0, addresses_allowed = 0, exact = 0;
	struct verdict wanted, got;
	struct policy_pair pair;
	struct policy_query q;
	struct addr address;
	uint64_t seed;

	(void)state;
	for (i = 0; i < POLICIES; i++) {
		state_of_chance = seed = i;
		random_world(w);
		assert_int_equal(policy_pair_init(&pair, &w->set, &w->model, 7),
				 0);
		for (k = 0; k < QUESTIONS; k++) {
			random_question(&q, &address);
			wanted = reference(w, &q);
			policy_pair_match(&pair, &q, &got);
			if (!verdicts_equal(&wanted, &got))
				fail_question(w, &q, &wanted, &got, seed);
			by_source[got.source]++;
			looks += got.inspect && got.kind == VERDICT_ALLOW;
			addresses_allowed += got.by_address;
			exact += got.exact;
		}
		policy_pair_fini(&pair);
	}
	/* a universe that never reaches a step would prove nothing */
	for (i = VERDICT_OVERLAY_DENY; i < VERDICT_SOURCE_NUM; i++)
		assert_true(by_source[i] > POLICIES * QUESTIONS / 200);
	assert_true(looks > POLICIES && addresses_allowed > POLICIES &&
		    exact > POLICIES);
}

/* The same, without an overlay and without a policy. */
static void match__takes_null_for_nothing(void **state)
{
	CLEANUP_FREE struct world *w = must_alloc(sizeof(*w));
	struct verdict wanted, got;
	struct policy_pair pair;
	struct policy_query q;
	struct addr address;
	unsigned i, k;

	(void)state;
	for (i = 0; i < 100; i++) {
		state_of_chance = i;
		random_world(w);
		w->set.deny_count = w->set.allow_count = 0;
		assert_int_equal(policy_pair_init(&pair, &w->set, &w->model, 7),
				 0);
		for (k = 0; k < QUESTIONS; k++) {
			random_question(&q, &address);
			wanted = reference(w, &q);
			policy_match(NULL, &pair.policy, &q, &got);
			assert_true(verdicts_equal(&wanted, &got));
			policy_match(&pair.overlay, NULL, &q, &got);
			assert_int_equal(got.kind, VERDICT_DENY);
			assert_int_equal(got.source, VERDICT_NOTHING);
			/* an overlay is no policy, a policy no overlay */
			policy_match(NULL, &pair.overlay, &q, &got);
			assert_int_equal(got.source, VERDICT_NOTHING);
			policy_match(&pair.policy, &pair.policy, &q, &got);
			assert_int_equal(got.source, VERDICT_NOTHING);
		}
		policy_pair_fini(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(match__agrees_with_the_reference),
		cmocka_unit_test(match__takes_null_for_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
