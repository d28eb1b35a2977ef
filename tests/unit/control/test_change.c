/* SPDX-License-Identifier: Apache-2.0 */
/* test_change.c - changes that wait together go together, and only then */

#include "tests/unit/control/rig.h"

enum { CALLS_MAX = 8 };

struct calls {
	struct call *items[CALLS_MAX];
	unsigned count;
};

static void calls_add(struct rig *rig, struct calls *all, const char *method,
		      const char *path, const char *body)
{
	all->items[all->count++] = call_start(rig, method, path, body);
	rig_turns(rig, 5); /* it is read, and waits */
}

static void calls_add_sandbox(struct rig *rig, struct calls *all,
			      const char *id, const char *addr)
{
	char body[256];

	snprintf(body, sizeof(body),
		 "{\"id\":\"%s\",\"interface\":\"sp-%s\",\"addresses\":"
		 "[\"%s\"]}",
		 id, id, addr);
	calls_add(rig, all, "POST", "/v1/sandboxes", body);
}

static void calls_end(struct rig *rig, struct calls *all,
		      const unsigned *statuses)
{
	unsigned i;

	for (i = 0; i < all->count; i++) {
		RIG_UNTIL(rig, call_poll(rig, all->items[i]));
		assert_call(all->items[i], statuses[i], NULL);
		call_free(all->items[i]);
	}
	all->count = 0;
}

/* The first goes at once; its commit is held, so that others gather. */
static void hold_first(struct rig *rig, struct calls *all)
{
	struct fake_vault *v = &rig->vault;

	v->hold = true;
	v->commits = v->changes = 0;
	calls_add_sandbox(rig, all, "first", "10.0.0.1");
	RIG_UNTIL(rig, v->held);
	assert_int_equal(v->changes, 1);
}

static void go_on(struct rig *rig)
{
	fake_vault_go_on(&rig->vault);
	RIG_UNTIL(rig, rig->vault.held);
}

static void changes__that_wait_go_together(void **state)
{
	struct rig *rig = *state;
	struct calls all = { 0 };
	unsigned syncs;

	hold_first(rig, &all);
	calls_add_sandbox(rig, &all, "b", "10.0.0.2");
	calls_add(rig, &all, "PUT", "/v1/policies/p",
		  "{\"sandboxes\":{\"ids\":[\"b\",\"c\"]},\"egress\":[]}");
	calls_add_sandbox(rig, &all, "c", "10.0.0.3");
	calls_add(rig, &all, "DELETE", "/v1/sandboxes/nobody", NULL);
	go_on(rig);
	syncs = rig->gateway.syncs;
	assert_int_equal(rig->vault.changes, 4);
	/* nothing is known of what is not stored */
	assert_null(fake_lock(rig, "b"));
	assert_null(fake_sandbox(&rig->gateway, "b"));

	rig->vault.hold = false;
	fake_vault_go_on(&rig->vault);
	calls_end(rig, &all, (const unsigned[]){ 201, 201, 201, 201, 404 });
	assert_int_equal(rig->vault.commits, 2);
	assert_int_equal(rig->gateway.syncs - syncs, 1);
	assert_non_null(fake_lock(rig, "b"));
	assert_non_null(fake_lock(rig, "c"));
	assert_non_null(fake_policy_at(
		&rig->gateway, fake_sandbox(&rig->gateway, "b")->policy));
	assert_int_equal(fake_sandbox(&rig->gateway, "b")->policy,
			 fake_sandbox(&rig->gateway, "c")->policy);
	assert_non_null(fake_value(&rig->vault, VAULT_SCOPE_CONTROL,
				   RECORD_SANDBOX, "c"));
}

/* -- those that the gateway has no part in -------------------------------- */

struct local {
	char name[8];
	unsigned *done;
};

static bool local_claim(struct control *c, const void *data, struct map *claims)
{
	const struct local *l = data;

	(void)c;
	return change_claim(claims, 'l', span_str(l->name));
}

