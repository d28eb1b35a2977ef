/* SPDX-License-Identifier: Apache-2.0 */
/* test_sign.c - leaves: cache, wish, signature, and everybody who waits */

#include "tests/unit/gateway/roles.h"

#include <errno.h>
#include <openssl/x509v3.h>

#include "gateway/tls/leaf_source.h"

enum { NAMES_PENDING_MAX = 1024 };

/* One who waits. */
struct waiter {
	struct leaf_wait *wait;
	bool called;
	X509 *leaf;
};

static void on_leaf(void *ctx, struct x509_st *leaf)
{
	struct waiter *w = ctx;

	assert_false(w->called);
	w->called = true;
	w->wait = NULL;
	w->leaf = leaf;
}

static int ask(struct roles *r, const char *sandbox, const char *name,
	       struct waiter *w)
{
	struct leaf_wish wish = {
		.sandbox = map_find(&r->world->worker.facts.by_id,
				    span_str(sandbox)),
		.name = span_str(name),
		.fn = on_leaf,
		.ctx = w,
	};

	*w = (struct waiter){ 0 };
	if (!wish.sandbox)
		wish.sandbox = world_sandbox(r->world, sandbox,
					     sandbox[0] == 's' ? "10.9.0.1"
							       : "10.9.0.2");
	return leaf_get(r->world->worker.leaves, &wish, &w->leaf, &w->wait);
}

/* False: it waits. */
static bool want(struct roles *r, const char *sandbox, const char *name,
		 struct waiter *w)
{
	assert_int_equal(ask(r, sandbox, name, w), 0);
	assert_int_equal(w->leaf == NULL, w->wait != NULL);
	return w->leaf != NULL;
}

static void assert_named(struct waiter *w, const char *name)
{
	assert_true(w->called || !w->wait);
	assert_non_null(w->leaf);
	assert_int_equal(X509_check_host(w->leaf, name, 0, 0, NULL), 1);
	X509_free(w->leaf);
	w->leaf = NULL;
}

static uint32_t hear_sign(struct roles *r, const char *name)
{
	const struct msg_sign *body;
	struct span spki;
	uint32_t serial;

	body = hear(r, r->vault, MSG_GATEWAY_SIGN, &serial, &spki);
	assert_string_equal(body->name, name);
	assert_true(span_eq(spki, span_of(r->world->gateway.leaf_spki,
					  r->world->gateway.leaf_spki_len)));
	return serial;
}

static void answer(struct roles *r, uint32_t serial, const char *name)
{
	CLEANUP(buf_fini) struct buf der = BUF_INIT(CERT_DER_MAX);
	struct gateway *g = &r->world->gateway;
	struct diag d = { 0 };

	must(!leaf_sign(r->world->ca, span_str(name),
			span_of(g->leaf_spki, g->leaf_spki_len),
			clock_wall_ms(), &der, &d));
	say_result(r->vault, MSG_VAULT_SIGNED, serial, 0, buf_peek(&der));
	world_settle(r->world);
}

static void sign__many_wait_for_one_signature(void **state)
{
	struct roles *r = *state;
	struct waiter w[5], other;
	unsigned i;

	for (i = 0; i < ARRAY_LEN(w); i++)
		assert_false(want(r, i % 2 ? "s" : "t", "a.example", &w[i]));
	assert_false(want(r, "s", "b.example", &other));
	answer(r, hear_sign(r, "a.example"), "a.example");
	for (i = 0; i < ARRAY_LEN(w); i++) {
		assert_true(w[i].called);
		assert_named(&w[i], "a.example");
	}
	assert_false(other.called);
	answer(r, hear_sign(r, "b.example"), "b.example");
	assert_named(&other, "b.example");
	assert_false(is_said(r, r->vault));
	assert_int_equal(r->world->worker.counters[COUNTER_leaves_minted], 2);
}

