/* SPDX-License-Identifier: Apache-2.0 */
/* test_admit.c - which connections are made, and to which addresses */

#include "tests/unit/gateway/fixture.h"

#include "gateway/pipeline/admit.h"
#include "gateway/pipeline/decide.h"
#include "gateway/pipeline/grant.h"

#define ALLOW(rest)   "  - {action: allow, target: " rest "}\n"
#define DENY(rest)    "  - {action: deny, target: " rest "}\n"
#define POLICY(rules) "policies:\n- name: p\n  egress:\n" rules

struct desk {
	struct world *world;
	struct worker *worker;
	struct sandbox *sandbox;
	struct arena arena;
	struct destination to;
	struct admission admission;
	enum step later;
	bool called;
};

static int desk_open(void **state)
{
	struct desk *d = must_alloc(sizeof(*d));

	d->world = world_new();
	d->worker = &d->world->worker;
	d->sandbox = world_sandbox(d->world, "s", "10.9.0.1");
	arena_init(&d->arena, 64 * 1024);
	*state = d;
	return 0;
}

static int desk_close(void **state)
{
	struct desk *d = *state;

	admit_cancel(&d->admission);
	arena_fini(&d->arena);
	world_free(d->world);
	free(d);
	return 0;
}

static void on_admitted(void *ctx, struct admission *a, enum step step)
{
	struct desk *d = ctx;

	assert_ptr_equal(a, &d->admission);
	assert_false(d->called);
	d->called = true;
	d->later = step;
}

/* The step, also when it comes later. */
static enum step admit(struct desk *d, const char *host, const char *original)
{
	enum step step;

	arena_fini(&d->arena);
	d->to = destination_of(SCHEME_HTTPS, host, addr_of(original, 443));
	d->called = false;
	d->admission = (struct admission){
		.worker = d->worker,
		.sandbox = d->sandbox,
		.arena = &d->arena,
		.destination = &d->to,
	};
	step = admit_start(&d->admission, on_admitted, d);
	if (step == STEP_WAIT) {
		world_run(d->world, &d->called);
		step = d->later;
	}
	assert_int_equal(step == STEP_NEXT, d->admission.grant != NULL);
	return step;
}

static void assert_denied(struct desk *d, const char *host,
			  const char *original, enum audit_reason reason)
{
	assert_int_equal(admit(d, host, original), STEP_DENY);
	assert_string_equal(audit_reason_name(d->admission.reason),
			    audit_reason_name(reason));
	assert_int_equal(d->admission.status,
			 reason == AUDIT_REASON_NO_NAME ? 502 : 403);
}

/* The addresses in order, separated by a space. */
static void assert_addrs(const struct desk *d, const char *expected)
{
	char text[1024] = "", one[ADDR_TEXT_SIZE];
	size_t at = 0;
	unsigned i;

	for (i = 0; i < d->to.addr_count; i++) {
		assert_int_equal(d->to.addrs[i].port, 443);
		at += (size_t)snprintf(
			text + at, sizeof(text) - at, "%s%s", i ? " " : "",
			addr_text(&d->to.addrs[i], one, sizeof(one)));
	}
	assert_string_equal(text, expected);
}

/* hosts: "name ip name ip ..." */
static void know(struct desk *d, enum name_source source, const char *hosts)
{
	struct names *n = names_new();
	struct span rest = span_str(hosts), host, ip;
	char host_text[64], ip_text[64];

	while (rest.len) {
		host = span_cut(&rest, ' ');
		ip = span_cut(&rest, ' ');
		must(span_copy(host, host_text, sizeof(host_text)));
		must(span_copy(ip, ip_text, sizeof(ip_text)));
		name_add(n, source, host_text, ip_text);
	}
	world_names(d->world, n);
}

/* -- the address guard ------------------------------------------------------
 */

