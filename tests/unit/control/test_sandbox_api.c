/* SPDX-License-Identifier: Apache-2.0 */
/* test_sandbox_api.c - sandboxes, policies and explanations through the API */

#include "tests/unit/control/rig.h"

#define SANDBOX(id, iface, addr)                    \
	"{\"id\":\"" id "\",\"interface\":\"" iface \
	"\",\"addresses\":[\"" addr "\"],\"labels\":{\"team\":\"red\"}}"

static void assert_allows(struct rig *rig, const char *sandbox,
			  const char *host, bool allowed)
{
	struct fake_gateway *g = &rig->gateway;
	struct msg_sandbox *s = fake_sandbox(g, sandbox);
	struct fake_policy *overlay = fake_policy_at(g, POLICY_ID_OVERLAY);
	struct fake_policy *p = s ? fake_policy_at(g, s->policy) : NULL;
	const struct policy_query q = {
		.stage = POLICY_CONNECT,
		.protocol = PROTOCOL_TCP,
		.host = span_str(host),
		.port = 443,
	};
	struct verdict v = VERDICT_DENY_ALL;

	policy_match(overlay ? &overlay->snapshot : NULL,
		     p ? &p->snapshot : NULL, &q, &v);
	if ((v.kind == VERDICT_ALLOW) != allowed)
		fail_msg("%s to %s: %u", sandbox, host, v.kind);
}

static const char *policy_file(const char *name, const char *sandbox,
			       const char *host)
{
	static char text[1024];

	snprintf(text, sizeof(text),
		 "policies:\n"
		 "  - name: %s\n"
		 "    sandboxes: {ids: [\"%s\"]}\n"
		 "    egress:\n"
		 "      - {action: allow, target: %s}\n",
		 name, sandbox, host);
	return text;
}

static const char *policy_json(const char *sandbox, const char *host)
{
	static char text[1024];

	snprintf(text, sizeof(text),
		 "{\"sandboxes\":{\"ids\":[\"%s\"]},\"egress\":[{\"action\":"
		 "\"allow\",\"target\":\"%s\"}]}",
		 sandbox, host);
	return text;
}

/* -- sandboxes ------------------------------------------------------------- */

static void sandboxes__come_and_go(void **state)
{
	struct rig *rig = *state;
	struct msg_sandbox *told;

	assert_call(api(rig, "POST", "/v1/sandboxes",
			SANDBOX("a", "sp-a", "10.0.0.2")),
		    201,
		    "{\"id\":\"a\",\"interface\":\"sp-a\",\"addresses\":"
		    "[\"10.0.0.2\"],\"labels\":{\"team\":\"red\"},"
		    "\"lockedAt\":\"sp-a\",\"policy\":null}");
	told = fake_sandbox(&rig->gateway, "a");
	assert_non_null(told);
	assert_string_equal(told->iface, "sp-a");
	assert_int_equal(told->addr_count, 1);
	assert_memory_equal(told->addrs[0] + 10, "\xff\xff\x0a\0\0\x02", 6);
	assert_int_equal(told->policy, POLICY_ID_NONE);

	assert_call(api(rig, "POST", "/v1/sandboxes",
			SANDBOX("a", "sp-a", "10.0.0.2")),
		    409, "already exists");
	assert_call(api(rig, "PUT", "/v1/sandboxes/a",
			"{\"addresses\":[\"10.0.0.3\",\"fd00::3\"]}"),
		    200, "\"labels\":{}");
	assert_int_equal(fake_sandbox(&rig->gateway, "a")->addr_count, 2);
	assert_call(api(rig, "PUT", "/v1/sandboxes/b",
			SANDBOX("b", "sp-a", "10.0.0.2")),
		    201, NULL);
	assert_call(api(rig, "GET", "/v1/sandboxes", NULL), 200,
		    "{\"sandboxes\":[{\"id\":\"a\",");
	assert_call(api(rig, "GET", "/v1/sandboxes/b", NULL), 200,
		    "\"id\":\"b\"");
	assert_call(api(rig, "GET", "/v1/sandboxes/b", NULL), 200,
		    "\"policy\":null,\"usage\":{\"connections\":{\"used\":3,"
		    "\"limit\":5,\"refused\":7}}}");
	assert_call(api(rig, "GET", "/v1/sandboxes/c", NULL), 404, NULL);
	assert_call(api(rig, "DELETE", "/v1/sandboxes/a", NULL), 204, "");
	assert_null(fake_sandbox(&rig->gateway, "a"));
	assert_call(api(rig, "DELETE", "/v1/sandboxes/a", NULL), 404, NULL);
	assert_call(api(rig, "DELETE", "/v1/sandboxes/%40control", NULL), 404,
		    NULL);
}