static void sign__the_next_comes_from_the_cache(void **state)
{
	struct roles *r = *state;
	struct waiter w;

	assert_false(want(r, "s", "a.example", &w));
	answer(r, hear_sign(r, "a.example"), "a.example");
	assert_named(&w, "a.example");
	assert_true(want(r, "t", "a.example", &w));
	assert_named(&w, "a.example");
	assert_false(want(r, "s", "b.example", &w));
	(void)leaf_wait_cancel(w.wait);
	world_settle(r->world);
	assert_int_equal(r->world->worker.counters[COUNTER_leaves_cached], 1);
}

static void sign__an_address_may_have_a_leaf(void **state)
{
	struct roles *r = *state;
	struct waiter w;

	assert_false(want(r, "s", "192.0.2.1", &w));
	answer(r, hear_sign(r, "192.0.2.1"), "192.0.2.1");
	assert_true(w.called);
	assert_int_equal(X509_check_ip_asc(w.leaf, "192.0.2.1", 0), 1);
	X509_free(w.leaf);
}

static void sign__a_refusal_reaches_everybody(void **state)
{
	struct roles *r = *state;
	struct waiter w[2];
	unsigned i;

	for (i = 0; i < ARRAY_LEN(w); i++)
		assert_false(want(r, "s", "a.example", &w[i]));
	say_result(r->vault, MSG_VAULT_SIGNED, hear_sign(r, "a.example"),
		   EINVAL, SPAN_NONE);
	world_settle(r->world);
	for (i = 0; i < ARRAY_LEN(w); i++) {
		assert_true(w[i].called);
		assert_null(w[i].leaf);
	}
	assert_false(is_said(r, r->supervisor));
	/* asked anew by the next */
	assert_false(want(r, "s", "a.example", &w[0]));
	answer(r, hear_sign(r, "a.example"), "a.example");
	assert_named(&w[0], "a.example");
}

static void sign__garbage_accuses_the_vault(void **state)
{
	struct roles *r = *state;
	struct waiter w;

	assert_false(want(r, "s", "a.example", &w));
	say_result(r->vault, MSG_VAULT_SIGNED, hear_sign(r, "a.example"), 0,
		   SPAN("no certificate"));
	hear_accused(r, ROLE_VAULT);
	assert_true(w.called);
	assert_null(w.leaf);

	assert_false(want(r, "s", "a.example", &w));
	must(!chan_send_now(r->vault, MSG_VAULT_SIGNED,
			    hear_sign(r, "a.example"), "x", 1, SPAN_NONE, NULL,
			    0));
	hear_accused(r, ROLE_VAULT);
	assert_false(w.called); /* until it was restarted */
	roles_vault_end(r);
	roles_vault_begin(r);
	answer(r, hear_sign(r, "a.example"), "a.example");
	assert_named(&w, "a.example");
}

static void sign__unasked_answers_are_ignored(void **state)
{
	struct roles *r = *state;
	struct waiter w;
	uint32_t serial;

	assert_false(want(r, "s", "a.example", &w));
	serial = hear_sign(r, "a.example");
	answer(r, serial + 1, "a.example");
	answer(r, 0, "a.example");
	assert_false(w.called);
	answer(r, serial, "a.example");
	assert_named(&w, "a.example");
	answer(r, serial, "a.example"); /* twice */
	assert_false(is_said(r, r->supervisor));
}

static void sign__a_new_vault_is_asked_again(void **state)
{
	struct roles *r = *state;
	struct waiter w, later;

	assert_false(want(r, "s", "a.example", &w));
	(void)hear_sign(r, "a.example");
	roles_vault_end(r);
	assert_false(want(r, "s", "b.example", &later));
	world_settle(r->world);
	assert_false(w.called);
	roles_vault_begin(r);
	answer(r, hear_sign(r, "a.example"), "a.example");
	answer(r, hear_sign(r, "b.example"), "b.example");
	assert_named(&w, "a.example");
	assert_named(&later, "b.example");
}

