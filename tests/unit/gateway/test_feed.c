/* SPDX-License-Identifier: Apache-2.0 */
/* test_feed.c - what control and vault say, until it is in force */

#include "tests/unit/gateway/roles.h"

#include <errno.h>
#include <fcntl.h>

#include "src/text/json.h"

#define BINDING(name, host, credential)                                \
	"{\"name\":\"" name "\",\"match\":{\"hosts\":[\"" host "\"]}," \
	"\"auth\":{\"type\":\"bearer\",\"credential\":\"" credential "\"}}"
#define SET(list) "{\"revision\":3,\"bindings\":[" list "]}"

static const char one[] = SET(BINDING("one", "a.example", "tok"));
static const char two[] = SET(BINDING("one", "a.example", "tok") "," BINDING(
	"two", "b.example", "tok2"));

static void say_policy(struct roles *r, uint32_t id, const char *text)
{
	CLEANUP(buf_fini) struct buf bytes = BUF_INIT(WORLD_POLICY_BYTES);
	struct msg_policy body = { .policy = id, .generation = 8 };

	world_compile(text, !id, &body, &bytes);
	say_text(r->control, MSG_CONTROL_POLICY, &body, buf_peek(&bytes));
}

static struct facts *facts_of(struct roles *r)
{
	return &r->world->worker.facts;
}

static struct sandbox *known(struct roles *r, const char *ip)
{
	struct addr a = addr_of(ip, 0);

	return facts_find_sandbox(facts_of(r), &a, "");
}

/* The value in force, "" when there is no lease, NULL without bindings. */
static const char *lease_in_force(struct roles *r, const char *scope,
				  const char *credential)
{
	struct bindings *b = map_find(&facts_of(r)->bindings, span_str(scope));
	const struct secret *s;
	static char text[64];

	if (!b)
		return NULL;
	s = bindings_lease(b, span_str(credential));
	must(span_copy(s ? secret_open(s) : SPAN(""), text, sizeof(text)));
	return text;
}

/* -- changes ----------------------------------------------------------------
 */

static void feed__sync_follows_what_was_said(void **state)
{
	struct msg_sandbox s = sandbox_msg("s", "10.0.0.1", 4);
	struct msg_policy drop = { .policy = 4 };
	struct roles *r = *state;

	say(r->control, MSG_CONTROL_SANDBOX, 0, &s, SPAN_NONE);
	say_policy(r, 4, "policies: [{name: four}]\n");
	say_policy(r, 0, "deny: [{target: x.example}]\n");
	say_sync(r, 77);
	hear_synced(r, 77);
	assert_non_null(known(r, "10.0.0.1"));
	assert_span(facts_policy(facts_of(r), known(r, "10.0.0.1"))->name,
		    "four");
	assert_non_null(facts_overlay(facts_of(r)));
	assert_false(r->world->worker.facts_dirty);

	say(r->control, MSG_CONTROL_POLICY_DROP, 0, &drop, SPAN_NONE);
	say_sync(r, 78);
	hear_synced(r, 78);
	assert_null(facts_policy(facts_of(r), known(r, "10.0.0.1")));
	say(r->control, MSG_CONTROL_SANDBOX_DROP, 0, &s, SPAN_NONE);
	say_sync(r, 79);
	say_sync(r, 80);
	hear_synced(r, 79);
	hear_synced(r, 80);
	assert_null(known(r, "10.0.0.1"));
	assert_true(r->world->gateway.synced);
	assert_false(is_said(r, r->supervisor));
}

static void feed__node(void **state)
{
	static const char json[] =
		"{\"pins\":{\"p.example\":[\"10.0.0.9\",\"junk\"],"
		"\"Not A Name\":[\"10.0.0.8\"]},"
		"\"hosts\":{\"p.example\":[\"10.0.0.7\"],"
		"\"h.example\":[\"10.0.0.6\"]},"
		"\"own\":[\"192.0.2.1/32\",\"junk\",\"2001:db8::/64\"],"
		"\"upstreams\":[\"192.0.2.53\",\"junk\",\"[::1]:5353\"]}";
	struct msg_scope body = { .size = sizeof(json) - 1 };
	struct addr own = addr_of("2001:db8::1", 0);
	struct name_answer answer;
	struct roles *r = *state;

	say_text(r->control, MSG_CONTROL_NODE, &body, SPAN(json));
	say_sync(r, 1);
	hear_synced(r, 1);
	assert_true(resolver_find(r->world->worker.resolver, SPAN("p.example"),
				  &answer));
	assert_int_equal(answer.source, NAME_PIN);
	assert_int_equal(answer.count, 1);
	assert_true(resolver_find(r->world->worker.resolver, SPAN("h.example"),
				  &answer));
	assert_int_equal(answer.source, NAME_HOSTS);
	assert_true(facts_is_own(facts_of(r), &own));
	assert_int_equal(names_count(facts_of(r)->names), 3);
}

