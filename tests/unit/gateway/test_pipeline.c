/* SPDX-License-Identifier: Apache-2.0 */
/* test_pipeline.c - a request down the table of stages, and out of it */

#include "tests/unit/gateway/fixture.h"

#include "gateway/pipeline/bind.h"
#include "gateway/pipeline/grant.h"
#include "gateway/pipeline/inject.h"
#include "gateway/pipeline/pipeline.h"

#define BEARER(credential) \
	"\"auth\":{\"type\":\"bearer\",\"credential\":\"" credential "\"}"
#define BINDING(name, match) \
	"{\"name\":\"" name "\",\"match\":{" match "}," BEARER("tok") "}"
#define BINDINGS(list) "{\"revision\":5,\"bindings\":[" list "]}"

static const char three_walks[] =
	"policies:\n- name: agents\n  egress:\n"
	"  - {action: allow, target: api.github.com, methods: [GET]}\n"
	"  - {action: allow, target: docs.test}\n"
	"  - {action: allow, target: \"*.internal.example\", ports: [80,443]}\n"
	"  - {action: allow, target: paths.example, paths: [/v1/*]}\n"
	"  - {action: deny, target: mostly.example, paths: [/admin/*]}\n"
	"  - {action: allow, target: mostly.example}\n"
	"  - {action: allow, target: 9.9.7.0/24}\n";

static const char github[] =
	BINDINGS(BINDING("github", "\"hosts\":[\"api.github.com\"]"));

struct desk {
	struct world *world;
	struct sandbox *sandbox;
	struct arena arena;
	struct audit audit;
	struct destination to;
	struct request req;
};

static int desk_open(void **state)
{
	struct desk *d = must_alloc(sizeof(*d));

	d->world = world_new();
	world_policy(d->world, 1, three_walks);
	d->sandbox = world_sandbox(d->world, "build-7", "10.9.0.1");
	arena_init(&d->arena, 64 * 1024);
	*state = d;
	return 0;
}

static int desk_close(void **state)
{
	struct desk *d = *state;

	request_fini(&d->req);
	arena_fini(&d->arena);
	world_free(d->world);
	free(d);
	return 0;
}

/* A connection to host, proved by name at a public address. */
static void connected(struct desk *d, const char *host)
{
	d->to = proved(SCHEME_HTTPS, host, addr_of("9.8.7.6", 443),
		       ADDRESS_DNS);
}

static enum step walk(struct desk *d, const char *method, const char *target,
		      const char *authority)
{
	request_fini(&d->req);
	arena_fini(&d->arena);
	d->audit = (struct audit){ .allowed = true, .start_us = clock_us() };
	d->req = (struct request){
		.worker = &d->world->worker,
		.sandbox = d->sandbox,
		.arena = &d->arena,
		.audit = &d->audit,
		.destination = &d->to,
		.method = span_str(method),
		.target = span_str(target),
		.authority = span_str(authority),
	};
	return pipeline_run(&d->req);
}

static void assert_refused(struct desk *d, const char *method,
			   const char *target, const char *authority,
			   enum audit_reason reason, unsigned status)
{
	assert_int_equal(walk(d, method, target, authority), STEP_DENY);
	assert_string_equal(audit_reason_name(d->audit.reason),
			    audit_reason_name(reason));
	assert_int_equal(d->audit.status, status);
	assert_false(d->audit.allowed);
	assert_int_equal(d->req.injection_count, 0);
	assert_false(d->audit.injected);
}

static void assert_passed(struct desk *d, const char *method,
			  const char *target, const char *authority,
			  const char *binding)
{
	enum step step = walk(d, method, target, authority);

	if (step != STEP_NEXT)
		fail_msg("%s %s: %s", authority, target,
			 audit_reason_name(d->audit.reason));
	assert_non_null(d->req.grant);
	assert_true(d->audit.allowed);
	assert_span(d->audit.binding, binding);
	assert_int_equal(d->audit.injected, *binding != '\0');
	assert_int_equal(d->req.injection_count, *binding ? 1 : 0);
}

