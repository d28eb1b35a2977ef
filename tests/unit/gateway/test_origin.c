/* SPDX-License-Identifier: Apache-2.0 */
/* test_origin.c - connections to origins: proved, at one address or the next */

#include "tests/unit/gateway/origin_desk.h"

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
		DESK_TEST(origin__a_taken_stream_knows_no_origin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