/* Without the gateway a sandbox is shown at once, and its use is not known. */
static void sandboxes__are_shown_without_the_gateway(void **state)
{
	struct rig *rig = *state;
	uint64_t before = clock_ms();

	assert_call(api(rig, "PUT", "/v1/sandboxes/a",
			SANDBOX("a", "sp-a", "10.0.0.2")),
		    201, NULL);
	rig_gateway_down(rig);
	rig_turns(rig, 5);
	assert_call(api(rig, "GET", "/v1/sandboxes/a", NULL), 200,
		    "\"usage\":null}");
	assert_true(clock_ms() - before < 1000);
}

static void sandboxes__share_no_address(void **state)
{
	struct rig *rig = *state;

	(void)api(rig, "POST", "/v1/sandboxes",
		  SANDBOX("a", "sp-a", "10.0.0.2"));
	assert_call(api(rig, "POST", "/v1/sandboxes",
			SANDBOX("b", "sp-a", "10.0.0.2")),
		    409,
		    "address 10.0.0.2 belongs to sandbox \\\"a\\\" on sp-a");
	/* connection tracking knows no interfaces */
	assert_call(api(rig, "POST", "/v1/sandboxes",
			SANDBOX("b", "sp-b", "10.0.0.2")),
		    409, "belongs to sandbox \\\"a\\\" on sp-a");
	assert_call(
		api(rig, "POST", "/v1/sandboxes", SANDBOX("c", "", "10.0.0.2")),
		409, "ADDRESS_TAKEN");
	assert_call(
		api(rig, "POST", "/v1/sandboxes", SANDBOX("c", "", "10.0.0.4")),
		201, NULL);
	assert_call(api(rig, "POST", "/v1/sandboxes",
			SANDBOX("d", "sp-a", "10.0.0.4")),
		    409, "every interface");
	/* the same bytes in another spelling are the same address */
	assert_call(api(rig, "POST", "/v1/sandboxes",
			SANDBOX("d", "sp-a", "::ffff:10.0.0.2")),
		    409, "ADDRESS_TAKEN");
	/* what a sandbox gave up is free again */
	assert_call(api(rig, "PUT", "/v1/sandboxes/a",
			SANDBOX("a", "sp-a", "10.0.0.9")),
		    200, NULL);
	assert_call(api(rig, "POST", "/v1/sandboxes",
			SANDBOX("d", "sp-a", "10.0.0.2")),
		    201, NULL);
}