/* -- the three walks --------------------------------------------------------
 */

static void pipeline__allowed(void **state)
{
	struct desk *d = *state;

	world_bindings(d->world, "", github, "t0ken");
	connected(d, "docs.test");
	assert_passed(d, "GET", "/simple/?x=y", "docs.test", "");
	assert_span(d->audit.policy, "agents");
	assert_span(d->audit.method, "GET");
	assert_span(d->audit.path, "/simple/"); /* no query */
	assert_int_equal(d->audit.generation, 8);
	assert_null(d->req.bindings);
}

static void pipeline__denied(void **state)
{
	struct desk *d = *state;

	world_bindings(d->world, "", github, "t0ken");
	connected(d, "api.github.com");
	assert_refused(d, "POST", "/repos/x/y/keys", "api.github.com",
		       AUDIT_REASON_POLICY, 403);
	assert_span(d->audit.policy, "agents");
	assert_true(d->audit.detail.len > 0);
	assert_null(d->req.grant);
	assert_null(d->req.bindings);
}

static void pipeline__injected(void **state)
{
	struct desk *d = *state;
	const struct injection *in = &d->req.injections[0];

	world_bindings(d->world, "", github, "t0ken");
	connected(d, "api.github.com");
	assert_passed(d, "GET", "/user", "api.github.com", "github");
	assert_int_equal(d->audit.revision, 5);
	assert_span(in->name, "Authorization");
	assert_span(in->prefix, "Bearer ");
	assert_span(secret_open(in->secret), "t0ken");
	assert_true(inject_replaces(&d->req, SPAN("AUTHORIZATION")));
	assert_false(inject_replaces(&d->req, SPAN("Authorization2")));

	/* replaced meanwhile: the lease lives until the exchange ends */
	world_bindings(d->world, "", BINDINGS(""), NULL);
	assert_span(secret_open(in->secret), "t0ken");
	request_fini(&d->req);
	assert_false(inject_replaces(&d->req, SPAN("Authorization")));
}

/* -- destination ------------------------------------------------------------
 */

static void destination__misdirected_is_421(void **state)
{
	static const char *const others[] = {
		"api.github.com", "docs.test:80", "docs.test.evil.example",
		"x.docs.test",	  "9.8.7.6",	  "[::1]",
	};
	/* on no connection is it a host */
	static const char *const none[] = {
		"",
		"docs.test@x",
		"docs.test:",
		"docs.test:0443",
		"api.github.com,docs.test",
	};
	struct desk *d = *state;
	size_t i;

	world_bindings(d->world, "", github, "t0ken");
	connected(d, "docs.test");
	for (i = 0; i < ARRAY_LEN(others); i++)
		assert_refused(d, "GET", "/", others[i],
			       AUDIT_REASON_MISDIRECTED, 421);
	for (i = 0; i < ARRAY_LEN(none); i++)
		assert_refused(d, "GET", "/", none[i], AUDIT_REASON_MALFORMED,
			       400);
	assert_passed(d, "GET", "/", "Docs.Test:443", "");
}

static void destination__a_path_is_needed(void **state)
{
	struct desk *d = *state;

	connected(d, "docs.test");
	assert_refused(d, "GET", "simple", "docs.test", AUDIT_REASON_MALFORMED,
		       400);
	assert_refused(d, "GET", "", "docs.test", AUDIT_REASON_MALFORMED, 400);
	assert_passed(d, "OPTIONS", "*", "docs.test", "");
}

static void pipeline__no_memory_refuses(void **state)
{
	struct desk *d = *state;

	connected(d, "docs.test");
	d->arena.cap = 64;
	arena_fini(&d->arena);
	arena_init(&d->arena, 64);
	assert_int_equal(walk(d, "GET", "/simple/", "docs.test"), STEP_FAIL);
	assert_int_equal(d->audit.status, 500);
	assert_int_equal(d->audit.reason, AUDIT_REASON_INTERNAL);
	assert_false(d->audit.allowed);
}

