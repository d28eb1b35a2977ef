/* SPDX-License-Identifier: Apache-2.0 */
/* test_vault_api.c - credentials, bindings and patches through the API */

#include "tests/unit/control/rig.h"

#define SECRET "s3cr3t-value"
#define CREDENTIAL(name) \
	"{\"name\":\"" name "\",\"source\":{\"value\":\"" SECRET "\"}}"
#define BINDING_AT(name, host, credential)                             \
	"{\"name\":\"" name "\",\"match\":{\"hosts\":[\"" host "\"]}," \
	"\"auth\":{\"type\":\"bearer\",\"credential\":\"" credential "\"}}"
#define BINDING(name) BINDING_AT(name, name ".example.com", "c")

/* No reply of any of these tests may hold the value. */
static const struct call *ask(struct rig *rig, const char *method,
			      const char *path, const char *body)
{
	const struct call *c = api(rig, method, path, body);

	assert_null(strstr(c->text, SECRET));
	return c;
}

static void credentials__live_without_their_values(void **state)
{
	struct rig *rig = *state;
	const struct call *c;

	c = ask(rig, "POST", "/v1/credentials", CREDENTIAL(" one "));
	assert_call(c, 201,
		    "{\"name\":\"one\",\"sourceType\":\"inline\",\"revision\":"
		    "1}");
	assert_string_equal(
		fake_value(&rig->vault, "", RECORD_CREDENTIAL, "one"), SECRET);
	assert_call(ask(rig, "POST", "/v1/credentials", CREDENTIAL("one")), 409,
		    "credential \\\"one\\\" already exists");
	assert_call(ask(rig, "PUT", "/v1/credentials/two",
			"{\"source\":{\"type\":\"inline\",\"value\":\"" SECRET
			"\"}}"),
		    201, "\"revision\":2");
	assert_call(ask(rig, "PUT", "/v1/credentials/two", CREDENTIAL("two")),
		    200, "\"revision\":3");
	assert_call(ask(rig, "PUT", "/v1/credentials/two", CREDENTIAL("x")),
		    400, "differs");
	assert_call(ask(rig, "GET", "/v1/credentials", NULL), 200,
		    "{\"revision\":3,\"credentials\":[{\"name\":\"one\","
		    "\"sourceType\":\"inline\",\"revision\":1},{\"name\":"
		    "\"two\",\"sourceType\":\"inline\",\"revision\":3}]}");
	assert_call(ask(rig, "GET", "/v1/credentials/one", NULL), 200,
		    "\"name\":\"one\"");
	assert_call(ask(rig, "DELETE", "/v1/credentials/one", NULL), 204, "");
	assert_call(ask(rig, "GET", "/v1/credentials/one", NULL), 404, NULL);
	assert_call(ask(rig, "DELETE", "/v1/credentials/one", NULL), 404,
		    "does not exist");
	assert_null(fake_value(&rig->vault, "", RECORD_CREDENTIAL, "one"));
}

static void credentials__refuse(void **state)
{
#define SOURCE(s) "{\"name\":\"n\",\"source\":{" s "}}"
	static const struct {
		const char *body, *says;
	} rows[] = {
		{ "", "not JSON" },
		{ "[]", "expected an object" },
		{ "{\"name\":\"n\"}", "\\\"source\\\" is missing" },
		{ "{\"source\":{\"value\":\"v\"}}", "name" },
		{ "{\"name\":\"a\\nb\",\"source\":{\"value\":\"v\"}}", "name" },
		{ SOURCE(""), "\\\"value\\\" is missing" },
		{ SOURCE("\"value\":\"\""), "\\\"value\\\" is missing" },
		{ SOURCE("\"value\":5"), "found a number, expected a string" },
		{ SOURCE("\"value\":\"" SECRET "\\r\""), "holds CR, LF" },
		{ SOURCE("\"value\":\"" SECRET "\\n\""), "holds CR, LF" },
		{ SOURCE("\"value\":\"" SECRET "\\u0000\""), "holds CR, LF" },
		{ SOURCE("\"type\":\"env\",\"value\":\"" SECRET "\""),
		  "unsupported credential source type" },
		{ SOURCE("\"value\":\"" SECRET "\",\"path\":\"/x\""),
		  "unknown field" },
		{ "{\"name\":\"n\",\"value\":\"" SECRET "\"}",
		  "unknown field" },
		{ "{\"name\":\"n\",\"name\":\"m\",\"source\":{\"value\":"
		  "\"" SECRET "\"}}",
		  "duplicate" },
	};
	struct rig *rig = *state;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		assert_call(ask(rig, "POST", "/v1/credentials", rows[i].body),
			    400, rows[i].says);
	assert_int_equal(rig->vault.commits, 0);
}