static const char guard_policy[] =
	POLICY(ALLOW("a.example") ALLOW("10.1.0.0/16") ALLOW("127.0.0.2/32")
		       ALLOW("169.254.169.254/32") ALLOW("fd00:1::/32")
			       DENY("10.1.9.0/24"));

static void decide__guards_addresses(void **state)
{
	static const struct {
		const char *ip;
		bool original, pin;
	} rows[] = {
		{ "9.8.7.6", true, true },
		{ "2606:4700::1", true, true },
		{ "10.1.2.3", true, true },  /* by rule */
		{ "10.1.9.3", false, true }, /* an address deny rule */
		{ "10.2.0.1", false, true }, /* private */
		{ "192.168.0.1", false, true },
		{ "172.16.0.1", false, true },
		{ "100.64.0.1", false, true }, /* CGNAT */
		{ "127.0.0.1", false, true },
		{ "127.0.0.2", true, true },
		{ "::1", false, true },
		{ "169.254.169.254", true, true }, /* metadata, by rule */
		{ "100.100.100.200", false, true },
		{ "fd00:ec2::254", false, true },
		{ "169.254.1.1", false, true },
		{ "fe80::1", false, true },
		{ "fd00:1::1", true, true },
		{ "fd00:2::1", false, true },
		{ "224.0.0.1", false, true },
		{ "0.0.0.0", false, true },
		{ "::", false, true },
		{ "255.255.255.255", false, true },
		{ "64:ff9b::10.2.0.1", false, true }, /* NAT64 of private */
		{ "64:ff9b::9.8.7.6", true, true },
		{ "2002:a02:1::", false, true }, /* 6to4 of 10.2.0.1 */
		{ "::ffff:10.2.0.1", false, true },
		{ "198.51.100.7", false, true }, /* own */
	};
	static const enum address_source guarded[] = { ADDRESS_ORIGINAL,
						       ADDRESS_DNS,
						       ADDRESS_HOSTS };
	struct desk *d = *state;
	size_t i, k;

	world_policy(d->world, 1, guard_policy);
	world_own(d->world, "198.51.100.7/32");
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct addr a = addr_of(rows[i].ip, 443);

		for (k = 0; k < ARRAY_LEN(guarded); k++)
			if (decide_address(d->worker, d->sandbox, &a,
					   guarded[k]) != rows[i].original)
				fail_msg("%s", rows[i].ip);
		assert_int_equal(
			decide_address(d->worker, d->sandbox, &a, ADDRESS_PIN),
			rows[i].pin);
	}
}

static void decide__own_addresses_need_a_pin(void **state)
{
	struct desk *d = *state;
	struct addr a = addr_of("9.8.7.6", 443);

	world_policy(d->world, 1, POLICY(ALLOW("9.8.7.6/32")));
	assert_true(
		decide_address(d->worker, d->sandbox, &a, ADDRESS_ORIGINAL));
	world_own(d->world, "9.8.7.6/32");
	assert_false(
		decide_address(d->worker, d->sandbox, &a, ADDRESS_ORIGINAL));
	assert_true(decide_address(d->worker, d->sandbox, &a, ADDRESS_PIN));
}

static void decide__grants_only_what_is_allowed(void **state)
{
	struct desk *d = *state;
	struct destination yes = destination_of(SCHEME_HTTPS, "yes.example",
						addr_of("9.8.7.6", 443));
	struct destination no = destination_of(SCHEME_HTTPS, "no.example",
					       addr_of("9.8.7.6", 443));
	struct destination port = destination_of(SCHEME_HTTPS, "yes.example",
						 addr_of("9.8.7.6", 444));
	const struct grant *g;
	struct verdict v;

	/* nothing was said yet */
	assert_null(decide_connect(d->worker, d->sandbox, &yes, NULL, &d->arena,
				   &v));
	assert_int_equal(v.source, VERDICT_NOTHING);
	world_policy(d->world, 1, POLICY(ALLOW("yes.example, ports: [443]")));
	g = decide_connect(d->worker, d->sandbox, &yes, NULL, &d->arena, &v);
	assert_non_null(g);
	assert_int_equal(grant_generation(g), 8);
	assert_false(grant_inspect(g));
	assert_false(grant_passthrough(g));
	assert_null(decide_connect(d->worker, d->sandbox, &no, NULL, &d->arena,
				   &v));
	assert_null(decide_connect(d->worker, d->sandbox, &port, NULL,
				   &d->arena, &v));
	assert_true(
		decide_name(d->worker, d->sandbox, SPAN("yes.example"), &v));
	assert_false(
		decide_name(d->worker, d->sandbox, SPAN("no.example"), &v));

	d->sandbox->gone = true;
	assert_null(decide_connect(d->worker, d->sandbox, &yes, NULL, &d->arena,
				   &v));
	assert_false(
		decide_name(d->worker, d->sandbox, SPAN("yes.example"), &v));
}