/* -- decide -----------------------------------------------------------------
 */

static void decide__paths_are_canonical(void **state)
{
	struct desk *d = *state;

	connected(d, "paths.example");
	assert_passed(d, "GET", "/v1/x", "paths.example", "");
	assert_passed(d, "GET", "/a/../v1/%78", "paths.example", "");
	assert_refused(d, "GET", "/v1/../v2", "paths.example",
		       AUDIT_REASON_POLICY, 403);
}

/* DNS over HTTPS, at whatever host: a wildcard does not mean it. */
static void decide__no_dns_over_https(void **state)
{
	static const char rules[] =
		"policies:\n- name: p\n  egress:\n"
		"  - {action: allow, target: doh.corp.example}\n"
		"  - {action: allow, target: \"*.example\"}\n";
	struct desk *d = *state;

	world_policy(d->world, 1, rules);
	connected(d, "cover.example");
	assert_passed(d, "GET", "/dns-queries", "cover.example", "");
	assert_refused(d, "POST", "/dns-query", "cover.example",
		       AUDIT_REASON_POLICY, 403);
	assert_string_equal(d->audit.verdict_source, "foreign resolver");
	assert_refused(d, "GET", "/x/../dns%2dquery?dns=AAAB", "cover.example",
		       AUDIT_REASON_POLICY, 403);
	connected(d, "doh.corp.example");
	assert_passed(d, "POST", "/dns-query", "doh.corp.example", "");
	d->world->config.dns_allow_foreign_resolvers = true;
	connected(d, "cover.example");
	assert_passed(d, "POST", "/dns-query", "cover.example", "");
}

/* Unknown to allow rules, feared by deny rules, of no interest without. */
static void decide__ambiguous_paths(void **state)
{
	struct desk *d = *state;

	connected(d, "paths.example");
	assert_refused(d, "GET", "/v1/a%2f..%2f..%2fv2", "paths.example",
		       AUDIT_REASON_POLICY, 403);
	connected(d, "mostly.example");
	assert_refused(d, "GET", "/x%2f..%2fadmin/", "mostly.example",
		       AUDIT_REASON_POLICY, 403);
	assert_passed(d, "GET", "/x", "mostly.example", "");
	connected(d, "docs.test");
	assert_passed(d, "GET", "/x%2fy", "docs.test", "");
}

/* The second address may be the one that answers. */
static void decide__every_address_counts(void **state)
{
	static const char rules[] =
		"policies:\n- name: p\n  egress:\n"
		"  - {action: allow, target: a.example}\n"
		"  - {action: deny, target: 9.9.8.0/24, methods: [DELETE]}\n";
	struct desk *d = *state;

	world_policy(d->world, 1, rules);
	connected(d, "a.example");
	assert_passed(d, "DELETE", "/", "a.example", "");
	d->to.addrs[d->to.addr_count++] = addr_of("9.9.8.8", 443);
	assert_refused(d, "DELETE", "/", "a.example", AUDIT_REASON_POLICY, 403);
	assert_passed(d, "GET", "/", "a.example", "");
}

static void decide__a_gone_sandbox_may_nothing(void **state)
{
	struct desk *d = *state;

	connected(d, "docs.test");
	d->sandbox->gone = true;
	assert_refused(d, "GET", "/", "docs.test", AUDIT_REASON_POLICY, 403);
	d->sandbox->gone = false;
	assert_passed(d, "GET", "/", "docs.test", "");
}

/* -- bind -------------------------------------------------------------------
 */

