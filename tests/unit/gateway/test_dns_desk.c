/* SPDX-License-Identifier: Apache-2.0 */
/* test_dns_desk.c - policy, registry and audit behind the DNS server */

#include "tests/unit/gateway/fake_upstream.h"
#include "tests/unit/gateway/fixture.h"

#include "gateway/dns/server.h"
#include "gateway/registry/learned.h"

static const char wild[] = "policies:\n- name: a\n  egress:\n"
			   "  - {action: allow, target: \"*.test\"}\n"
			   "  - {action: deny, target: \"*.denied.example\"}\n";

struct desk {
	struct world *world;
	struct fake fake;
	int fd; /* the sandbox's, connected */
	uint8_t bytes[DNS_MESSAGE_MAX];
	struct dns_message reply;
};

static int set_up(void **state)
{
	struct desk *d = must_alloc(sizeof(*d));
	struct addr here = addr_of("127.0.0.1", 0);
	struct sockaddr_storage sa;
	struct worker *w;

	d->world = world_new();
	w = &d->world->worker;
	fake_init(&d->fake, w->loop);
	resolver_set_upstreams(w->resolver, &d->fake.address, 1);
	must(!dns_server_add_udp(w->dns, fake_bind(SOCK_DGRAM, &here)));
	d->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	must(!connect(d->fd, (void *)&sa, addr_to_sockaddr(&here, &sa)));
	world_policy(d->world, 1, wild);
	(void)world_sandbox(d->world, "sandbox-1", "127.0.0.1");
	*state = d;
	return 0;
}

static int tear_down(void **state)
{
	struct desk *d = *state;

	d->fd = fd_close(d->fd);
	fake_fini(&d->fake);
	world_free(d->world);
	free(d);
	return 0;
}

/* One question of the sandbox, and the reply to it. */
static void ask(struct desk *d, const char *host, uint16_t type)
{
	uint64_t end_ms = clock_ms() + WORLD_PATIENCE_MS;
	struct dns_name name;
	uint8_t query[600];
	ssize_t n = -1;
	size_t len;

	assert_true(dns_name_from_host(span_str(host), &name));
	len = dns_emit_query(77, &name, type, 1232, query, sizeof(query));
	assert_int_equal(send(d->fd, query, len, 0), len);
	while (n < 0 && clock_ms() < end_ms) {
		world_turn(d->world);
		n = recv(d->fd, d->bytes, sizeof(d->bytes), MSG_DONTWAIT);
	}
	assert_true(n > 0);
	assert_int_equal(
		dns_parse_reply(span_of(d->bytes, (size_t)n), &d->reply),
		DNS_OK);
}

static bool is_name(void *ctx, struct span host)
{
	return span_eq(host, span_str(ctx));
}

/* Does the node know that sandbox-1 was given this address for the name? */
static bool knows(struct desk *d, const char *host, const char *ip)
{
	struct addr a = addr_of(ip, 0);

	return learned_each(gateway_learned(&d->world->gateway),
			    SPAN("sandbox-1"), &a, clock_ms(), is_name,
			    (void *)host);
}

static void desk__teaches_what_it_answered(void **state)
{
	struct desk *d = *state;

	ask(d, "a.test", DNS_TYPE_A);
	assert_true(knows(d, "a.test", "192.0.2.1"));
	assert_false(knows(d, "a.test", "2001:db8::1"));
	ask(d, "a.test", DNS_TYPE_AAAA); /* from the cache */
	assert_true(knows(d, "a.test", "2001:db8::1"));
	/* under the name that was asked for, not where its aliases end */
	ask(d, "chain.test", DNS_TYPE_A);
	assert_true(knows(d, "chain.test", "192.0.2.1"));
	assert_false(knows(d, "end.test", "192.0.2.1"));
	assert_false(knows(d, "stranger.test", "192.0.2.1"));
	assert_int_equal(learned_count(gateway_learned(&d->world->gateway)), 3);
}

static void desk__denied_names_teach_nothing(void **state)
{
	struct desk *d = *state;

	ask(d, "a.denied.example", DNS_TYPE_A);
	assert_int_equal(d->reply.rcode, DNS_NXDOMAIN);
	ask(d, "nx.test", DNS_TYPE_A);
	assert_int_equal(learned_count(gateway_learned(&d->world->gateway)), 0);
}

static void desk__what_a_sandbox_learned_goes_with_it(void **state)
{
	struct desk *d = *state;
	struct facts *f = &d->world->worker.facts;

	ask(d, "a.test", DNS_TYPE_A);
	facts_drop_sandbox(f, SPAN("sandbox-1"));
	assert_false(knows(d, "a.test", "192.0.2.1"));

	/* another one that has its id begins empty */
	(void)world_sandbox(d->world, "sandbox-1", "127.0.0.1");
	ask(d, "a.test", DNS_TYPE_A);
	(void)world_sandbox(d->world, "sandbox-1", "127.0.0.2");
	assert_false(knows(d, "a.test", "192.0.2.1"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(desk__teaches_what_it_answered),
		TEST(desk__denied_names_teach_nothing),
		TEST(desk__what_a_sandbox_learned_goes_with_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