static void decide__no_room_for_a_grant_is_none(void **state)
{
	struct desk *d = *state;
	struct destination yes = destination_of(SCHEME_HTTPS, "yes.example",
						addr_of("9.8.7.6", 443));
	struct arena tiny;
	struct verdict v;

	world_policy(d->world, 1, POLICY(ALLOW("yes.example")));
	arena_init(&tiny, 1);
	assert_null(
		decide_connect(d->worker, d->sandbox, &yes, NULL, &tiny, &v));
	arena_fini(&tiny);
}

/* -- admission --------------------------------------------------------------
 */

static void admit__by_name(void **state)
{
	struct desk *d = *state;

	world_policy(d->world, 1, POLICY(ALLOW("a.example")));
	know(d, NAME_HOSTS, "a.example 9.8.7.6");
	assert_int_equal(admit(d, "a.example", "9.8.7.6"), STEP_NEXT);
	assert_true(d->to.by_name);
	assert_int_equal(d->to.source, ADDRESS_HOSTS);
	assert_addrs(d, "9.8.7.6");
	/* the sandbox's own resolution is a hint only */
	assert_int_equal(admit(d, "a.example", "8.8.8.8"), STEP_NEXT);
	assert_addrs(d, "9.8.7.6");
	assert_denied(d, "b.example", "9.8.7.6", AUDIT_REASON_POLICY);
	assert_denied(d, "x.a.example", "9.8.7.6", AUDIT_REASON_POLICY);
	assert_denied(d, NULL, "9.8.7.6", AUDIT_REASON_POLICY);
}

static void admit__by_address(void **state)
{
	struct desk *d = *state;

	world_policy(d->world, 1,
		     POLICY(ALLOW("9.8.7.0/24") ALLOW("10.1.0.0/16")));
	assert_int_equal(admit(d, NULL, "9.8.7.6"), STEP_NEXT);
	assert_false(d->to.by_name);
	assert_int_equal(d->to.source, ADDRESS_ORIGINAL);
	assert_addrs(d, "9.8.7.6");
	assert_int_equal(admit(d, NULL, "10.1.2.3"), STEP_NEXT);
	assert_denied(d, NULL, "10.2.2.3", AUDIT_REASON_POLICY);
	/* a name in the payload proves nothing, and costs nothing */
	assert_int_equal(admit(d, "any.example", "9.8.7.6"), STEP_NEXT);
	assert_false(d->to.by_name);
	assert_addrs(d, "9.8.7.6");
	world_own(d->world, "9.8.7.6/32");
	assert_denied(d, NULL, "9.8.7.6", AUDIT_REASON_ADDRESS);
}

/* A rule about every address says nothing of those inside the node's networks;
 * what it allows is the rest. */
