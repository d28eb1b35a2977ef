/* SPDX-License-Identifier: Apache-2.0 */
/* test_resolver.c - lookups against a scripted upstream server */

#include "tests/unit/gateway/fake_upstream.h"

#include "gateway/dns/resolver.h"

struct fixture {
	struct loop *loop;
	struct fake fake, second;
	struct dns_counters counters;
	struct resolver *resolver;
};

struct result {
	bool done;
	struct name_answer answer;
	struct addr addrs[NAME_ADDRS_MAX];
};

enum { PATIENT_MS = 20 * 1000, TIMEOUT_MS = 300 };

/* A resolver that gives a server that long. */
static void start(struct fixture *f, uint32_t timeout_ms)
{
	const struct resolver_config config = {
		.upstreams = &f->fake.address,
		.upstream_count = 1,
		.timeout_ms = timeout_ms,
		.min_ttl_s = 5,
		.max_ttl_s = 600,
		.counters = &f->counters,
	};

	f->resolver = resolver_free(f->resolver);
	must(!resolver_new(f->loop, &config, &f->resolver));
}

static int set_up(void **state)
{
	struct fixture *f = must_alloc(sizeof(*f));

	must(!loop_new(&f->loop));
	fake_init(&f->fake, f->loop);
	fake_init(&f->second, f->loop);
	start(f, TIMEOUT_MS);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	f->resolver = resolver_free(f->resolver);
	fake_fini(&f->fake);
	fake_fini(&f->second);
	f->loop = loop_free(f->loop);
	free(f);
	return 0;
}

static void on_answer(void *ctx, const struct name_answer *answer)
{
	struct result *r = ctx;

	assert_false(r->done);
	r->done = true;
	r->answer = *answer;
	memcpy(r->addrs, answer->addrs, answer->count * sizeof(r->addrs[0]));
	r->answer.addrs = r->addrs;
}

static void ask_into(struct fixture *f, const char *host, struct result *r)
{
	*r = (struct result){ 0 };
	assert_non_null(
		resolver_lookup(f->resolver, span_str(host), on_answer, r));
	assert_false(r->done); /* never from inside */
	fake_run(f->loop, &r->done);
}

static void assert_addr(const struct result *r, unsigned i, const char *text)
{
	char found[ADDR_TEXT_SIZE];

	assert_true(i < r->answer.count);
	assert_string_equal(addr_text(&r->addrs[i], found, sizeof(found)),
			    text);
}

static void assert_both(const struct result *r)
{
	assert_int_equal(r->answer.status, NAME_OK);
	assert_int_equal(r->answer.source, NAME_DNS);
	assert_int_equal(r->answer.count, 2);
	assert_addr(r, 0, "192.0.2.1");
	assert_addr(r, 1, "2001:db8::1");
}

static void resolver__asks_both_families(void **state)
{
	struct fixture *f = *state;
	struct result r;

	ask_into(f, "a.test", &r);
	assert_both(&r);
	assert_false(r.answer.partial);
	assert_int_equal(r.answer.ttl_s, 5); /* the floor */
	assert_int_equal(f->fake.udp_count, 2);
	assert_int_equal(f->fake.edns_count, 2);

	ask_into(f, "long.test", &r);
	assert_int_equal(r.answer.ttl_s, 600); /* the ceiling */
}

static void resolver__remembers(void **state)
{
	struct fixture *f = *state;
	struct name_answer known;
	struct result r;

	assert_false(resolver_find(f->resolver, SPAN("a.test"), &known));
	ask_into(f, "a.test", &r);
	ask_into(f, "a.test", &r);
	assert_both(&r);
	assert_true(resolver_find(f->resolver, SPAN("a.test"), &known));
	assert_int_equal(known.count, 2);
	assert_in_range(known.ttl_s, 1, 5);
	assert_int_equal(f->fake.udp_count, 2);

	resolver_flush(f->resolver);
	assert_false(resolver_find(f->resolver, SPAN("a.test"), &known));
	ask_into(f, "a.test", &r);
	assert_int_equal(f->fake.udp_count, 4);
}