static void sandboxes__refuse(void **state)
{
#define ADDRESSES ",\"addresses\":[\"10.0.0.2\"]"
	static const struct {
		const char *body, *says;
	} rows[] = {
		{ "{}", "\\\"id\\\"" },
		{ "{\"id\":\"\"" ADDRESSES "}", "\\\"id\\\"" },
		{ "{\"id\":\"a/b\"" ADDRESSES "}", "\\\"id\\\"" },
		{ "{\"id\":\"a*\"" ADDRESSES "}", "\\\"id\\\"" },
		{ "{\"id\":\"@control\"" ADDRESSES "}", "\\\"id\\\"" },
		{ "{\"id\":\".hidden\"" ADDRESSES "}", "\\\"id\\\"" },
		{ "{\"id\":\"a\\u0000\"" ADDRESSES "}", "\\\"id\\\"" },
		{ "{\"id\":\"a\"}", "expected 1 to 8" },
		{ "{\"id\":\"a\",\"addresses\":[]}", "expected 1 to 8" },
		{ "{\"id\":\"a\",\"addresses\":[\"10.0.0\"]}", "10.0.0" },
		{ "{\"id\":\"a\",\"addresses\":[\"10.0.0.0/24\"]}",
		  "expected" },
		{ "{\"id\":\"a\",\"addresses\":[7]}", "expected" },
		{ "{\"id\":\"a\",\"addresses\":[\"0.0.0.0\"]}", "no sandbox" },
		{ "{\"id\":\"a\",\"addresses\":[\"ff02::1\"]}", "no sandbox" },
		{ "{\"id\":\"a\"" ADDRESSES ",\"interface\":"
		  "\"much-too-long-name\"}",
		  "interface" },
		{ "{\"id\":\"a\"" ADDRESSES ",\"interface\":\"a/b\"}",
		  "interface" },
		{ "{\"id\":\"a\"" ADDRESSES ",\"interface\":\"eth0\"}",
		  "sandboxInterfaces" },
		{ "{\"id\":\"a\"" ADDRESSES ",\"interface\":\"sp-a\","
		  "\"port\":\"a/b\"}",
		  "port" },
		{ "{\"id\":\"a\"" ADDRESSES ",\"port\":\"p\"}", "need an" },
		{ "{\"id\":\"a\"" ADDRESSES ",\"mac\":\"02:00:00:00:00:01\"}",
		  "need an" },
		{ "{\"id\":\"a\"" ADDRESSES ",\"interface\":\"sp-a\","
		  "\"mac\":\"03:00:00:00:00:01\"}",
		  "mac" },
		{ "{\"id\":\"a\"" ADDRESSES ",\"interface\":\"sp-a\","
		  "\"mac\":\"02:00:00:00:00:1\"}",
		  "mac" },
		{ "{\"id\":\"a\"" ADDRESSES ",\"interface\":\"sp-a\","
		  "\"mac\":\"02-00-00-00-00-01\"}",
		  "mac" },
		{ "{\"id\":\"a\"" ADDRESSES ",\"labels\":[]}", "an object" },
		{ "{\"id\":\"a\"" ADDRESSES ",\"labels\":{\"x\":1}}",
		  "labels" },
		{ "{\"id\":\"a\"" ADDRESSES ",\"address\":1}", "did you mean" },
		{ "{\"id\":\"a\"" ADDRESSES ",\"defaultPolicy\":\"\"}",
		  "defaultPolicy" },
		{ "{\"id\":\"a\"" ADDRESSES ",\"defaultPolicy\":{}}",
		  "defaultPolicy" },
	};
	struct rig *rig = *state;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		assert_call(api(rig, "POST", "/v1/sandboxes", rows[i].body),
			    400, rows[i].says);
}

static void sandboxes__are_locked_to_their_interface(void **state)
{
	struct rig *rig = *state;
	const struct msg_lock *lock;

	assert_call(api(rig, "PUT", "/v1/sandboxes/a",
			"{\"interface\":\"sp-br\",\"port\":\"veth7\","
			"\"mac\":\"02:42:0A:09:00:02\",\"addresses\":"
			"[\"10.9.0.2\",\"fd00::2\"]}"),
		    201, "\"mac\":\"02:42:0a:09:00:02\"");
	lock = fake_lock(rig, "a");
	assert_non_null(lock);
	assert_string_equal(lock->iface, "sp-br");
	assert_string_equal(lock->port, "veth7");
	assert_int_equal(lock->addr_count, 2);
	assert_int_equal(lock->has_mac, 1);
	assert_memory_equal(lock->mac, "\x02\x42\x0a\x09\0\x02", 6);
	assert_call(api(rig, "GET", "/v1/sandboxes/a", NULL), 200,
		    "\"lockedAt\":\"veth7\"");

	/* without an interface there is nothing to lock it to */
	assert_call(api(rig, "PUT", "/v1/sandboxes/a",
			"{\"addresses\":[\"10.9.0.2\"]}"),
		    200, "\"lockedAt\":null,\"lockNote\":\"no interface");
	assert_null(fake_lock(rig, "a"));

	assert_call(api(rig, "PUT", "/v1/sandboxes/b",
			SANDBOX("b", "sp-b", "10.0.0.2")),
		    201, NULL);
	assert_call(api(rig, "DELETE", "/v1/sandboxes/b", NULL), 204, "");
	RIG_UNTIL(rig, !fake_lock(rig, "b"));
}