static void admit__everywhere_is_not_inside(void **state)
{
	static const char *const inside[] = { "10.1.2.3", "169.254.169.254",
					      "127.0.0.1", "fd00::1", "::1" };
	struct desk *d = *state;
	unsigned i;

	world_policy(d->world, 1,
		     POLICY(ALLOW("0.0.0.0/0") ALLOW("\"::/0\"")
				    ALLOW("a.example")));
	know(d, NAME_HOSTS, "a.example 10.2.0.1");
	for (i = 0; i < ARRAY_LEN(inside); i++)
		assert_denied(d, NULL, inside[i], AUDIT_REASON_ADDRESS);
	assert_denied(d, "a.example", "9.8.7.6",
		      AUDIT_REASON_NO_ALLOWED_ADDRESS);
	assert_int_equal(admit(d, NULL, "9.8.7.6"), STEP_NEXT);
	assert_int_equal(admit(d, NULL, "2a00::1"), STEP_NEXT);
	world_policy(d->world, 1,
		     POLICY(ALLOW("0.0.0.0/1") ALLOW("169.254.0.0/16")
				    ALLOW("a.example")));
	assert_int_equal(admit(d, NULL, "10.1.2.3"), STEP_NEXT);
	assert_int_equal(admit(d, NULL, "169.254.169.254"), STEP_NEXT);
}

/* Resolvers of others, by address, port or name: only what a rule names. */
static void admit__no_foreign_resolvers(void **state)
{
	static const char *const foreign[] = {
		"8.8.8.8",
		"1.1.1.1",
		"1.0.0.2",
		"149.112.112.9",
		"2001:4860:4860::8888",
		"64:ff9b::101:101",
	};
	struct desk *d = *state;
	unsigned i;

	world_policy(d->world, 1,
		     "policies:\n- name: p\n  defaultAction: allow\n");
	for (i = 0; i < ARRAY_LEN(foreign); i++) {
		assert_denied(d, NULL, foreign[i], AUDIT_REASON_POLICY);
		assert_int_equal(d->admission.verdict.source,
				 VERDICT_FOREIGN_RESOLVER);
	}
	assert_int_equal(admit(d, NULL, "1.1.1.4"), STEP_NEXT);
	/* neither by what their clients call them nor by another name */
	assert_denied(d, "dns.google", "9.8.7.6", AUDIT_REASON_POLICY);
	know(d, NAME_HOSTS, "cover.example 8.8.4.4");
	assert_denied(d, "cover.example", "9.8.7.6", AUDIT_REASON_POLICY);

	world_policy(d->world, 1, POLICY(ALLOW("8.8.8.0/24")));
	assert_denied(d, NULL, "8.8.8.8", AUDIT_REASON_POLICY);
	world_policy(d->world, 1, POLICY(ALLOW("8.8.8.8")));
	assert_int_equal(admit(d, NULL, "8.8.8.8"), STEP_NEXT);
	world_policy(d->world, 1, POLICY(ALLOW("cover.example")));
	assert_int_equal(admit(d, "cover.example", "9.8.7.6"), STEP_NEXT);

	d->world->config.dns_allow_foreign_resolvers = true;
	world_policy(d->world, 1, POLICY(ALLOW("8.8.8.0/24")));
	assert_int_equal(admit(d, NULL, "8.8.8.8"), STEP_NEXT);
}

static void admit__no_port_of_dns_over_tls(void **state)
{
	struct desk *d = *state;
	struct destination to =
		destination_of(SCHEME_TCP, NULL, addr_of("9.8.7.6", 853));
	CLEANUP(arena_fini) struct arena arena;
	struct verdict v;

	arena_init(&arena, 4096);
	world_policy(d->world, 1,
		     POLICY(ALLOW("9.8.7.0/24") ALLOW("\"*.b.c\"")));
	assert_null(decide_connect(&d->world->worker, d->sandbox, &to,
				   &to.original, &arena, &v));
	assert_int_equal(v.source, VERDICT_FOREIGN_RESOLVER);
	to.original.port = to.port = 854;
	assert_non_null(decide_connect(&d->world->worker, d->sandbox, &to,
				       &to.original, &arena, &v));
	to.port = 853;
	must(host_canon(SPAN("a.b.c"), &to.host));
	assert_null(decide_connect(&d->world->worker, d->sandbox, &to, NULL,
				   &arena, &v));
	world_policy(d->world, 1, POLICY(ALLOW("a.b.c")));
	assert_non_null(decide_connect(&d->world->worker, d->sandbox, &to, NULL,
				       &arena, &v));
}