/* -- leases -----------------------------------------------------------------
 */

static void lease__sync_waits_for_values(void **state)
{
	struct roles *r = *state;
	uint32_t first, second;

	say_bindings(r, "", two);
	say_sync(r, 5);
	first = hear_lease(r, "", "tok");
	second = hear_lease(r, "", "tok2");
	assert_int_not_equal(first, second);
	assert_false(is_said(r, r->vault));
	assert_false(is_said(r, r->control));
	assert_null(lease_in_force(r, "", "tok"));

	say_result(r->vault, MSG_VAULT_LEASE, second, 0, SPAN("v2"));
	assert_false(is_said(r, r->control));
	assert_null(lease_in_force(r, "", "tok2")); /* all or nothing */
	say_result(r->vault, MSG_VAULT_LEASE, first, 0, SPAN("v1"));
	hear_synced(r, 5);
	assert_string_equal(lease_in_force(r, "", "tok"), "v1");
	assert_string_equal(lease_in_force(r, "", "tok2"), "v2");
}

static void lease__one_credential_is_asked_once(void **state)
{
	static const char json[] = SET(BINDING(
		"a", "a.example", "tok") "," BINDING("b", "b.example", "tok"));
	struct roles *r = *state;

	say_bindings(r, "box", json);
	say_result(r->vault, MSG_VAULT_LEASE, hear_lease(r, "box", "tok"), 0,
		   SPAN("v"));
	assert_false(is_said(r, r->vault));
	assert_string_equal(lease_in_force(r, "box", "tok"), "v");
}

static void lease__no_bindings_need_no_vault(void **state)
{
	struct roles *r = *state;

	roles_vault_end(r);
	say_bindings(r, "", SET(""));
	say_sync(r, 6);
	hear_synced(r, 6);
	assert_non_null(map_find(&facts_of(r)->bindings, SPAN("")));
}

static void lease__a_refusal_leaves_it_without(void **state)
{
	struct roles *r = *state;

	say_bindings(r, "", one);
	say_sync(r, 7);
	say_result(r->vault, MSG_VAULT_LEASE, hear_lease(r, "", "tok"), ENOENT,
		   SPAN("ignored"));
	hear_synced(r, 7);
	assert_string_equal(lease_in_force(r, "", "tok"), "");
}

static void lease__a_new_vault_is_asked_again(void **state)
{
	struct roles *r = *state;
	uint32_t first;

	say_bindings(r, "", two);
	say_sync(r, 8);
	first = hear_lease(r, "", "tok");
	(void)hear_lease(r, "", "tok2");
	say_result(r->vault, MSG_VAULT_LEASE, first, 0, SPAN("v1"));
	world_settle(r->world);
	roles_vault_end(r);
	assert_false(is_said(r, r->control));

	roles_vault_begin(r); /* only for what is missing */
	say_result(r->vault, MSG_VAULT_LEASE, hear_lease(r, "", "tok2"), 0,
		   SPAN("v2"));
	assert_false(is_said(r, r->vault));
	hear_synced(r, 8);
	assert_string_equal(lease_in_force(r, "", "tok"), "v1");
	assert_string_equal(lease_in_force(r, "", "tok2"), "v2");
}

static void lease__waits_for_a_vault_to_come(void **state)
{
	struct roles *r = *state;

	roles_vault_end(r);
	say_bindings(r, "", one);
	say_sync(r, 9);
	assert_false(is_said(r, r->control));
	roles_vault_begin(r);
	say_result(r->vault, MSG_VAULT_LEASE, hear_lease(r, "", "tok"), 0,
		   SPAN("v"));
	hear_synced(r, 9);
	assert_string_equal(lease_in_force(r, "", "tok"), "v");
}

