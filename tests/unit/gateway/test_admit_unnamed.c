/* SPDX-License-Identifier: Apache-2.0 */
/* test_admit_unnamed.c - connections whose bytes name nobody: by address, by
 * what DNS told, and never past something that is to be seen */

#include "tests/unit/gateway/fixture.h"

#include "gateway/pipeline/admit.h"
#include "gateway/pipeline/decide.h"
#include "gateway/pipeline/grant.h"

#define ALLOW(rest) "  - {action: allow, target: " rest "}\n"
#define DENY(rest)  "  - {action: deny, target: " rest "}\n"
#define POLICY(rules, more) \
	"policies:\n- name: p\n" more "  egress:\n" DENY("nobody.example") rules
#define GET(host)     host ", methods: [GET]"
#define DEFAULT	      "  defaultAction: allow\n"
#define INSPECT(host) "  inspect: [" host "]\n"

static const char binding[] =
	"{\"revision\":1,\"bindings\":[{\"name\":\"key\",\"match\":{"
	"\"hosts\":[\"a.example\"],\"schemes\":[\"https\"],\"ports\":[443]},"
	"\"auth\":{\"type\":\"bearer\",\"credential\":\"tok\"}}]}";

struct row {
	const char *policy, *told; /* names, "a b", for the address dialled */
	const char *address;
	uint16_t port;
	const char *reason; /* "" = allowed */
	const char *host;   /* that is recorded */
};

#define A   "a.example"
#define B   "b.example"
#define WEB "44.9.9.9"

static const struct row rows[] = {
	/* by name, where DNS told it */
	{ POLICY(ALLOW(A), ""), A, WEB, 22, "", A },
	{ POLICY(ALLOW("'*.example'"), ""), A, WEB, 22, "", A },
	{ POLICY(ALLOW(A), ""), A, "2a00:1450::1", 22, "", A },
	{ POLICY(ALLOW(A), ""), "", WEB, 22, "policy", "" },
	{ POLICY(ALLOW(A), ""), B, WEB, 22, "policy", B },
	{ POLICY(ALLOW(A ", ports: [443]"), ""), A, WEB, 22, "policy", A },
	{ POLICY(ALLOW(A ", ports: [20-25]"), ""), A, WEB, 22, "", A },
	{ POLICY(ALLOW(A ", protocol: udp"), ""), A, WEB, 22, "policy", A },
	{ POLICY(ALLOW(B), ""), A " " B, WEB, 22, "", B },
	{ POLICY(ALLOW(B), ""), B " " A, WEB, 22, "", B },
	/* by address, with or without a name */
	{ POLICY(ALLOW("44.9.0.0/16"), ""), "", WEB, 22, "", "" },
	{ POLICY(ALLOW("44.9.0.0/16"), ""), A, WEB, 22, "", A },
	{ POLICY(ALLOW("44.9.0.0/16") DENY(A), ""), A, WEB, 22, "", A },
	{ POLICY(DENY(A) ALLOW("44.9.0.0/16"), ""), A, WEB, 22, "policy", A },
	{ POLICY(ALLOW(A) DENY(WEB), ""), A, WEB, 22, "policy", A },
	/* by default */
	{ POLICY("", DEFAULT), "", WEB, 22, "", "" },
	{ POLICY(DENY(A ", ports: [22]"), DEFAULT), A, WEB, 22, "policy", A },
	{ POLICY(DENY(A ", ports: [22]"), DEFAULT), A, WEB, 23, "", A },
	/* nothing passes unseen where a name has conditions */
	{ POLICY(ALLOW(GET(A)), ""), A, WEB, 22, "not_tls_or_http", A },
	{ POLICY(ALLOW(GET(A)) ALLOW(B), ""), A " " B, WEB, 22,
	  "not_tls_or_http", A },
	{ POLICY(ALLOW(GET(A)) ALLOW(B), ""), B " " A, WEB, 22,
	  "not_tls_or_http", A },
	{ POLICY(ALLOW(GET(A)) ALLOW(B), ""), B, WEB, 22, "", B },
	{ POLICY(ALLOW(GET(A ", ports: [443]")) ALLOW(B), ""), A " " B, WEB, 22,
	  "", B },
	{ POLICY(ALLOW(A), INSPECT(A)), A, WEB, 22, "not_tls_or_http", A },
	{ POLICY(DENY(A ", paths: [/x]"), DEFAULT), A, WEB, 22,
	  "not_tls_or_http", A },
	{ POLICY(ALLOW(WEB ", methods: [GET]"), ""), "", WEB, 22,
	  "not_tls_or_http", "" },
	{ POLICY(ALLOW(A), "  passthrough: [" A "]\n"), A, WEB, 443, "", A },
	/* nor where a credential is bound, but for a rule by address */
	{ POLICY(ALLOW(A), ""), A, WEB, 443, "not_tls_or_http", A },
	{ POLICY(ALLOW(A) ALLOW(B), ""), B " " A, WEB, 443, "not_tls_or_http",
	  A },
	{ POLICY(ALLOW(WEB) ALLOW(A), ""), A, WEB, 443, "", A },
	/* a name leads to no private address */
	{ POLICY(ALLOW(A), ""), A, "10.1.2.3", 22, "address", A },
	{ POLICY(ALLOW(A), ""), A, "::ffff:127.0.0.1", 22, "address", A },
	{ POLICY(ALLOW(A) ALLOW("10.0.0.0/8"), ""), A, "10.1.2.3", 22, "", A },
	{ POLICY("", DEFAULT), "", "10.1.2.3", 22, "address", "" },
	{ POLICY(ALLOW("pinned.example"), ""), "pinned.example", "10.9.9.9", 22,
	  "", "pinned.example" },
	{ POLICY(ALLOW("pinned.example"), ""), "pinned.example", "10.9.9.8", 22,
	  "address", "pinned.example" },
	{ POLICY(ALLOW("9.8.7.0/24"), ""), "", "9.8.7.6", 22, "address", "" },
};

