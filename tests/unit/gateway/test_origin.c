/* SPDX-License-Identifier: Apache-2.0 */
/* test_origin.c - connections to origins: proved, kept, never mixed up */

#include "tests/unit/gateway/fake_origin.h"

#include "gateway/pipeline/decide.h"

static const char loopback[] =
	"policies:\n- name: p\n  egress:\n"
	"  - {action: allow, target: a.example, ports: [1-65535]}\n"
	"  - {action: allow, target: b.example, ports: [1-65535]}\n"
	"  - {action: allow, target: 127.0.0.0/8, ports: [1-65535]}\n";

static const char nothing[] = "policies: [{name: p}]\n";

struct desk {
	struct world *world;
	struct worker *worker;
	struct sandbox *s, *t;
	struct ca *stranger; /* nobody trusts it */
	struct fake_origin tls, plain;
	struct arena arena;
	const struct grant *grant;
	bool called;
	enum origin_event event;
};

static int desk_open(void **state)
{
	struct desk *d = must_alloc(sizeof(*d));
	struct destination any = destination_of(SCHEME_HTTPS, "a.example",
						addr_of("127.0.0.1", 443));
	struct verdict v;

	d->world = world_new();
	d->worker = &d->world->worker;
	world_policy(d->world, 1, loopback);
	d->s = world_sandbox(d->world, "s", "10.9.0.1");
	d->t = world_sandbox(d->world, "t", "10.9.0.2");
	must(!ca_new(clock_wall_ms(), &d->stranger));
	fake_origin_open(&d->tls, d->world, d->world->ca);
	fake_origin_open(&d->plain, d->world, NULL);
	arena_init(&d->arena, 4096);
	d->grant = decide_connect(d->worker, d->s, &any, NULL, &d->arena, &v);
	assert_non_null(d->grant);
	*state = d;
	return 0;
}

static int desk_close(void **state)
{
	struct desk *d = *state;

	fake_origin_close(&d->tls);
	fake_origin_close(&d->plain);
	d->stranger = ca_free(d->stranger);
	arena_fini(&d->arena);
	world_free(d->world);
	free(d);
	return 0;
}

static void on_origin(struct origin *o, void *ctx, enum origin_event event)
{
	struct desk *d = ctx;

	(void)o;
	assert_false(d->called);
	d->called = true;
	d->event = event;
}

static struct origin *begin(struct desk *d, const struct sandbox *s,
			    const struct destination *to)
{
	d->called = false;
	return origin_open(d->worker, s, to, d->grant, on_origin, d);
}

/* Opened, or failed: then ->open is false. */
static struct origin *get(struct desk *d, const struct sandbox *s,
			  const struct destination *to)
{
	struct origin *o = begin(d, s, to);

	if (o->open) {
		assert_false(d->called);
		return o;
	}
	world_run(d->world, &d->called);
	assert_int_equal(o->open, d->event == ORIGIN_OPENED);
	return o;
}

static struct origin *get_open(struct desk *d, const struct sandbox *s,
			       const struct destination *to)
{
	struct origin *o = get(d, s, to);

	if (!o->open)
		fail_msg("not opened: %s", o->detail);
	return o;
}

static void assert_fails(struct desk *d, const struct destination *to,
			 enum audit_reason reason)
{
	struct origin *o = get(d, d->s, to);

	assert_false(o->open);
	assert_string_equal(audit_reason_name(o->reason),
			    audit_reason_name(reason));
	assert_true(o->detail[0] != '\0');
	(void)origin_free(o);
}

/* One word each way, so that tickets have arrived as well. */
static void talk(struct desk *d, struct origin *o)
{
	uint64_t end_ms = clock_ms() + WORLD_PATIENCE_MS;
	char bytes[16];
	ssize_t n;

	must(!stream_write(o->stream, SPAN("ping")));
	do {
		world_turn(d->world);
		n = stream_read(o->stream, bytes, sizeof(bytes));
	} while (n == STREAM_AGAIN && clock_ms() < end_ms);
	assert_int_equal(n, 4);
	assert_memory_equal(bytes, "pong", 4);
}

static struct destination named(const struct fake_origin *f, const char *host)
{
	return proved(f->ctx ? SCHEME_HTTPS : SCHEME_HTTP, host, f->address,
		      ADDRESS_HOSTS);
}

/* -- proof ------------------------------------------------------------------
 */

static void origin__is_proved_by_its_name(void **state)
{
	struct desk *d = *state;
	struct destination to = named(&d->tls, "a.example");
	struct origin *o;

	d->tls.name = "b.example";
	assert_fails(d, &to, AUDIT_REASON_ORIGIN_TLS);
	d->tls.name = "x.a.example";
	assert_fails(d, &to, AUDIT_REASON_ORIGIN_TLS);
	d->tls.name = "127.0.0.1"; /* the address proves no name */
	assert_fails(d, &to, AUDIT_REASON_ORIGIN_TLS);

	d->tls.name = "a.example";
	o = get_open(d, d->s, &to);
	assert_string_equal(d->tls.sni, "a.example");
	assert_true(addr_eq_ip(&o->address, &d->tls.address));
	assert_false(o->reused);
	talk(d, o);
	(void)origin_free(o);
}