static void resolver__remembers_what_is_not(void **state)
{
	struct fixture *f = *state;
	struct result r;

	ask_into(f, "nx.test", &r);
	assert_int_equal(r.answer.status, NAME_NXDOMAIN);
	assert_int_equal(r.answer.ttl_s, 7);
	ask_into(f, "nodata.test", &r);
	assert_int_equal(r.answer.status, NAME_NODATA);
	assert_int_equal(r.answer.ttl_s, 9);
	assert_int_equal(f->fake.udp_count, 4);
	ask_into(f, "nx.test", &r);
	assert_int_equal(r.answer.status, NAME_NXDOMAIN);
	assert_int_equal(f->fake.udp_count, 4);
}

static struct names *names_with(enum name_source source, const char *host,
				const char *address)
{
	struct names *n = names_new();
	struct addr a;

	assert_true(addr_parse(span_str(address), &a));
	assert_int_equal(names_add(n, source, span_str(host), &a), 0);
	return n;
}

static void resolver__prefers_pins_then_hosts(void **state)
{
	struct names *n = names_with(NAME_HOSTS, "a.test", "10.0.0.2");
	struct fixture *f = *state;
	struct result r;
	struct addr a;

	assert_true(addr_parse(SPAN("10.0.0.1"), &a));
	assert_int_equal(names_add(n, NAME_PIN, SPAN("b.test"), &a), 0);
	assert_int_equal(names_add(n, NAME_HOSTS, SPAN("b.test"), &a), 0);
	ask_into(f, "a.test", &r); /* fills the cache */
	resolver_set_names(f->resolver, n);
	n = names_unref(n);

	ask_into(f, "a.test", &r);
	assert_int_equal(r.answer.source, NAME_HOSTS);
	assert_addr(&r, 0, "10.0.0.2");
	ask_into(f, "b.test", &r);
	assert_int_equal(r.answer.source, NAME_PIN);
	assert_int_equal(f->fake.udp_count, 2);
	assert_true(resolver_is_local(f->resolver, SPAN("a.test")));

	resolver_set_names(f->resolver, NULL);
	ask_into(f, "a.test", &r);
	assert_int_equal(r.answer.source, NAME_DNS);
}

static void resolver__obeys_pins_set_meanwhile(void **state)
{
	struct names *n = names_with(NAME_PIN, "a.test", "10.0.0.1");
	struct fixture *f = *state;
	struct result r = { 0 };

	(void)resolver_lookup(f->resolver, SPAN("a.test"), on_answer, &r);
	resolver_set_names(f->resolver, n);
	n = names_unref(n);
	fake_run(f->loop, &r.done);
	assert_int_equal(r.answer.source, NAME_PIN);
	assert_addr(&r, 0, "10.0.0.1");
}

static void resolver__keeps_special_names_home(void **state)
{
	struct fixture *f = *state;
	struct result r;

	ask_into(f, "localhost", &r);
	assert_int_equal(r.answer.status, NAME_NXDOMAIN);
	ask_into(f, "a.b.onion", &r);
	assert_int_equal(r.answer.status, NAME_NXDOMAIN);
	assert_int_equal(f->fake.udp_count, 0);
}

static void resolver__follows_aliases(void **state)
{
	struct fixture *f = *state;
	struct result r;

	ask_into(f, "chain.test", &r);
	assert_both(&r);
	assert_int_equal(r.answer.ttl_s, 40);
	assert_int_equal(f->fake.udp_count, 2);

	/* the chain leaves the message */
	ask_into(f, "leaves.test", &r);
	assert_both(&r);
	assert_int_equal(f->fake.udp_count, 6);

	ask_into(f, "ring.test", &r);
	assert_int_equal(r.answer.status, NAME_FAILED);
	ask_into(f, "ring3.test", &r);
	assert_int_equal(r.answer.status, NAME_FAILED);
	assert_true(f->fake.udp_count < 8 + 2 * 18);
}