/* TLS without a name, which policy lets go to the address; .host is told only
 * where it is refused for one. */
static const struct row nameless[] = {
	{ POLICY("", DEFAULT), "", WEB, 443, "", "" },
	{ POLICY("", DEFAULT), B, WEB, 443, "", "" },
	{ POLICY("", ""), B, WEB, 443, "policy", "" },
	/* a name of the address is to be seen */
	{ POLICY("", DEFAULT INSPECT(B)), B, WEB, 443, "no_sni", B },
	{ POLICY("", DEFAULT INSPECT(B)), B " c.example", WEB, 443, "no_sni",
	  B },
	{ POLICY("", DEFAULT INSPECT(B)), "c.example", WEB, 443, "", "" },
	{ POLICY("", DEFAULT INSPECT("'*.example'")), B, WEB, 443, "no_sni",
	  B },
	{ POLICY("", DEFAULT), A, WEB, 443, "no_sni", A }, /* bound */
	{ POLICY("", DEFAULT), A, WEB, 8443, "", "" },
	{ POLICY(DENY(GET(B)), DEFAULT), B, WEB, 443, "no_sni", B },
	{ POLICY("", DEFAULT "  passthrough: [" A "]\n"), A, WEB, 443, "",
	  "" },
	/* or none is known, and policy looks into something */
	{ POLICY("", DEFAULT INSPECT(B)), "", WEB, 443, "no_sni", "" },
	{ POLICY(DENY(GET(B)), DEFAULT), "", WEB, 443, "no_sni", "" },
	{ POLICY(DENY(GET("44.1.0.0/16")), DEFAULT), "", WEB, 443, "", "" },
	/* a rule with the address outranks all of it */
	{ POLICY(ALLOW(WEB), DEFAULT INSPECT(B)), B, WEB, 443, "", "" },
	{ POLICY(ALLOW(WEB), DEFAULT INSPECT(B)), "", WEB, 443, "", "" },
	{ POLICY(ALLOW(WEB), ""), A, WEB, 443, "", "" },
	/* what is denied stays so */
	{ POLICY(DENY(B), DEFAULT), B, WEB, 443, "policy", B },
	{ POLICY(DENY(B), DEFAULT), B " c.example", WEB, 443, "", "" },
	{ POLICY("", DEFAULT), "", "10.1.2.3", 443, "address", "" },
};