static void bindings__reach_the_gateway(void **state)
{
	struct rig *rig = *state;
	const char *text;

	assert_call(
		ask(rig, "POST", "/v1/bindings", BINDING("b")), 400,
		"binding \\\"b\\\" references unknown credential \\\"c\\\"");
	(void)ask(rig, "POST", "/v1/credentials", CREDENTIAL("c"));
	assert_call(ask(rig, "POST", "/v1/bindings", BINDING("b")), 201,
		    "\"ports\":[443]");
	text = buf_peek(&rig->gateway.bindings).ptr;
	assert_non_null(strstr(text, "{\"revision\":2,\"bindings\":[{\"name\":"
				     "\"b\",\"revision\":2,"));
	assert_non_null(strstr(text, "\"credential\":\"c\""));
	assert_null(strstr(text, SECRET));

	assert_call(ask(rig, "POST", "/v1/bindings", BINDING("b")), 409,
		    "already exists");
	assert_call(ask(rig, "POST", "/v1/bindings",
			BINDING_AT("other", "b.example.com", "c")),
		    400,
		    "bindings \\\"b\\\" and \\\"other\\\" can match the same "
		    "request");
	/* what was read may be sent back */
	text = ask(rig, "GET", "/v1/bindings/b", NULL)->body;
	assert_call(ask(rig, "PUT", "/v1/bindings/b", strdupa(text)), 200,
		    "\"revision\":3");
	assert_call(ask(rig, "DELETE", "/v1/credentials/c", NULL), 400,
		    "references unknown credential");
	assert_call(ask(rig, "GET", "/v1/bindings", NULL), 200,
		    "{\"revision\":3,\"bindings\":[{");
	assert_call(ask(rig, "DELETE", "/v1/bindings/b", NULL), 204, "");
	assert_call(ask(rig, "DELETE", "/v1/bindings/b", NULL), 404, NULL);
	assert_string_equal(buf_peek(&rig->gateway.bindings).ptr,
			    "{\"revision\":4,\"bindings\":[]}");
	assert_call(ask(rig, "DELETE", "/v1/credentials/c", NULL), 204, "");
}

static const struct call *patch(struct rig *rig, const char *body)
{
	return ask(rig, "PATCH", "/v1/vault", body);
}

/* The life of a vault as clients drive it: each step is one revision. */
static void patch__moves_the_revision_by_one(void **state)
{
	static const char *const steps[] = {
		"{}",
		"{\"expectedRevision\":1,\"credentials\":{\"add\":[" CREDENTIAL(
			"c") "]},\"bindings\":{\"add\":[" BINDING("b") "]}}",
		"{\"bindings\":{\"delete\":[\"b\"]}}",
		"{\"credentials\":{\"replace\":[" CREDENTIAL(
			"c") "]},\"bindings\":{\"add\":[" BINDING("b2") "]}}",
		"{\"bindings\":{\"delete\":[\"b2\"]}}",
		"{\"credentials\":{\"delete\":[\"c\"]},\"bindings\":{}}",
	};
	struct rig *rig = *state;
	const struct call *c;
	size_t i;

	for (i = 0; i < ARRAY_LEN(steps); i++) {
		c = patch(rig, steps[i]);
		assert_call(c, 200, "\"credentials\":[");
		assert_int_equal(call_u64(c, "revision"), i + 1);
	}
	assert_call(ask(rig, "GET", "/v1/vault", NULL), 200,
		    "{\"revision\":6,\"credentials\":[],\"bindings\":[]}");
}