static void sandboxes__without_their_lock_are_cut_off(void **state)
{
	struct rig *rig = *state;

	assert_call(api(rig, "POST", "/v1/sandboxes",
			SANDBOX("a", "sp-a", "10.0.0.2")),
		    201, NULL);
	assert_non_null(fake_sandbox(&rig->gateway, "a"));
	rig->fail_lock = EIO;
	assert_call(api(rig, "PUT", "/v1/sandboxes/a",
			SANDBOX("a", "sp-a", "10.0.0.3")),
		    503, "NOT_LOCKED");
	assert_null(fake_sandbox(&rig->gateway, "a"));
	assert_call(api(rig, "GET", "/v1/sandboxes/a", NULL), 200,
		    "\"lockedAt\":null,\"lockNote\":\"the lock could not");
	/* a policy that is published again does not bring it back */
	(void)api(rig, "PUT", "/v1/policies/p", policy_json("a", "x.com"));
	assert_null(fake_sandbox(&rig->gateway, "a"));
	rig->fail_lock = 0;
	assert_call(api(rig, "PUT", "/v1/sandboxes/a",
			SANDBOX("a", "sp-a", "10.0.0.3")),
		    200, "\"lockedAt\":\"sp-a\"");
	assert_non_null(fake_sandbox(&rig->gateway, "a"));
}

static void sandboxes__survive_a_restart(void **state)
{
	struct rig *rig = *state;

	(void)api(rig, "PUT", "/v1/policies/p", policy_json("a", "x.com"));
	(void)api(rig, "POST", "/v1/sandboxes",
		  SANDBOX("a", "sp-a", "10.0.0.2"));
	rig_control_stop(rig);
	rig_vault_down(rig);
	rig_gateway_down(rig);
	rig->lock_count = rig->lock_ends = 0;
	rig_control_start(rig);
	rig_gateway_up(rig);
	rig_vault_up(rig);
	RIG_UNTIL(rig, fake_sandbox(&rig->gateway, "a"));
	assert_non_null(fake_lock(rig, "a")); /* and before: */
	assert_int_equal(rig->lock_ends, 1);
	assert_allows(rig, "a", "x.com", true);
	assert_allows(rig, "a", "y.com", false);
	assert_call(api(rig, "GET", "/v1/sandboxes/a", NULL), 200,
		    "\"policy\":\"p\"");
}

/* Where a policy chooses it, that one counts; and where the one that it names
 * is not there, none. */
static void sandboxes__have_a_default_policy(void **state)
{
	struct rig *rig = *state;

	assert_call(api(rig, "POST", "/v1/sandboxes",
			"{\"id\":\"a\",\"addresses\":[\"10.0.0.2\"],"
			"\"defaultPolicy\":\"open\"}"),
		    201, "\"defaultPolicy\":\"open\",\"lockedAt\"");
	assert_allows(rig, "a", "x.com", false);
	(void)api(rig, "PUT", "/v1/policies/open",
		  "{\"defaultAction\":\"allow\"}");
	assert_allows(rig, "a", "x.com", true);
	assert_call(api(rig, "GET", "/v1/sandboxes/a", NULL), 200,
		    "\"policy\":\"open\"");
	assert_call(api(rig, "POST", "/v1/explain",
			"{\"sandbox\":\"a\",\"url\":\"https://x.com/\"}"),
		    200, "policy open");
	(void)api(rig, "PUT", "/v1/policies/p", policy_json("a", "y.com"));
	assert_allows(rig, "a", "x.com", false);
	assert_allows(rig, "a", "y.com", true);
	(void)api(rig, "DELETE", "/v1/policies/p", NULL);
	assert_allows(rig, "a", "x.com", true);

	rig_control_stop(rig);
	rig_vault_down(rig);
	rig_gateway_down(rig);
	rig_control_start(rig);
	rig_gateway_up(rig);
	rig_vault_up(rig);
	RIG_UNTIL(rig, fake_sandbox(&rig->gateway, "a"));
	assert_allows(rig, "a", "x.com", true);
	(void)api(rig, "DELETE", "/v1/policies/open", NULL);
	assert_allows(rig, "a", "x.com", false);
}