static void tell(struct world *w, const struct row *row)
{
	struct addr to = addr_of(row->address, row->port);
	struct span rest = span_str(row->told);

	while (rest.len)
		learned_add(w->gateway.learned, SPAN("s"), span_cut(&rest, ' '),
			    &to, 60, loop_now_ms(w->worker.loop));
}

static void assert_row(struct world *w, const struct row *row,
		       enum scheme scheme)
{
	struct destination d = destination_of(scheme, NULL,
					      addr_of(row->address, row->port));
	struct arena arena;
	struct admission a = {
		.worker = &w->worker,
		.sandbox = world_sandbox(w, "s", "10.9.0.1"),
		.arena = &arena,
		.destination = &d,
	};
	enum step step;

	arena_init(&arena, 64 * 1024);
	world_policy(w, 1, row->policy);
	tell(w, row);
	step = admit_start(&a, NULL, NULL); /* it never waits */
	if (step != (row->reason[0] ? STEP_DENY : STEP_NEXT))
		fail_msg("%s told %s: %s", row->policy, row->told,
			 audit_reason_name(a.reason));
	if (step == STEP_DENY) {
		char reason[64];

		(void)snprintf(reason, sizeof(reason), "%s",
			       audit_reason_name(a.reason));
		for (char *c = reason; *c; c++)
			*c = span_lower_char(*c);
		assert_string_equal(reason, row->reason);
		assert_null(a.grant);
	} else {
		assert_non_null(a.grant);
		assert_false(d.by_name); /* no credential follows it */
		assert_int_equal(d.addr_count, 1);
		assert_memory_equal(&d.addrs[0], &d.original,
				    sizeof(d.original));
	}
	assert_span(host_span(&d.host), row->host);
	assert_int_equal(a.learned, row->host[0] != '\0');
	arena_fini(&arena);
}

static void unnamed__rows(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct world *w = world_new();
		struct names *n = names_new();

		name_add(n, NAME_PIN, "pinned.example", "10.9.9.9");
		world_names(w, n);
		world_own(w, "9.8.7.6/32");
		world_bindings(w, "", binding, "secret");
		assert_row(w, &rows[i], SCHEME_TCP);
		world_free(w);
	}
}

static void nameless__rows(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(nameless); i++) {
		struct world *w = world_new();

		world_bindings(w, "", binding, "secret");
		assert_row(w, &nameless[i], SCHEME_HTTPS);
		world_free(w);
	}
}

/* What DNS told one sandbox is nothing to another; and a name that was told for
 * one address is nothing to another address. */
static void unnamed__of_this_sandbox_and_address(void **state)
{
	static const struct row row = {
		POLICY(ALLOW(A), ""), "", WEB, 22, "policy", ""
	};
	struct world *w = *state;
	struct addr here = addr_of(WEB, 22), there = addr_of("44.9.9.10", 22);
	uint64_t now_ms = loop_now_ms(w->worker.loop);

	learned_add(w->gateway.learned, SPAN("other"), SPAN(A), &here, 60,
		    now_ms);
	learned_add(w->gateway.learned, SPAN("s"), SPAN(A), &there, 60, now_ms);
	assert_row(w, &row, SCHEME_TCP);
}

#define WORLD_TEST(fn) \
	cmocka_unit_test_setup_teardown(fn, world_set_up, world_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unnamed__rows),
		cmocka_unit_test(nameless__rows),
		WORLD_TEST(unnamed__of_this_sandbox_and_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