static void resolver__goes_to_tcp_when_truncated(void **state)
{
	struct fixture *f = *state;
	struct result r;

	ask_into(f, "big.test", &r);
	assert_int_equal(r.answer.status, NAME_OK);
	assert_int_equal(r.answer.count, NAME_ADDRS_MAX);
	assert_int_equal(f->fake.tcp_count, 2);
	assert_int_equal(f->counters.upstream_tcp, 2);
}

static void resolver__believes_no_liar(void **state)
{
	struct fixture *f = *state;
	struct result r;

	ask_into(f, "liar.test", &r);
	assert_both(&r);
	assert_int_equal(f->counters.upstream_bogus, 8);
	assert_int_equal(f->fake.tcp_count, 0);

	/* too many lies: TCP */
	ask_into(f, "flood.test", &r);
	assert_both(&r);
	assert_int_equal(f->fake.tcp_count, 2);
}

static void resolver__tries_the_next_server(void **state)
{
	struct fixture *f = *state;
	const struct addr both[] = { f->fake.address, f->second.address };
	struct result r;

	resolver_set_upstreams(f->resolver, both, 2);
	f->fake.is_dead = true;
	ask_into(f, "a.test", &r);
	assert_both(&r);
	assert_int_equal(f->counters.upstream_timeouts, 2);
	assert_int_equal(f->second.udp_count, 2);

	/* the dead one stands in the corner */
	ask_into(f, "b.test", &r);
	assert_both(&r);
	assert_int_equal(f->fake.udp_count, 2);
	assert_int_equal(f->counters.upstream_timeouts, 2);
}

static void resolver__tries_the_next_on_error_codes(void **state)
{
	struct fixture *f = *state;
	const struct addr both[] = { f->fake.address, f->second.address };
	struct result r;

	resolver_set_upstreams(f->resolver, both, 2);
	f->fake.error = DNS_REFUSED;
	ask_into(f, "a.test", &r);
	assert_both(&r);
	assert_int_equal(f->counters.upstream_errors, 2);
	/* an error code is an answer: the server is not in the corner */
	ask_into(f, "b.test", &r);
	assert_int_equal(f->fake.udp_count, 4);

	f->second.error = DNS_SERVFAIL;
	ask_into(f, "c.test", &r);
	assert_int_equal(r.answer.status, NAME_FAILED);
	assert_int_equal(f->fake.udp_count, 6); /* once each */
}

static void resolver__notices_a_closed_port(void **state)
{
	struct fixture *f = *state;
	struct addr both[] = { f->fake.address, f->second.address };
	uint64_t start_ms = clock_ms();
	struct result r;

	start(f, PATIENT_MS);
	both[0].port = 1; /* nobody */
	resolver_set_upstreams(f->resolver, both, 2);
	ask_into(f, "a.test", &r);
	assert_both(&r);
	assert_true(clock_ms() - start_ms < PATIENT_MS / 2);
}

static void resolver__speaks_without_edns(void **state)
{
	struct fixture *f = *state;
	struct result r;

	ask_into(f, "formerr.test", &r);
	assert_both(&r);
	assert_int_equal(f->fake.edns_count, 2);
	assert_int_equal(f->fake.udp_count, 4);
}

static void resolver__ends_in_bounded_time(void **state)
{
	struct fixture *f = *state;
	uint64_t start_ms = clock_ms();
	struct result r;

	ask_into(f, "silent.test", &r);
	assert_int_equal(r.answer.status, NAME_FAILED);
	assert_in_range(clock_ms() - start_ms, 3 * TIMEOUT_MS - 10, 5000);
	assert_in_range(f->fake.udp_count, 4, 2 * ASK_TRIES_MAX);

	resolver_set_upstreams(f->resolver, NULL, 0);
	ask_into(f, "a.test", &r);
	assert_int_equal(r.answer.status, NAME_FAILED);
}