/* Nor over UDP, whatever rules for UDP there are (DoQ, DNS over HTTP/3). */
static void decide__no_flows_to_foreign_resolvers(void **state)
{
	static const struct {
		const char *ip;
		uint16_t port;
		bool allowed;
	} rows[] = {
		{ "9.8.7.6", 853, false }, { "9.8.7.6", 4433, true },
		{ "8.8.8.8", 443, false }, { "8.8.8.8", 0, false },
		{ "8.8.4.4", 853, true },
	};
	struct desk *d = *state;
	struct verdict v;
	struct addr a;
	unsigned i;

	world_policy(d->world, 1,
		     POLICY(ALLOW("8.8.4.4, protocol: udp")
				    ALLOW("0.0.0.0/0, protocol: udp")));
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		a = addr_of(rows[i].ip, rows[i].port);
		assert_int_equal(decide_flow(d->worker, d->sandbox,
					     PROTOCOL_UDP, SPAN_NONE, &a, &v),
				 rows[i].allowed);
		if (!rows[i].allowed)
			assert_int_equal(v.source, VERDICT_FOREIGN_RESOLVER);
	}
}

/* Names in a ClientHello go upstream as well: they have the same budget. */
static void admit__new_names_are_bounded(void **state)
{
	struct desk *d = *state;
	unsigned i, waited = 0;
	char host[64];
	enum step step;

	world_policy(d->world, 1,
		     POLICY(ALLOW("\"*.example\"") ALLOW("x.other")));
	for (i = 0; i < 200; i++) {
		(void)snprintf(host, sizeof(host), "n%u.data.example", i);
		step = admit(d, host, "9.8.7.6");
		waited += d->admission.reason != AUDIT_REASON_DNS_LIMIT;
		if (d->admission.reason == AUDIT_REASON_DNS_LIMIT) {
			assert_int_equal(step, STEP_DENY);
			assert_int_equal(d->admission.status, 429);
		}
	}
	assert_in_range(waited, 60, 80);
	(void)admit(d, "x.other", "9.8.7.6");
	assert_int_equal(d->admission.reason, AUDIT_REASON_NO_NAME);
}

static void admit__a_default_is_no_address_rule(void **state)
{
	struct desk *d = *state;

	world_policy(d->world, 1,
		     "policies:\n- name: p\n  defaultAction: allow\n");
	know(d, NAME_HOSTS, "in.example 10.2.0.1");
	assert_int_equal(admit(d, NULL, "9.8.7.6"), STEP_NEXT);
	assert_denied(d, NULL, "10.2.0.1", AUDIT_REASON_ADDRESS);
	assert_denied(d, NULL, "127.0.0.1", AUDIT_REASON_ADDRESS);
	assert_denied(d, "in.example", "10.2.0.1",
		      AUDIT_REASON_NO_ALLOWED_ADDRESS);
}

static void admit__deny_order(void **state)
{
	struct desk *d = *state;

	know(d, NAME_HOSTS, "a.example 9.8.7.6 b.example 9.9.8.8");
	/* an address deny stands before the list */
	world_policy(d->world, 1,
		     POLICY(ALLOW("\"*.example\"") DENY("9.8.7.0/24")));
	assert_denied(d, "a.example", "9.8.7.6", AUDIT_REASON_POLICY);
	assert_int_equal(d->admission.verdict.source, VERDICT_ADDRESS_DENY);
	assert_int_equal(admit(d, "b.example", "9.8.7.6"), STEP_NEXT);
	/* operator deny over all */
	world_policy(d->world, 0, "deny: [{target: b.example}]\n");
	assert_denied(d, "b.example", "9.9.8.8", AUDIT_REASON_POLICY);
	assert_int_equal(d->admission.verdict.source, VERDICT_OVERLAY_DENY);
	/* operator allow over the policy's address deny */
	world_policy(d->world, 0, "allow: [{target: a.example}]\n");
	assert_int_equal(admit(d, "a.example", "9.8.7.6"), STEP_NEXT);
	/* a denied name stays denied though its address is allowed to others */
	world_policy(d->world, 0, "deny: [{target: x.example}]\n");
	world_policy(d->world, 1,
		     POLICY(DENY("b.example") ALLOW("9.9.8.8/32")));
	assert_denied(d, "b.example", "9.9.8.8", AUDIT_REASON_POLICY);
	assert_denied(d, "x.example", "9.9.8.8", AUDIT_REASON_POLICY);
}