static void patch__is_all_or_nothing(void **state)
{
	static const struct {
		const char *body;
		unsigned status;
		const char *says;
	} rows[] = {
		{ "{\"expectedRevision\":7}", 409,
		  "expectedRevision 7 does not match current revision 1" },
		{ "{\"expectedRevision\":-1}", 400, "whole number" },
		{ "{\"credentials\":{\"add\":[" CREDENTIAL("c") "]}}", 400,
		  "already exists" },
		{ "{\"credentials\":{\"replace\":[" CREDENTIAL("d") "]}}", 400,
		  "does not exist" },
		{ "{\"credentials\":{\"delete\":[\"d\"]}}", 400,
		  "does not exist" },
		{ "{\"bindings\":{\"delete\":[\"d\"]}}", 400,
		  "does not exist" },
		{ "{\"credentials\":{\"delete\":[\"c\"],\"add\":[" CREDENTIAL(
			  "c") "]}}",
		  400, "mentioned by multiple operations" },
		{ "{\"credentials\":{\"delete\":[\"c\"]}}", 400,
		  "references unknown credential" },
		{ "{\"bindings\":{\"add\":[" BINDING("x") "," BINDING_AT(
			  "y", "x.example.com", "c") "]}}",
		  400, "can match the same request" },
		{ "{\"bindings\":{\"add\":[" BINDING("x") "," BINDING_AT(
			  "z", "z.example.com", "nothing") "]}}",
		  400, "references unknown credential" },
		{ "{\"binding\":{}}", 400, "did you mean" },
		{ "{\"bindings\":{\"remove\":[]}}", 400, "unknown field" },
		{ "{\"bindings\":[]}", 400, "expected an object" },
		{ "{\"bindings\":{\"delete\":[5]}}", 400, "expected names" },
		{ "[]", 400, "expected an object" },
	};
	struct rig *rig = *state;
	size_t i;

	assert_call(patch(rig, "{\"credentials\":{\"add\":[" CREDENTIAL(
				       "c") "]},\"bindings\":{\"add\":"
					    "[" BINDING("b") "]}}"),
		    200, NULL);
	for (i = 0; i < ARRAY_LEN(rows); i++)
		assert_call(patch(rig, rows[i].body), rows[i].status,
			    rows[i].says);
	assert_int_equal(rig->vault.commits, 1);

	/* a name that gives way to another in the same patch is no clash */
	assert_call(
		patch(rig,
		      "{\"bindings\":{\"delete\":[\"b\"],\"add\":[" BINDING_AT(
			      "new", "b.example.com", "c") "]}}"),
		200, "\"name\":\"new\"");
}

static void change__may_expect_a_revision_in_its_query(void **state)
{
	struct rig *rig = *state;

	assert_call(ask(rig, "POST", "/v1/credentials?expectedRevision=3",
			CREDENTIAL("c")),
		    409, "expectedRevision 3");
	assert_call(ask(rig, "POST", "/v1/credentials?expectedRevision=x",
			CREDENTIAL("c")),
		    400, "expectedRevision");
	assert_call(ask(rig, "POST", "/v1/credentials?expectedRevision=0",
			CREDENTIAL("c")),
		    201, NULL);
}

static void change__waits_until_it_is_in_force(void **state)
{
	struct rig *rig = *state;
	struct call *c;

	rig->gateway.hold = true;
	c = call_start(rig, "POST", "/v1/credentials", CREDENTIAL("c"));
	RIG_UNTIL(rig, rig->gateway.held_count);
	assert_false(call_poll(rig, c));
	fake_synced(&rig->gateway, rig->gateway.held[0]);
	RIG_UNTIL(rig, call_poll(rig, c));
	assert_call(c, 201, NULL);
	call_free(c);
}

static void change__says_when_the_gateway_is_down(void **state)
{
	struct rig *rig = *state;
	struct call *c;

	rig_gateway_down(rig);
	assert_call(ask(rig, "POST", "/v1/credentials", CREDENTIAL("c")), 503,
		    "is stored (revision 1) but not yet in force");
	assert_call(ask(rig, "POST", "/v1/bindings", BINDING("b")), 503,
		    "the gateway is down");
	/* a new one gets everything */
	rig_gateway_up(rig);
	RIG_UNTIL(rig, buf_len(&rig->gateway.bindings));
	assert_non_null(
		strstr(buf_peek(&rig->gateway.bindings).ptr, "b.example.com"));

	/* and one that dies before it says so */
	rig->gateway.hold = true;
	c = call_start(rig, "POST", "/v1/credentials", CREDENTIAL("d"));
	RIG_UNTIL(rig, rig->gateway.held_count);
	rig_gateway_down(rig);
	RIG_UNTIL(rig, call_poll(rig, c));
	assert_call(c, 503, "NOT_IN_FORCE");
	call_free(c);
}

