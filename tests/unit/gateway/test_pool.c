/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool.c - connections and TLS sessions that are kept, never mixed up */

#include "tests/unit/gateway/origin_desk.h"

static const char nothing[] = "policies: [{name: p}]\n";

/* -- kept connections -------------------------------------------------------
 */

static void pool__gives_a_kept_one_again(void **state)
{
	struct desk *d = *state;
	struct destination to = named(&d->tls, "a.example");
	struct origin *o = get_open(d, d->s, &to), *again;

	talk(d, o);
	(void)origin_keep(o);
	world_settle(d->world);
	again = begin(d, d->s, &to);
	assert_ptr_equal(again, o);
	assert_true(again->open && again->reused);
	talk(d, again);
	assert_int_equal(d->tls.count, 1);
	assert_int_equal(d->worker->counters[COUNTER_origins_new], 1);
	assert_int_equal(d->worker->counters[COUNTER_origins_reused], 1);
	(void)origin_free(again);
}

/* A connection by these, kept; then one by those is new. */
static void assert_apart(struct desk *d, const struct sandbox *s,
			 const struct destination *a, const struct sandbox *t,
			 const struct destination *b)
{
	struct origin *kept = get_open(d, s, a), *o;

	talk(d, kept);
	(void)origin_keep(kept);
	o = begin(d, t, b);
	assert_ptr_not_equal(o, kept);
	assert_false(o->reused);
	(void)origin_free(o);
	origin_pool_drop_idle(d->worker->pool);
}

static void pool__keeps_everything_apart(void **state)
{
	struct desk *d = *state;
	struct destination a = named(&d->plain, "a.example"), b = a;

	assert_apart(d, d->s, &a, d->t, &a); /* sandboxes */
	b = named(&d->plain, "b.example");
	assert_apart(d, d->s, &a, d->s, &b); /* names */
	b = a;
	b.scheme = SCHEME_TCP;
	assert_apart(d, d->s, &a, d->s, &b); /* schemes */
	b = a;
	b.port ^= 256;
	assert_apart(d, d->s, &a, d->s, &b); /* ports */
	b = a;
	b.by_name = false;
	assert_apart(d, d->s, &a, d->s, &b); /* a name that is no proof */
	assert_apart(d, d->s, &b, d->s, &a);
	a = named(&d->plain, NULL);
	b = a;
	b.original = addr_of("127.0.0.2", a.port);
	assert_apart(d, d->s, &a, d->s, &b); /* addresses */
}

static void pool__drops_a_stale_one(void **state)
{
	struct desk *d = *state;
	struct destination to = named(&d->tls, "a.example");
	struct origin *o = get_open(d, d->s, &to);

	talk(d, o);
	(void)origin_keep(o);
	fake_origin_hang_up(&d->tls);
	world_settle(d->world);
	o = begin(d, d->s, &to);
	assert_false(o->open);
	world_run(d->world, &d->called);
	assert_true(o->open && !o->reused);
	talk(d, o);
	(void)origin_free(o);
}

static void pool__drops_one_that_speaks_unasked(void **state)
{
	struct desk *d = *state;
	struct destination to = named(&d->plain, "a.example");
	struct origin *o = get_open(d, d->s, &to);

	talk(d, o);
	(void)origin_keep(o);
	must(!stream_write(d->plain.streams[0], SPAN("HTTP/1.1 200 evil")));
	world_settle(d->world);
	o = begin(d, d->s, &to);
	assert_false(o->reused);
	(void)origin_free(o);

	/* and one with something unread is not taken back */
	o = get_open(d, d->s, &to);
	must(!buf_put_str(&o->in, "left"));
	(void)origin_keep(o);
	o = begin(d, d->s, &to);
	assert_false(o->reused);
	(void)origin_free(o);
}

static void pool__keeps_so_many_so_long(void **state)
{
	struct desk *d = *state;
	struct destination to = named(&d->plain, "a.example");
	struct origin *o[3], *again;
	unsigned i;

	d->world->config.upstream_idle = 2;
	for (i = 0; i < ARRAY_LEN(o); i++)
		o[i] = get_open(d, d->s, &to);
	for (i = 0; i < ARRAY_LEN(o); i++)
		(void)origin_keep(o[i]);
	again = begin(d, d->s, &to); /* the newest first */
	assert_ptr_equal(again, o[2]);
	(void)origin_free(again);
	again = begin(d, d->s, &to);
	assert_ptr_equal(again, o[1]);
	d->world->config.idle_ms = 20;
	(void)origin_keep(again);
	d->called = false;
	while (d->worker->counters[COUNTER_origins_new] == 3) {
		world_turn(d->world);
		again = get_open(d, d->s, &to);
		if (!again->reused)
			break;
		(void)origin_keep(again);
		usleep(40 * 1000);
	}
	assert_false(again->reused);
	(void)origin_free(again);
}