static void admit__rebinding_to_inside_is_refused(void **state)
{
	static const char *const inside[] = { "10.0.0.5", "127.0.0.1", "::1",
					      "169.254.169.254",
					      "192.168.1.1" };
	char hosts[64];
	struct desk *d = *state;
	size_t i;

	world_policy(d->world, 1, POLICY(ALLOW("a.example")));
	for (i = 0; i < ARRAY_LEN(inside); i++) {
		(void)snprintf(hosts, sizeof(hosts), "a.example %s", inside[i]);
		know(d, NAME_HOSTS, hosts);
		assert_denied(d, "a.example", "9.8.7.6",
			      AUDIT_REASON_NO_ALLOWED_ADDRESS);
		assert_denied(d, "a.example", inside[i],
			      AUDIT_REASON_NO_ALLOWED_ADDRESS);
		/* the operator's own word */
		know(d, NAME_PIN, hosts);
		assert_int_equal(admit(d, "a.example", inside[i]), STEP_NEXT);
		assert_int_equal(d->to.source, ADDRESS_PIN);
		assert_addrs(d, inside[i]);
	}
}

static void admit__keeps_the_good_of_a_mixed_answer(void **state)
{
	struct desk *d = *state;

	world_policy(d->world, 1,
		     POLICY(ALLOW("a.example") DENY("9.8.7.8/32")));
	know(d, NAME_HOSTS,
	     "a.example 10.0.0.1 a.example 9.8.7.8 a.example 9.8.7.6 "
	     "a.example ::1 a.example 2606:4700::1");
	assert_int_equal(admit(d, "a.example", "9.8.7.6"), STEP_NEXT);
	assert_addrs(d, "9.8.7.6 2606:4700::1");
	know(d, NAME_HOSTS, "a.example 10.0.0.1 a.example 9.8.7.8");
	assert_denied(d, "a.example", "9.8.7.6", AUDIT_REASON_POLICY);
	assert_int_equal(d->admission.verdict.source, VERDICT_ADDRESS_DENY);
}

static void admit__orders_addresses(void **state)
{
	struct desk *d = *state;

	world_policy(d->world, 1, POLICY(ALLOW("a.example")));
	know(d, NAME_HOSTS,
	     "a.example 2606:4700::1 a.example 9.8.7.1 "
	     "a.example 2606:4700::2 a.example 9.8.7.2");
	assert_int_equal(admit(d, "a.example", "9.8.7.2"), STEP_NEXT);
	assert_addrs(d, "9.8.7.2 9.8.7.1 2606:4700::1 2606:4700::2");
	assert_int_equal(admit(d, "a.example", "9.8.7.6"), STEP_NEXT);
	assert_addrs(d, "9.8.7.1 9.8.7.2 2606:4700::1 2606:4700::2");
	assert_int_equal(admit(d, "a.example", "2606:4700::2"), STEP_NEXT);
	assert_addrs(d, "2606:4700::2 2606:4700::1 9.8.7.1 9.8.7.2");
}