static void sign__a_wait_may_be_given_up(void **state)
{
	struct roles *r = *state;
	struct waiter stays, goes;

	assert_false(want(r, "s", "a.example", &goes));
	assert_false(want(r, "s", "a.example", &stays));
	assert_null(leaf_wait_cancel(goes.wait));
	answer(r, hear_sign(r, "a.example"), "a.example");
	assert_false(goes.called);
	assert_named(&stays, "a.example");

	/* nobody is left: it goes to the cache */
	assert_false(want(r, "s", "b.example", &goes));
	assert_null(leaf_wait_cancel(goes.wait));
	answer(r, hear_sign(r, "b.example"), "b.example");
	assert_true(want(r, "s", "b.example", &stays));
	assert_named(&stays, "b.example");
	assert_null(leaf_wait_cancel(NULL));
}

/* case 24: what one sandbox makes the vault do is limited, and only that of
 * this one. */
static void sign__mints_of_a_sandbox_are_limited(void **state)
{
	struct roles *r = *state;
	struct waiter w[4], other;
	struct quota_state mints;

	r->world->worker.facts.limits.of[LIMIT_MINTS] = 2;
	assert_false(want(r, "s", "a.example", &w[0]));
	assert_false(want(r, "s", "b.example", &w[1]));
	assert_int_equal(ask(r, "s", "c.example", &w[2]), LEAF_E_LIMIT);
	/* what is under way, and what another one asks for, is not */
	assert_false(want(r, "s", "b.example", &w[3]));
	assert_false(want(r, "t", "c.example", &other));
	quota_state(world_sandbox(r->world, "s", "10.9.0.1")->quota,
		    QUOTA_MINTS, clock_us(), &mints);
	assert_int_equal(mints.used, 2);
	assert_int_equal(mints.limit, 2);
	assert_int_equal(mints.refused, 1);
	(void)leaf_wait_cancel(w[0].wait);
	(void)leaf_wait_cancel(w[1].wait);
	(void)leaf_wait_cancel(w[3].wait);
	(void)leaf_wait_cancel(other.wait);
	world_settle(r->world);
}

static void sign__names_under_way_are_bounded(void **state)
{
	static struct waiter w[NAMES_PENDING_MAX];
	struct roles *r = *state;
	struct waiter again;
	char name[32];
	unsigned i;

	for (i = 0; i < NAMES_PENDING_MAX; i++) {
		(void)snprintf(name, sizeof(name), "h%u.example", i);
		assert_false(want(r, "s", name, &w[i]));
	}
	assert_int_equal(ask(r, "s", "more.example", &again), LEAF_E_LIMIT);
	assert_null(again.wait);
	assert_null(again.leaf);
	/* a name that is under way costs nothing more */
	assert_false(want(r, "t", "h0.example", &again));
	(void)leaf_wait_cancel(again.wait);
	for (i = 0; i < NAMES_PENDING_MAX; i++)
		(void)leaf_wait_cancel(w[i].wait);
	world_settle(r->world);
}

#define ROLES_TEST(fn) \
	cmocka_unit_test_setup_teardown(fn, roles_set_up, roles_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROLES_TEST(sign__many_wait_for_one_signature),
		ROLES_TEST(sign__the_next_comes_from_the_cache),
		ROLES_TEST(sign__an_address_may_have_a_leaf),
		ROLES_TEST(sign__a_refusal_reaches_everybody),
		ROLES_TEST(sign__garbage_accuses_the_vault),
		ROLES_TEST(sign__unasked_answers_are_ignored),
		ROLES_TEST(sign__a_new_vault_is_asked_again),
		ROLES_TEST(sign__a_wait_may_be_given_up),
		ROLES_TEST(sign__mints_of_a_sandbox_are_limited),
		ROLES_TEST(sign__names_under_way_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