/* -- policies -------------------------------------------------------------- */

static void policies__are_put_and_taken_away(void **state)
{
	struct rig *rig = *state;

	(void)api(rig, "POST", "/v1/sandboxes",
		  SANDBOX("a", "sp-a", "10.0.0.2"));
	assert_allows(rig, "a", "x.com", false);
	assert_call(
		api(rig, "PUT", "/v1/policies/p", policy_json("a", "x.com")),
		201, "\"entry\":{\"name\":\"p\",\"source\":\"api\"");
	assert_allows(rig, "a", "x.com", true);
	assert_call(
		api(rig, "PUT", "/v1/policies/p", policy_json("a", "y.com")),
		200, "y.com");
	assert_allows(rig, "a", "x.com", false);
	assert_allows(rig, "a", "y.com", true);
	assert_call(api(rig, "GET", "/v1/policies", NULL), 200,
		    "\"policies\":[{\"name\":\"p\",\"source\":\"api\"");
	assert_call(api(rig, "GET", "/v1/policies/p", NULL), 200,
		    "\"policy\":{");
	assert_call(api(rig, "GET", "/v1/policies/q", NULL), 404, NULL);
	assert_call(api(rig, "DELETE", "/v1/policies/p", NULL), 204, "");
	assert_allows(rig, "a", "y.com", false);
	assert_int_equal(rig->gateway.policy_count, 1); /* the overlay */
	assert_call(api(rig, "DELETE", "/v1/policies/p", NULL), 404, NULL);
}

static void policies__refuse_and_say_why(void **state)
{
	struct rig *rig = *state;

	assert_call(api(rig, "PUT", "/v1/policies/p", ""), 400,
		    "POLICY_INVALID");
	assert_call(api(rig, "PUT", "/v1/policies/p",
			"{\"sandboxes\":{\"ids\":[\"a\"]},\n\"egress\":[{"
			"\"action\":\"maybe\",\"target\":\"x.com\"}]}"),
		    400, "api:2:");
	assert_call(api(rig, "GET", "/v1/policies/p", NULL), 404, NULL);
	assert_int_equal(rig->vault.commits, 0);
}

static void files__are_reloaded_when_they_change(void **state)
{
	struct rig *rig = *state;
	const struct call *c;

	(void)api(rig, "POST", "/v1/sandboxes",
		  SANDBOX("a", "sp-a", "10.0.0.2"));
	rig_write(rig, "policies/one.yaml", policy_file("p", "a", "x.com"));
	RIG_UNTIL(rig, rig->gateway.policy_count == 2);
	RIG_UNTIL(rig,
		  fake_sandbox(&rig->gateway, "a")->policy != POLICY_ID_NONE);
	assert_allows(rig, "a", "x.com", true);

	/* a bad file changes nothing, and status says where it is bad */
	log_set_level(LOG_ERROR);
	rig_write(rig, "policies/two.yaml", "policies:\n  - name: [oops\n");
	RIG_UNTIL(rig, diag_is_set(&rig->control->policies.error));
	assert_allows(rig, "a", "x.com", true);
	c = api(rig, "POST", "/v1/policies/reload", NULL);
	assert_call(c, 400, "two.yaml:");
	c = api(rig, "GET", "/v1/policies", NULL);
	assert_call(c, 200, "two.yaml");

	/* what another file defines the API does not change */
	assert_int_equal(unlink(rig_path(rig, "policies/two.yaml")), 0);
	assert_call(api(rig, "POST", "/v1/policies/reload", NULL), 200,
		    "\"error\":null");
	assert_call(
		api(rig, "PUT", "/v1/policies/p", policy_json("a", "z.com")),
		400, "one.yaml");
	assert_call(api(rig, "DELETE", "/v1/policies/p", NULL), 409,
		    "one.yaml, line 2");

	/* the API comes first */
	assert_call(
		api(rig, "PUT", "/v1/policies/zz", policy_json("a", "z.com")),
		201, NULL);
	assert_allows(rig, "a", "z.com", true);
	assert_allows(rig, "a", "x.com", false);
}