/* More answers than places: the family dialled and the address itself stay. */
static void admit__keeps_the_best_of_many(void **state)
{
	struct names *n = names_new();
	struct desk *d = *state;
	char ip[32];
	unsigned i;

	world_policy(d->world, 1, POLICY(ALLOW("a.example")));
	for (i = 1; i <= 10; i++) {
		(void)snprintf(ip, sizeof(ip), "9.8.7.%u", i);
		name_add(n, NAME_HOSTS, "a.example", ip);
		(void)snprintf(ip, sizeof(ip), "2606:4700::%u", i);
		name_add(n, NAME_HOSTS, "a.example", ip);
	}
	world_names(d->world, n);
	assert_int_equal(admit(d, "a.example", "9.8.7.10"), STEP_NEXT);
	assert_int_equal(d->to.addr_count, DESTINATION_ADDRS_MAX);
	assert_true(addr_eq_ip(&d->to.addrs[0], &d->to.original));
	for (i = 0; i < d->to.addr_count; i++)
		assert_true(addr_is_v4(&d->to.addrs[i]));
	assert_int_equal(admit(d, "a.example", "2606:4700::10"), STEP_NEXT);
	assert_true(addr_eq_ip(&d->to.addrs[0], &d->to.original));
	for (i = 0; i < d->to.addr_count; i++)
		assert_false(addr_is_v4(&d->to.addrs[i]));
}

/* No server to ask: the lookup fails later, and nothing is granted. */
static void admit__a_name_that_does_not_resolve(void **state)
{
	struct desk *d = *state;

	world_policy(d->world, 1, POLICY(ALLOW("\"*.example\"")));
	assert_denied(d, "a.example", "9.8.7.6", AUDIT_REASON_NO_NAME);
	assert_true(d->called);

	d->called = false;
	arena_fini(&d->arena);
	must(host_canon(SPAN("b.example"), &d->to.host));
	assert_int_equal(admit_start(&d->admission, on_admitted, d), STEP_WAIT);
	admit_cancel(&d->admission);
	world_settle(d->world);
	assert_false(d->called);
}

/* A rule on the address that needs the request looked into makes the whole
 * connection one that must be opened. */
static void admit__an_address_may_demand_inspection(void **state)
{
	struct desk *d = *state;

	know(d, NAME_HOSTS, "a.example 9.8.7.6 b.example 9.9.8.8");
	world_policy(d->world, 1,
		     POLICY(ALLOW("a.example") ALLOW("b.example")
				    DENY("9.8.7.0/24, methods: [DELETE]")));
	assert_int_equal(admit(d, "a.example", "9.8.7.6"), STEP_NEXT);
	assert_true(grant_inspect(d->admission.grant));
	assert_int_equal(admit(d, "b.example", "9.9.8.8"), STEP_NEXT);
	assert_false(grant_inspect(d->admission.grant));
}

#define DESK_TEST(fn) cmocka_unit_test_setup_teardown(fn, desk_open, desk_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(decide__guards_addresses),
		DESK_TEST(decide__own_addresses_need_a_pin),
		DESK_TEST(decide__grants_only_what_is_allowed),
		DESK_TEST(decide__no_room_for_a_grant_is_none),
		DESK_TEST(admit__by_name),
		DESK_TEST(admit__by_address),
		DESK_TEST(admit__everywhere_is_not_inside),
		DESK_TEST(admit__no_foreign_resolvers),
		DESK_TEST(admit__no_port_of_dns_over_tls),
		DESK_TEST(decide__no_flows_to_foreign_resolvers),
		DESK_TEST(admit__new_names_are_bounded),
		DESK_TEST(admit__a_default_is_no_address_rule),
		DESK_TEST(admit__deny_order),
		DESK_TEST(admit__rebinding_to_inside_is_refused),
		DESK_TEST(admit__keeps_the_good_of_a_mixed_answer),
		DESK_TEST(admit__orders_addresses),
		DESK_TEST(admit__keeps_the_best_of_many),
		DESK_TEST(admit__a_name_that_does_not_resolve),
		DESK_TEST(admit__an_address_may_demand_inspection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