static enum change_step local_check(struct control *c, void *data,
				    struct refusal *no)
{
	const struct local *l = data;

	(void)no;
	change_store_begin(c);
	vault_link_put(c->vault, RECORD_BOX, span_str(l->name), SPAN("{}"));
	return CHANGE_STORE;
}

static void local_apply(struct control *c, void *data, uint64_t revision)
{
	(void)c;
	(void)data;
	(void)revision;
}

static void local_done(struct control *c, void *data, const struct refusal *why)
{
	const struct local *l = data;

	(void)c;
	assert_int_equal(why->status, 0);
	++*l->done;
}

static void local_submit(struct rig *rig, const char *name, unsigned *done)
{
	static const struct change_ops ops = {
		.claim = local_claim,
		.check = local_check,
		.apply = local_apply,
		.done = local_done,
		.free = free,
		.local = true,
	};
	struct local *l = must_alloc(sizeof(*l));

	snprintf(l->name, sizeof(l->name), "%s", name);
	l->done = done;
	change_submit(rig->control, &ops, l, NULL);
}

/* They share the commit of others and wait for no confirmation. */
static void changes__that_are_local_go_with_others(void **state)
{
	struct rig *rig = *state;
	struct calls all = { 0 };
	unsigned done = 0, syncs;

	hold_first(rig, &all);
	local_submit(rig, "x", &done);
	local_submit(rig, "y", &done);
	calls_add_sandbox(rig, &all, "b", "10.0.0.2");
	local_submit(rig, "x", &done); /* meets the first one */
	go_on(rig);
	assert_int_equal(rig->vault.changes, 4);
	assert_int_equal(done, 0);
	syncs = rig->gateway.syncs;
	rig->vault.hold = false;
	fake_vault_go_on(&rig->vault);
	calls_end(rig, &all, (const unsigned[]){ 201, 201 });
	RIG_UNTIL(rig, done == 3);
	assert_int_equal(rig->vault.commits, 3);
	assert_int_equal(rig->gateway.syncs - syncs, 1);
}

/* -- order ---------------------------------------------------------------- */

/* Each is decided by what those before it have done. */
static void changes__that_meet_go_one_after_the_other(void **state)
{
	struct rig *rig = *state;
	struct calls all = { 0 };

	hold_first(rig, &all);
	calls_add_sandbox(rig, &all, "b", "10.0.0.2");
	calls_add(rig, &all, "POST", "/v1/sandboxes",
		  "{\"id\":\"c\",\"addresses\":[\"10.0.0.2\"]}");
	calls_add(rig, &all, "DELETE", "/v1/sandboxes/b", NULL);
	calls_add(rig, &all, "POST", "/v1/sandboxes",
		  "{\"id\":\"d\",\"addresses\":[\"10.0.0.2\"]}");
	calls_add(rig, &all, "PUT", "/v1/policies/p", "{\"egress\":[]}");
	calls_add(rig, &all, "DELETE", "/v1/policies/p", NULL);
	go_on(rig);
	assert_int_equal(rig->vault.changes, 2); /* b alone */
	go_on(rig);
	assert_int_equal(rig->vault.changes, 3); /* b ends */
	go_on(rig);
	assert_int_equal(rig->vault.changes, 5); /* d and the policy */
	rig->vault.hold = false;
	fake_vault_go_on(&rig->vault);
	calls_end(rig, &all,
		  (const unsigned[]){ 201, 201, 409, 204, 201, 201, 204 });
	assert_int_equal(rig->vault.commits, 5);
}