static void change__reads_again_after_a_conflict(void **state)
{
	struct rig *rig = *state;
	unsigned reads = rig->vault.reads;

	/* somebody else wrote */
	++*fake_revision(&rig->vault, "");
	assert_call(ask(rig, "POST", "/v1/credentials", CREDENTIAL("c")), 409,
		    "REVISION_CONFLICT");
	RIG_UNTIL(rig, rig->control->loaded);
	assert_true(rig->vault.reads > reads);
	assert_call(ask(rig, "POST", "/v1/credentials", CREDENTIAL("c")), 201,
		    "\"revision\":2");
}

static void change__tells_what_the_vault_said(void **state)
{
	struct rig *rig = *state;

	rig->vault.fail_commit = ENOSPC;
	assert_call(ask(rig, "POST", "/v1/credentials", CREDENTIAL("c")), 500,
		    "the fake vault refuses");
	assert_call(ask(rig, "GET", "/v1/credentials", NULL), 200,
		    "\"credentials\":[]");
}

static void change__survives_the_vault(void **state)
{
	struct rig *rig = *state;
	struct call *lost, *waiting;

	rig->vault.mute = true;
	lost = call_start(rig, "POST", "/v1/credentials", CREDENTIAL("c"));
	waiting = call_start(rig, "POST", "/v1/credentials", CREDENTIAL("d"));
	RIG_UNTIL(rig, rig->vault.commits);
	rig_vault_down(rig);
	RIG_UNTIL(rig, call_poll(rig, lost));
	assert_call(lost, 503, "not known whether");
	assert_false(call_poll(rig, waiting));
	/* reading goes on meanwhile */
	assert_call(ask(rig, "GET", "/v1/vault", NULL), 200, NULL);

	/* it had been stored; the one that waited goes on */
	rig->vault.mute = false;
	rig_vault_up(rig);
	RIG_UNTIL(rig, call_poll(rig, waiting));
	assert_call(waiting, 201, "\"revision\":2");
	assert_call(ask(rig, "GET", "/v1/vault", NULL), 200, "\"name\":\"c\"");
	call_free(lost);
	call_free(waiting);
}

static void start__reads_what_was_stored(void **state)
{
	struct rig *rig = *state;

	(void)ask(rig, "POST", "/v1/credentials", CREDENTIAL("c"));
	(void)ask(rig, "POST", "/v1/bindings", BINDING("b"));
	rig_control_stop(rig);
	rig_gateway_down(rig);
	rig_vault_down(rig);
	rig_control_start(rig);
	assert_call(ask(rig, "GET", "/v1/vault", NULL), 503, "NOT_READY");
	rig_vault_up(rig);
	rig_gateway_up(rig);
	RIG_UNTIL(rig, buf_len(&rig->gateway.bindings));
	assert_call(ask(rig, "GET", "/v1/vault", NULL), 200,
		    "\"name\":\"b\",\"revision\":2");
}

static void vault__is_maintained(void **state)
{
	struct rig *rig = *state;

	assert_call(ask(rig, "POST", "/v1/vault/rotate-dek", NULL), 200,
		    "all is well");
	assert_call(ask(rig, "POST", "/v1/vault/verify", NULL), 200,
		    "all is well");
	rig_vault_down(rig);
	rig_turns(rig, 5);
	assert_call(ask(rig, "POST", "/v1/vault/verify", NULL), 503, NULL);
}

#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, rig_set_up, rig_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(credentials__live_without_their_values),
		TEST(credentials__refuse),
		TEST(bindings__reach_the_gateway),
		TEST(patch__moves_the_revision_by_one),
		TEST(patch__is_all_or_nothing),
		TEST(change__may_expect_a_revision_in_its_query),
		TEST(change__waits_until_it_is_in_force),
		TEST(change__says_when_the_gateway_is_down),
		TEST(change__reads_again_after_a_conflict),
		TEST(change__tells_what_the_vault_said),
		TEST(change__survives_the_vault),
		TEST(start__reads_what_was_stored),
		TEST(vault__is_maintained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