/* Nothing is sent for what did not change. */
static void files__cost_nothing_when_they_are_the_same(void **state)
{
	const struct msg_none none = { 0 };
	struct rig *rig = *state;
	unsigned messages;

	rig_write(rig, "policies/one.yaml", policy_file("p", "a", "x.com"));
	RIG_UNTIL(rig, rig->gateway.policy_count == 2);
	rig_turns(rig, 200);
	messages = rig->gateway.messages;
	assert_call(api(rig, "POST", "/v1/policies/reload", NULL), 200, NULL);
	assert_int_equal(rig->gateway.messages, messages + 1); /* SYNC */
	rig_tell(rig, MSG_SUPERVISOR_RELOAD, &none, -1);
	RIG_UNTIL(rig, rig->gateway.messages == messages + 2);
}

static void files__that_never_loaded_deny_everything(void **state)
{
	struct rig *rig = *state;

	rig_write(rig, "policies/bad.yaml", "policies: 5\n");
	log_set_level(LOG_ERROR);
	rig_control_start(rig);
	rig_vault_up(rig);
	rig_gateway_up(rig);
	(void)api(rig, "PUT", "/v1/policies/p", policy_json("a", "x.com"));
	(void)api(rig, "POST", "/v1/sandboxes",
		  SANDBOX("a", "sp-a", "10.0.0.2"));
	/* the operator's overlay is not known: no policy may hold */
	assert_int_equal(fake_sandbox(&rig->gateway, "a")->policy,
			 POLICY_ID_NONE);
	unlink(rig_path(rig, "policies/bad.yaml"));
	assert_call(api(rig, "POST", "/v1/policies/reload", NULL), 200, NULL);
	assert_allows(rig, "a", "x.com", true);
}

/* -- explain --------------------------------------------------------------- */