static void origin__is_proved_by_its_address(void **state)
{
	struct desk *d = *state;
	struct destination to = named(&d->tls, NULL);

	d->tls.name = "a.example";
	assert_fails(d, &to, AUDIT_REASON_ORIGIN_TLS);
	d->tls.name = "127.0.0.2";
	assert_fails(d, &to, AUDIT_REASON_ORIGIN_TLS);
	d->tls.name = NULL;
	(void)origin_free(get_open(d, d->s, &to));
	assert_string_equal(d->tls.sni, ""); /* an address is no SNI */
}

static void origin__must_be_signed_by_a_root(void **state)
{
	struct desk *d = *state;
	struct destination to = named(&d->tls, "a.example");

	d->tls.ca = d->stranger;
	assert_fails(d, &to, AUDIT_REASON_ORIGIN_TLS);
	d->tls.ca = d->world->ca;
	d->tls.now_ms -= 20ull * DAY_MS; /* a leaf lives for a week */
	assert_fails(d, &to, AUDIT_REASON_ORIGIN_TLS);
	d->tls.now_ms = clock_wall_ms();
	(void)origin_free(get_open(d, d->s, &to));
}

static void origin__must_speak_tls(void **state)
{
	struct desk *d = *state;
	struct destination to = named(&d->plain, "a.example");

	to.scheme = SCHEME_HTTPS; /* the hello is answered by "pong" */
	assert_fails(d, &to, AUDIT_REASON_ORIGIN_TLS);
	SSL_CTX_set_security_level(d->tls.ctx, 0);
	must(SSL_CTX_set_min_proto_version(d->tls.ctx, TLS1_VERSION));
	must(SSL_CTX_set_max_proto_version(d->tls.ctx, TLS1_1_VERSION));
	to = named(&d->tls, "a.example");
	assert_fails(d, &to, AUDIT_REASON_ORIGIN_TLS);
}

static void origin__may_not_keep_us_waiting(void **state)
{
	struct desk *d = *state;
	struct destination to = named(&d->tls, "a.example");

	d->world->config.handshake_ms = 30;
	d->tls.is_mute = true;
	assert_fails(d, &to, AUDIT_REASON_ORIGIN_TLS);
}

/* -- addresses in turn ------------------------------------------------------
 */

static struct addr refusing(void)
{
	struct addr a;

	(void)fd_close(fake_listen(&a));
	return a;
}

static void origin__tries_the_next_address(void **state)
{
	struct desk *d = *state;
	struct destination to = named(&d->tls, "a.example");
	struct origin *o;

	to.addrs[0] = refusing();
	to.addrs[1] = refusing();
	to.addrs[2] = d->tls.address;
	to.addr_count = 3;
	o = get_open(d, d->s, &to);
	assert_int_equal(o->address.port, d->tls.address.port);
	talk(d, o);
	(void)origin_free(o);

	to.addr_count = 2;
	assert_fails(d, &to, AUDIT_REASON_CONNECT_FAILED);
	/* what cannot even be begun */
	to.addrs[0] = addr_of("255.255.255.255", 1);
	to.addr_count = 1;
	assert_fails(d, &to, AUDIT_REASON_CONNECT_FAILED);
	to.addrs[1] = d->tls.address;
	to.addr_count = 2;
	(void)origin_free(get_open(d, d->s, &to));
}

static void origin__may_be_given_up_at_any_time(void **state)
{
	struct desk *d = *state;
	struct destination to = named(&d->tls, "a.example");
	struct origin *o;
	int turns, i;

	for (turns = 0; turns < 8; turns++) {
		o = begin(d, d->s, &to);
		for (i = 0; i < turns; i++)
			world_turn(d->world);
		(void)origin_free(o);
	}
	to.addrs[0] = refusing();
	(void)origin_free(begin(d, d->s, &to));
	to.addrs[0] = addr_of("255.255.255.255", 1);
	(void)origin_free(begin(d, d->s, &to));
	world_settle(d->world);
}

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

/* Sessions that come when the origin has gone already. */
static void origin__a_taken_stream_knows_no_origin(void **state)
{
	struct desk *d = *state;
	struct destination to = named(&d->tls, "a.example");
	struct origin *o = get_open(d, d->s, &to);
	struct stream *s;
	char bytes[16];
	ssize_t n;

	s = origin_take_stream(o);
	must(!stream_write(s, SPAN("ping")));
	do {
		world_turn(d->world);
		n = stream_read(s, bytes, sizeof(bytes));
	} while (n == STREAM_AGAIN);
	assert_int_equal(n, 4);
	(void)stream_free(s);
}

#define DESK_TEST(fn) cmocka_unit_test_setup_teardown(fn, desk_open, desk_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(origin__is_proved_by_its_name),
		DESK_TEST(origin__is_proved_by_its_address),
		DESK_TEST(origin__must_be_signed_by_a_root),
		DESK_TEST(origin__must_speak_tls),
		DESK_TEST(origin__may_not_keep_us_waiting),
		DESK_TEST(origin__tries_the_next_address),
		DESK_TEST(origin__may_be_given_up_at_any_time),
		DESK_TEST(pool__gives_a_kept_one_again),
		DESK_TEST(pool__keeps_everything_apart),
		DESK_TEST(pool__drops_a_stale_one),
		DESK_TEST(pool__drops_one_that_speaks_unasked),
		DESK_TEST(pool__keeps_so_many_so_long),
		DESK_TEST(pool__asks_again_when_facts_changed),
		DESK_TEST(pool__a_kept_address_is_among_those_checked),
		DESK_TEST(pool__resumes_within_a_group_only),
		DESK_TEST(origin__a_taken_stream_knows_no_origin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