/* -- facts ------------------------------------------------------------------
 */

/* What becomes of a connection kept for `was` when it is asked for as `now`
 * after the facts changed. */
static bool is_still_good(struct desk *d, const struct destination *was,
			  const struct destination *now, const char *policy)
{
	struct origin *o = get_open(d, d->s, was);
	bool good;

	talk(d, o);
	(void)origin_keep(o);
	if (policy)
		world_policy(d->world, 1, policy);
	o = begin(d, d->s, now);
	good = o->reused;
	(void)origin_free(o);
	origin_pool_drop_idle(d->worker->pool);
	world_policy(d->world, 1, loopback);
	return good;
}

static void pool__asks_again_when_facts_changed(void **state)
{
	struct desk *d = *state;
	struct destination to = named(&d->plain, "a.example");

	assert_true(is_still_good(d, &to, &to, NULL));
	assert_true(is_still_good(d, &to, &to, loopback));
	assert_false(is_still_good(d, &to, &to, nothing));
	/* the name still, the private address no more */
	assert_false(is_still_good(
		d, &to, &to,
		"policies:\n- name: p\n  egress:\n"
		"  - {action: allow, target: a.example, ports: [1-65535]}\n"));
}

/* What we checked is what we use: a kept connection leads to one of the
 * addresses of today. Without that a pin could be got around, and a credential
 * would go out in clear to where a name once pointed. */
static void pool__a_kept_address_is_among_those_checked(void **state)
{
	struct desk *d = *state;
	struct destination dns = named(&d->plain, "a.example"), pin = dns, two;

	pin.source = ADDRESS_PIN;
	pin.addrs[0] = addr_of("127.0.0.3", pin.port);
	assert_false(is_still_good(d, &dns, &pin, NULL));
	assert_false(is_still_good(d, &dns, &pin, loopback));
	two = pin;
	two.addrs[1] = dns.addrs[0];
	two.addr_count = 2;
	assert_true(is_still_good(d, &dns, &two, NULL));

	/* and what a pin allowed is not allowed without it */
	pin = dns;
	pin.source = ADDRESS_PIN;
	assert_false(is_still_good(
		d, &pin, &dns,
		"policies:\n- name: p\n  egress:\n"
		"  - {action: allow, target: a.example, ports: [1-65535]}\n"));
}

/* -- TLS sessions -----------------------------------------------------------
 */

static bool was_resumed(struct desk *d, const struct sandbox *s,
			const char *host)
{
	struct destination to = named(&d->tls, host);
	struct origin *o = get_open(d, s, &to);
	bool resumed = SSL_session_reused(stream_ssl(o->stream)) == 1;

	talk(d, o);
	(void)origin_free(o);
	return resumed;
}

/* case 27, towards the origin. */
static void pool__resumes_within_a_group_only(void **state)
{
	static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
	struct desk *d = *state;
	size_t i;

	for (i = 0; i < ARRAY_LEN(versions); i++) {
		must(SSL_CTX_set_min_proto_version(d->tls.ctx, versions[i]));
		must(SSL_CTX_set_max_proto_version(d->tls.ctx, versions[i]));
		assert_false(was_resumed(d, i ? d->t : d->s, "a.example"));
		assert_true(was_resumed(d, i ? d->t : d->s, "a.example"));
		assert_true(was_resumed(d, i ? d->t : d->s, "a.example"));
		assert_false(was_resumed(d, i ? d->t : d->s, "b.example"));
	}
	assert_int_equal(d->tls.resumed, 4);
}

#define DESK_TEST(fn) cmocka_unit_test_setup_teardown(fn, desk_open, desk_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(pool__gives_a_kept_one_again),
		DESK_TEST(pool__keeps_everything_apart),
		DESK_TEST(pool__drops_a_stale_one),
		DESK_TEST(pool__drops_one_that_speaks_unasked),
		DESK_TEST(pool__keeps_so_many_so_long),
		DESK_TEST(pool__asks_again_when_facts_changed),
		DESK_TEST(pool__a_kept_address_is_among_those_checked),
		DESK_TEST(pool__resumes_within_a_group_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