static void bind__a_tie_names_both(void **state)
{
	struct desk *d = *state;

	world_bindings(
		d->world, "",
		BINDINGS(BINDING(
			"one",
			"\"hosts\":[\"*.internal."
			"example\"]") "," BINDING("two",
						  "\"hosts\":[\"*.internal."
						  "example\"]")),
		"t0ken");
	connected(d, "x.internal.example");
	assert_refused(d, "GET", "/", "x.internal.example",
		       AUDIT_REASON_AMBIGUOUS_BINDING, 403);
	assert_non_null(
		memmem(d->audit.detail.ptr, d->audit.detail.len, "\"one\"", 5));
	assert_non_null(
		memmem(d->audit.detail.ptr, d->audit.detail.len, "\"two\"", 5));
}

static void bind__an_exact_host_breaks_the_tie(void **state)
{
	struct desk *d = *state;

	world_bindings(
		d->world, "",
		BINDINGS(BINDING(
			"wide",
			"\"hosts\":[\"*.internal."
			"example\"]") "," BINDING("exact",
						  "\"hosts\":[\"x.internal."
						  "example\"]")),
		"t0ken");
	connected(d, "x.internal.example");
	assert_passed(d, "GET", "/", "x.internal.example", "exact");
	connected(d, "y.internal.example");
	assert_passed(d, "GET", "/", "y.internal.example", "wide");
}

static void bind__own_scope_first(void **state)
{
	struct desk *d = *state;

	world_bindings(d->world, "", github, "node");
	world_bindings(
		d->world, "build-7",
		BINDINGS(BINDING("own", "\"hosts\":[\"api.github.com\"]")),
		"own");
	world_bindings(d->world, "build-8",
		       BINDINGS(BINDING("other", "\"hosts\":[\"docs.test\"]")),
		       "other");
	connected(d, "api.github.com");
	assert_passed(d, "GET", "/", "api.github.com", "own");
	assert_span(secret_open(d->req.injections[0].secret), "own");
	connected(d, "docs.test"); /* another sandbox's */
	assert_passed(d, "GET", "/", "docs.test", "");
	assert_false(bind_concerns(&d->world->worker, d->sandbox, &d->to));
}

static void bind__an_ambiguous_path_chooses_nothing(void **state)
{
	struct desk *d = *state;

	world_bindings(
		d->world, "",
		BINDINGS(BINDING("github", "\"hosts\":[\"api.github.com\"],"
					   "\"paths\":[\"/v1/*\"]")),
		"t0ken");
	connected(d, "api.github.com");
	assert_refused(d, "GET", "/v1/%2e%2e%2fx", "api.github.com",
		       AUDIT_REASON_AMBIGUOUS_PATH, 403);
	assert_refused(d, "GET", "/v2/..%2fv1/x", "api.github.com",
		       AUDIT_REASON_AMBIGUOUS_PATH, 403);
	assert_passed(d, "GET", "/v1/x", "api.github.com", "github");
	assert_passed(d, "GET", "/v2/x", "api.github.com", "");
}

/* What was not proved by name never has a credential. */
static void bind__never_by_address(void **state)
{
	struct desk *d = *state;

	world_bindings(
		d->world, "",
		BINDINGS(BINDING("any", "\"hosts\":[\"*.internal.example\","
					"\"docs.test\"]")),
		"t0ken");
	connected(d, "docs.test");
	assert_true(bind_concerns(&d->world->worker, d->sandbox, &d->to));
	assert_passed(d, "GET", "/", "docs.test", "any");
	d->to.by_name = false;
	d->to.source = ADDRESS_ORIGINAL;
	assert_false(bind_concerns(&d->world->worker, d->sandbox, &d->to));
	assert_passed(d, "GET", "/", "docs.test", "");
	d->to = destination_of(SCHEME_HTTPS, NULL, addr_of("9.9.7.7", 443));
	d->to.addrs[0] = d->to.original;
	d->to.addr_count = 1;
	assert_passed(d, "GET", "/", "9.9.7.7", "");
}

/* -- inject -----------------------------------------------------------------
 */

static void inject__without_a_lease_nothing_is_sent(void **state)
{
	struct desk *d = *state;

	world_bindings(d->world, "", github, NULL);
	connected(d, "api.github.com");
	assert_refused(d, "GET", "/user", "api.github.com",
		       AUDIT_REASON_NO_LEASE, 403);
	assert_span(d->audit.binding, "github");
}