static void resolver__waits_briefly_for_the_second_family(void **state)
{
	struct fixture *f = *state;
	uint64_t start_ms = clock_ms();
	struct result r;

	start(f, PATIENT_MS);
	ask_into(f, "v4only.test", &r);
	assert_int_equal(r.answer.status, NAME_OK);
	assert_int_equal(r.answer.count, 1);
	assert_true(r.answer.partial);
	assert_int_equal(r.answer.ttl_s, 5);
	assert_in_range(clock_ms() - start_ms, 290, PATIENT_MS / 2);
}

static void resolver__shares_a_flight(void **state)
{
	struct fixture *f = *state;
	struct result r[3] = { 0 };
	struct lookup *l[3];
	unsigned i;

	for (i = 0; i < 3; i++)
		l[i] = resolver_lookup(f->resolver, SPAN("a.test"), on_answer,
				       &r[i]);
	l[1] = lookup_cancel(l[1]);
	fake_run(f->loop, &r[2].done);
	assert_both(&r[0]);
	assert_both(&r[2]);
	assert_false(r[1].done);
	assert_int_equal(f->fake.udp_count, 2);
	assert_int_equal(f->counters.shared, 2);
}

static void resolver__can_cancel_what_is_ready(void **state)
{
	struct fixture *f = *state;
	struct result r = { 0 };
	struct lookup *l;

	l = resolver_lookup(f->resolver, SPAN("localhost"), on_answer, &r);
	l = lookup_cancel(l);
	loop_run_once(f->loop, false);
	assert_false(r.done);
	assert_null(l);
}

/* Freed with lookups in every state; ASan watches. */
static void resolver__dies_at_any_time(void **state)
{
	struct fixture *f = *state;
	struct result r = { 0 };

	(void)resolver_lookup(f->resolver, SPAN("silent.test"), on_answer, &r);
	(void)resolver_lookup(f->resolver, SPAN("big.test"), on_answer, &r);
	(void)resolver_lookup(f->resolver, SPAN("localhost"), on_answer, &r);
	f->resolver = resolver_free(f->resolver);
	loop_run_once(f->loop, false);
	assert_false(r.done);
}

struct relayed {
	bool done;
	bool has_reply;
	unsigned answers;
};

static void on_reply(void *ctx, const struct dns_message *reply)
{
	struct relayed *r = ctx;

	r->done = true;
	r->has_reply = reply != NULL;
	r->answers = reply ? reply->counts[DNS_ANSWER] : 0;
}

static void resolver__asks_other_types(void **state)
{
	struct fixture *f = *state;
	struct relayed r = { 0 };

	assert_non_null(resolver_ask(f->resolver, SPAN("a.test"), DNS_TYPE_MX,
				     on_reply, &r));
	fake_run(f->loop, &r.done);
	assert_true(r.has_reply);
	assert_int_equal(r.answers, 1);
	assert_null(resolver_ask(f->resolver, SPAN("localhost"), DNS_TYPE_MX,
				 on_reply, &r));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(resolver__asks_both_families),
		TEST(resolver__remembers),
		TEST(resolver__remembers_what_is_not),
		TEST(resolver__prefers_pins_then_hosts),
		TEST(resolver__obeys_pins_set_meanwhile),
		TEST(resolver__keeps_special_names_home),
		TEST(resolver__follows_aliases),
		TEST(resolver__goes_to_tcp_when_truncated),
		TEST(resolver__believes_no_liar),
		TEST(resolver__tries_the_next_server),
		TEST(resolver__tries_the_next_on_error_codes),
		TEST(resolver__notices_a_closed_port),
		TEST(resolver__speaks_without_edns),
		TEST(resolver__ends_in_bounded_time),
		TEST(resolver__waits_briefly_for_the_second_family),
		TEST(resolver__shares_a_flight),
		TEST(resolver__can_cancel_what_is_ready),
		TEST(resolver__dies_at_any_time),
		TEST(resolver__asks_other_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