static void explain__answers_as_the_gateway_would(void **state)
{
	struct rig *rig = *state;
	const struct call *c;

	(void)api(rig, "PUT", "/v1/policies/p",
		  policy_json("a", "*.example.com"));
	(void)api(rig, "POST", "/v1/sandboxes",
		  SANDBOX("a", "sp-a", "10.0.0.2"));
	(void)api(rig, "PUT", "/v1/credentials/c",
		  "{\"source\":{\"value\":\"v\"}}");
	(void)api(rig, "PUT", "/v1/bindings/b",
		  "{\"name\":\"b\",\"match\":{\"hosts\":[\"api.example.com\"],"
		  "\"paths\":[\"/v1/*\"]},\"auth\":{\"type\":\"bearer\","
		  "\"credential\":\"c\"}}");
	c = api(rig, "GET",
		"/v1/explain?sandbox=a&method=POST&"
		"url=https%3A%2F%2Fapi.example.com%2Fv1%2Fx%3Fq",
		NULL);
	assert_call(c, 200, "\"verdict\":\"allow\"");
	assert_call(c, 200, "\"policy\":\"p\"");
	assert_call(c, 200, "\"binding\":\"b\"");
	assert_call(c, 200, "\"source\":\"rule\"");
	c = api(rig, "POST", "/v1/explain",
		"{\"sandbox\":\"a\",\"url\":\"https://evil.com/\"}");
	assert_call(c, 200, "\"verdict\":\"deny\"");
	assert_call(c, 200, "\"binding\":null");
	assert_call(api(rig, "POST", "/v1/explain",
			"{\"sandbox\":\"a\",\"url\":\"http://x.example.com:"
			"8080/\",\"address\":\"192.0.2.1\"}"),
		    200, "\"verdict\":\"allow\"");

	/* a wildcard does not mean a resolver of others */
	c = api(rig, "POST", "/v1/explain",
		"{\"sandbox\":\"a\",\"method\":\"POST\",\"url\":"
		"\"https://x.example.com/dns-query\"}");
	assert_call(c, 200, "\"verdict\":\"deny\"");
	assert_call(c, 200, "\"source\":\"foreign resolver\"");
	assert_call(api(rig, "GET",
			"/v1/explain?sandbox=a&url=https://x.example.com:853",
			NULL),
		    200, "\"source\":\"foreign resolver\"");

	/* in words: names, connections and flows */
	c = api(rig, "POST", "/v1/explain",
		"{\"sandbox\":\"a\",\"words\":\"connect udp "
		"x.example.com:123\"}");
	assert_call(c, 200, "\"words\":\"connect udp x.example.com:123\"");
	assert_call(c, 200, "\"verdict\":\"deny\"");
	assert_null(strstr(c->body, "binding"));
	assert_call(api(rig, "POST", "/v1/explain",
			"{\"sandbox\":\"a\",\"words\":\"connect "
			"x.example.com:22 at 192.0.2.1\"}"),
		    200, "\"verdict\":\"allow\"");
	assert_call(api(rig, "GET",
			"/v1/explain?sandbox=a&words=name+x.example.com", NULL),
		    200, "\"verdict\":\"allow\"");
	assert_call(api(rig, "POST", "/v1/explain",
			"{\"sandbox\":\"a\",\"words\":\"connect udp "
			"x.example.com:853\"}"),
		    200, "\"verdict\":\"deny\"");
	assert_call(api(rig, "POST", "/v1/explain",
			"{\"sandbox\":\"a\",\"words\":\"connect sctp "
			"x.example.com:1\"}"),
		    400, "expected");
	assert_call(api(rig, "POST", "/v1/explain",
			"{\"sandbox\":\"a\",\"words\":\"name x.com\","
			"\"url\":\"https://x.com/\"}"),
		    400, "one of them");

	assert_call(api(rig, "GET", "/v1/explain?sandbox=b&url=https://x.com",
			NULL),
		    404, "sandbox");
	assert_call(
		api(rig, "GET", "/v1/explain?sandbox=a&url=ftp://x.com", NULL),
		400, "https://");
	assert_call(api(rig, "GET", "/v1/explain?sandbox=a", NULL), 400, NULL);
	assert_call(api(rig, "POST", "/v1/explain",
			"{\"sandbox\":\"a\",\"url\":\"https://x y/\"}"),
		    400, NULL);
	assert_call(api(rig, "POST", "/v1/explain",
			"{\"sandbox\":\"a\",\"uri\":\"https://x\"}"),
		    400, "did you mean");
}

#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, rig_set_up, rig_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sandboxes__come_and_go),
		TEST(sandboxes__are_shown_without_the_gateway),
		TEST(sandboxes__share_no_address),
		TEST(sandboxes__refuse),
		TEST(sandboxes__are_locked_to_their_interface),
		TEST(sandboxes__without_their_lock_are_cut_off),
		TEST(sandboxes__survive_a_restart),
		TEST(sandboxes__have_a_default_policy),
		TEST(policies__are_put_and_taken_away),
		TEST(policies__refuse_and_say_why),
		TEST(files__are_reloaded_when_they_change),
		TEST(files__cost_nothing_when_they_are_the_same),
		cmocka_unit_test_setup_teardown(
			files__that_never_loaded_deny_everything, rig_bare,
			rig_tear_down),
		TEST(explain__answers_as_the_gateway_would),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