static void lease__newer_bindings_replace_a_job(void **state)
{
	static const char newer[] = SET(BINDING("n", "n.example", "new"));
	struct roles *r = *state;
	uint32_t old, other;

	say_bindings(r, "", one);
	say_bindings(r, "box", one); /* another scope: another job */
	say_sync(r, 10);
	old = hear_lease(r, "", "tok");
	other = hear_lease(r, "box", "tok");
	say_bindings(r, "", newer);
	say_result(r->vault, MSG_VAULT_LEASE, old, 0, SPAN("late"));
	say_result(r->vault, MSG_VAULT_LEASE, 0, 0, SPAN("no serial"));
	say_result(r->vault, MSG_VAULT_LEASE, other, 0, SPAN("v"));
	say_result(r->vault, MSG_VAULT_LEASE, hear_lease(r, "", "new"), 0,
		   SPAN("v-new"));
	hear_synced(r, 10);
	assert_string_equal(lease_in_force(r, "", "new"), "v-new");
	assert_string_equal(lease_in_force(r, "", "tok"), "");
	assert_string_equal(lease_in_force(r, "box", "tok"), "v");

	/* bindings that need nothing replace a job that waits */
	say_bindings(r, "", one);
	old = hear_lease(r, "", "tok");
	say_bindings(r, "", SET(""));
	say_sync(r, 11);
	hear_synced(r, 11);
	say_result(r->vault, MSG_VAULT_LEASE, old, 0, SPAN("late"));
	world_settle(r->world);
	assert_string_equal(lease_in_force(r, "", "tok"), "");
	assert_false(is_said(r, r->supervisor));
}

/* The world ends with jobs, and nothing leaks. */
static void lease__may_end_unanswered(void **state)
{
	struct roles *r = *state;

	say_bindings(r, "", two);
	(void)hear_lease(r, "", "tok");
}

/* -- what is malformed ------------------------------------------------------
 */

static void feed__a_short_message_accuses(void **state)
{
	static const enum msg_type types[] = {
		MSG_CONTROL_SANDBOX, MSG_CONTROL_POLICY, MSG_CONTROL_BINDINGS,
		MSG_CONTROL_NODE,    MSG_CONTROL_SYNC,	 MSG_CONTROL_STATUS,
	};
	static const char zeros[4096];
	struct roles *r = *state;
	size_t i;

	for (i = 0; i < ARRAY_LEN(types); i++) {
		must(!chan_send_now(r->control, (uint16_t)types[i], 1, zeros,
				    msg_body_size((uint16_t)types[i]) - 1,
				    SPAN_NONE, NULL, 0));
		hear_accused(r, ROLE_CONTROL);
	}
	assert_false(is_said(r, r->control));
}

static void feed__an_unknown_type_accuses(void **state)
{
	const struct msg_none none = { 0 };
	const struct msg_result result = { 0 };
	struct roles *r = *state;

	say(r->control, MSG_SUPERVISOR_START, 0, &none, SPAN_NONE);
	hear_accused(r, ROLE_CONTROL);
	say(r->control, MSG_VAULT_LEASE, 1, &result, SPAN("value"));
	hear_accused(r, ROLE_CONTROL);
	must(!chan_send_now(r->control, 999, 0, &none, sizeof(none), SPAN_NONE,
			    NULL, 0));
	hear_accused(r, ROLE_CONTROL);
}

static void feed__an_open_string_accuses(void **state)
{
	struct msg_sandbox s = sandbox_msg("s", "10.0.0.1", 1);
	struct roles *r = *state;

	memset(s.id, 'x', sizeof(s.id));
	say(r->control, MSG_CONTROL_SANDBOX, 0, &s, SPAN_NONE);
	hear_accused(r, ROLE_CONTROL);
	assert_null(known(r, "10.0.0.1"));
}

static void feed__unusable_contents_accuse(void **state)
{
	static const char *const texts[] = { "", "{", "[]", "{\"bindings\":5}",
					     "\xff\xff\xff\xff" };
	struct msg_policy policy = { .policy = 1, .size = 4 };
	struct msg_scope scope = { .size = 4 };
	struct roles *r = *state;
	size_t i;

	/* no fd */
	say(r->control, MSG_CONTROL_POLICY, 0, &policy, SPAN_NONE);
	hear_accused(r, ROLE_CONTROL);
	say(r->control, MSG_CONTROL_BINDINGS, 0, &scope, SPAN_NONE);
	hear_accused(r, ROLE_CONTROL);
	say(r->control, MSG_CONTROL_NODE, 0, &scope, SPAN_NONE);
	hear_accused(r, ROLE_CONTROL);
	for (i = 0; i < ARRAY_LEN(texts); i++) {
		policy.size = scope.size = strlen(texts[i]);
		say_text(r->control, MSG_CONTROL_POLICY, &policy,
			 span_str(texts[i]));
		hear_accused(r, ROLE_CONTROL);
		say_text(r->control, MSG_CONTROL_BINDINGS, &scope,
			 span_str(texts[i]));
		hear_accused(r, ROLE_CONTROL);
	}
	scope.size = UINT64_MAX; /* more than the memfd holds */
	say_text(r->control, MSG_CONTROL_NODE, &scope, SPAN("{}"));
	hear_accused(r, ROLE_CONTROL);
	assert_null(map_find(&facts_of(r)->bindings, SPAN("")));
}