/* Whoever gives up an address holds it until then. */
static void changes__give_up_addresses_in_order(void **state)
{
	struct rig *rig = *state;
	struct calls all = { 0 };

	hold_first(rig, &all);
	calls_add_sandbox(rig, &all, "b", "10.0.0.2");
	fake_vault_go_on(&rig->vault);
	RIG_UNTIL(rig, rig->vault.held);
	calls_add(rig, &all, "PUT", "/v1/sandboxes/b",
		  "{\"addresses\":[\"10.0.0.9\"]}");
	calls_add(rig, &all, "PUT", "/v1/sandboxes/c",
		  "{\"addresses\":[\"10.0.0.2\"]}");
	go_on(rig);
	assert_int_equal(rig->vault.changes, 3);
	rig->vault.hold = false;
	fake_vault_go_on(&rig->vault);
	calls_end(rig, &all, (const unsigned[]){ 201, 201, 200, 201 });
}

static void changes__that_are_not_stored_together_go_alone(void **state)
{
	struct rig *rig = *state;
	struct calls all = { 0 };

	hold_first(rig, &all);
	calls_add_sandbox(rig, &all, "b", "10.0.0.2");
	calls_add(rig, &all, "PUT", "/v1/policies/p", "{\"egress\":[]}");
	calls_add_sandbox(rig, &all, "c", "10.0.0.3");
	go_on(rig);
	rig->vault.fail_commit = EIO;
	go_on(rig);
	calls_add_sandbox(rig, &all, "d", "10.0.0.4"); /* behind them */
	assert_int_equal(rig->vault.changes, 5);       /* b again */
	go_on(rig);
	rig->vault.fail_commit = EIO; /* of the policy */
	go_on(rig);
	assert_int_equal(rig->vault.changes, 7); /* c alone */
	go_on(rig);
	rig->vault.hold = false;
	fake_vault_go_on(&rig->vault);
	calls_end(rig, &all, (const unsigned[]){ 201, 201, 500, 201, 201 });
	assert_int_equal(rig->vault.commits, 6);
	assert_null(fake_value(&rig->vault, VAULT_SCOPE_CONTROL, RECORD_POLICY,
			       "p"));
}

/* One of them stays cut off; the others are told of nothing. */
static void changes__wait_for_every_lock(void **state)
{
	struct rig *rig = *state;
	struct calls all = { 0 };

	hold_first(rig, &all);
	calls_add_sandbox(rig, &all, "b", "10.0.0.2");
	calls_add(rig, &all, "POST", "/v1/sandboxes",
		  "{\"id\":\"c\",\"addresses\":[\"10.0.0.3\"]}");
	go_on(rig);
	rig->fail_lock = EIO;
	rig->vault.hold = false;
	fake_vault_go_on(&rig->vault);
	calls_end(rig, &all, (const unsigned[]){ 201, 503, 503 });
	assert_null(fake_sandbox(&rig->gateway, "b"));
}

/* A vault that dies with a group leaves nobody waiting. */
static void changes__of_a_lost_vault_are_in_doubt(void **state)
{
	struct rig *rig = *state;
	struct calls all = { 0 };

	hold_first(rig, &all);
	calls_add_sandbox(rig, &all, "b", "10.0.0.2");
	calls_add_sandbox(rig, &all, "c", "10.0.0.3");
	go_on(rig);
	calls_add_sandbox(rig, &all, "d", "10.0.0.4");
	rig_vault_down(rig);
	rig->vault.hold = false;
	rig->vault.held = 0;
	while (!list_is_empty(&rig->vault.pending))
		fake_record_free(list_first(&rig->vault.pending,
					    struct fake_record, link));
	rig_turns(rig, 5);
	rig_vault_up(rig);
	calls_end(rig, &all, (const unsigned[]){ 201, 503, 503, 201 });
	assert_null(fake_sandbox(&rig->gateway, "b"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_set_up, rig_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(changes__that_wait_go_together),
		TEST(changes__that_are_local_go_with_others),
		TEST(changes__that_meet_go_one_after_the_other),
		TEST(changes__give_up_addresses_in_order),
		TEST(changes__that_are_not_stored_together_go_alone),
		TEST(changes__wait_for_every_lock),
		TEST(changes__of_a_lost_vault_are_in_doubt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