static void inject__plaintext_needs_a_pin(void **state)
{
	static const enum address_source unproved[] = { ADDRESS_ORIGINAL,
							ADDRESS_DNS,
							ADDRESS_HOSTS };
	struct desk *d = *state;
	size_t i;

	world_bindings(
		d->world, "",
		BINDINGS(BINDING("plain", "\"hosts\":[\"x.internal.example\"],"
					  "\"schemes\":[\"http\"],"
					  "\"ports\":[80]")),
		"t0ken");
	for (i = 0; i < ARRAY_LEN(unproved); i++) {
		d->to = proved(SCHEME_HTTP, "x.internal.example",
			       addr_of("9.8.7.6", 80), unproved[i]);
		assert_refused(d, "GET", "/", "x.internal.example",
			       AUDIT_REASON_PLAINTEXT_CREDENTIAL, 403);
	}
	d->to.source = ADDRESS_PIN;
	assert_passed(d, "GET", "/", "x.internal.example", "plain");
	/* a binding for https says nothing about http */
	world_bindings(
		d->world, "",
		BINDINGS(BINDING("tls", "\"hosts\":[\"x.internal.example\"]")),
		"t0ken");
	assert_passed(d, "GET", "/", "x.internal.example", "");
}

static void inject__several_headers_or_none(void **state)
{
	static const char json[] = BINDINGS(
		"{\"name\":\"two\",\"match\":{\"hosts\":[\"docs.test\"]},"
		"\"auth\":{\"type\":\"customHeaders\",\"headers\":["
		"{\"name\":\"X-Id\",\"credential\":\"id\"},"
		"{\"name\":\"X-Key\",\"credential\":\"key\"}]}}");
	struct desk *d = *state;
	struct secret *secret;
	struct diag diag = { 0 };
	struct bindings *b;

	world_bindings(d->world, "", json, "v");
	connected(d, "docs.test");
	assert_int_equal(walk(d, "GET", "/", "docs.test"), STEP_NEXT);
	assert_int_equal(d->req.injection_count, 2);
	assert_span(d->req.injections[0].name, "X-Id");
	assert_span(d->req.injections[1].name, "X-Key");

	/* one lease of two: none is sent */
	must(!bindings_new(SPAN(json), &b, &diag));
	must(!secret_dup(SPAN("v"), &secret));
	bindings_give_lease(b, SPAN("id"), secret);
	facts_put_bindings(&d->world->worker.facts, SPAN(""), b);
	(void)bindings_unref(b);
	assert_refused(d, "GET", "/", "docs.test", AUDIT_REASON_NO_LEASE, 403);
}

#define DESK_TEST(fn) cmocka_unit_test_setup_teardown(fn, desk_open, desk_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(pipeline__allowed),
		DESK_TEST(pipeline__denied),
		DESK_TEST(pipeline__injected),
		DESK_TEST(destination__misdirected_is_421),
		DESK_TEST(destination__a_path_is_needed),
		DESK_TEST(pipeline__no_memory_refuses),
		DESK_TEST(decide__paths_are_canonical),
		DESK_TEST(decide__no_dns_over_https),
		DESK_TEST(decide__ambiguous_paths),
		DESK_TEST(decide__every_address_counts),
		DESK_TEST(decide__a_gone_sandbox_may_nothing),
		DESK_TEST(bind__a_tie_names_both),
		DESK_TEST(bind__an_exact_host_breaks_the_tie),
		DESK_TEST(bind__own_scope_first),
		DESK_TEST(bind__an_ambiguous_path_chooses_nothing),
		DESK_TEST(bind__never_by_address),
		DESK_TEST(inject__without_a_lease_nothing_is_sent),
		DESK_TEST(inject__plaintext_needs_a_pin),
		DESK_TEST(inject__several_headers_or_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