static void lease__a_short_answer_accuses_the_vault(void **state)
{
	struct roles *r = *state;
	uint32_t serial;

	say_bindings(r, "", one);
	serial = hear_lease(r, "", "tok");
	must(!chan_send_now(r->vault, MSG_VAULT_LEASE, serial, "x", 1,
			    SPAN_NONE, NULL, 0));
	hear_accused(r, ROLE_VAULT);
	assert_null(lease_in_force(r, "", "tok"));
}

/* -- status -----------------------------------------------------------------
 */

static void feed__status(void **state)
{
	CLEANUP_JSON struct json *j = NULL;
	const struct msg_none none = { 0 };
	struct roles *r = *state;
	struct worker *w = &r->world->worker;
	uint64_t number;
	uint32_t serial;
	struct span tail;
	int i;

	(void)world_sandbox(r->world, "s", "10.0.0.1");
	worker_counted_by(w, denied, 12);
	say(r->control, MSG_CONTROL_STATUS, 44, &none, SPAN_NONE);
	(void)hear(r, r->control, MSG_GATEWAY_STATUS, &serial, &tail);
	assert_int_equal(serial, 44);
	assert_int_equal(json_parse(tail, &j, NULL), 0);
	assert_true(json_u64(json_find(j, "loops"), &number));
	assert_int_equal(number, 1);
	assert_true(json_u64(json_find(j, "sandboxes"), &number));
	assert_int_equal(number, 1);
	assert_int_equal(json_count(json_find(j, "counters")), COUNTER_NUM);
	for (i = 0; i < COUNTER_NUM; i++)
		assert_non_null(
			json_find(json_find(j, "counters"),
				  worker_counter_name((enum worker_counter)i)));
	assert_true(json_u64(json_find(json_find(j, "counters"), "denied"),
			     &number));
	assert_int_equal(number, 12);
	assert_true(json_count(json_find(j, "dns")) > 0);
}

/* Replacing the audit file closes the one before, and only then. */
static void feed__a_new_audit_file_ends_the_old(void **state)
{
	struct roles *r = *state;
	struct parcel *p;
	int fds[2], i;

	for (i = 0; i < 2; i++) {
		fds[i] = chan_memfd(SPAN("x"));
		p = parcel_new(&r->world->gateway, PARCEL_AUDIT);
		p->audit_fd = fds[i];
		parcel_send(p);
		assert_true(fcntl(fds[0], F_GETFD) >= 0);
		world_settle(r->world);
	}
	assert_true(fcntl(fds[0], F_GETFD) < 0);
	assert_true(fcntl(fds[1], F_GETFD) >= 0);
}

#define ROLES_TEST(fn) \
	cmocka_unit_test_setup_teardown(fn, roles_set_up, roles_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROLES_TEST(feed__sync_follows_what_was_said),
		ROLES_TEST(feed__node),
		ROLES_TEST(lease__sync_waits_for_values),
		ROLES_TEST(lease__one_credential_is_asked_once),
		ROLES_TEST(lease__no_bindings_need_no_vault),
		ROLES_TEST(lease__a_refusal_leaves_it_without),
		ROLES_TEST(lease__a_new_vault_is_asked_again),
		ROLES_TEST(lease__waits_for_a_vault_to_come),
		ROLES_TEST(lease__newer_bindings_replace_a_job),
		ROLES_TEST(lease__may_end_unanswered),
		ROLES_TEST(feed__a_short_message_accuses),
		ROLES_TEST(feed__an_unknown_type_accuses),
		ROLES_TEST(feed__an_open_string_accuses),
		ROLES_TEST(feed__unusable_contents_accuse),
		ROLES_TEST(lease__a_short_answer_accuses_the_vault),
		ROLES_TEST(feed__status),
		ROLES_TEST(feed__a_new_audit_file_ends_the_old),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
