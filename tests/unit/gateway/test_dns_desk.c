/* SPDX-License-Identifier: Apache-2.0 */
/* test_dns_desk.c - policy, registry and audit behind the DNS server */

#include "tests/unit/gateway/fake_upstream.h"
#include "tests/unit/gateway/fixture.h"

#include <sys/mman.h>
#include <unistd.h>

#include "gateway/dns/server.h"
#include "gateway/registry/learned.h"
#include "gateway/registry/quota.h"

#define POLICY(rules) "policies:\n- name: a\n  egress:\n" rules
#define ALLOW(target) "  - {action: allow, target: \"" target "\"}\n"
#define ANY_POLICY    "policies:\n- name: a\n  defaultAction: allow\n"

/* the documentation prefixes are no place to go without a rule for them */
static const char wild[] =
	POLICY(ALLOW("*.test") ALLOW("192.0.2.0/24") ALLOW("2001:db8::/32"));

struct desk {
	struct world *world;
	struct fake fake;
	int fd; /* the sandbox's, connected */
	uint8_t bytes[DNS_MESSAGE_MAX];
	struct dns_message reply;
	int audit; /* what was recorded */
	char record[2048];
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
	d->audit = memfd_create("audit", MFD_CLOEXEC);
	must(d->audit >= 0);
	audit_log_set_fd(w->audit_log, d->audit);
	*state = d;
	return 0;
}

static int tear_down(void **state)
{
	struct desk *d = *state;

	d->fd = fd_close(d->fd);
	fake_fini(&d->fake);
	world_free(d->world);
	d->audit = fd_close(d->audit);
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

/* The only record since the last call; "" when there is none. */
static const char *record(struct desk *d)
{
	ssize_t n;

	world_settle(d->world);
	n = pread(d->audit, d->record, sizeof(d->record) - 1, 0);
	assert_true(n >= 0);
	d->record[n] = '\0';
	must(!ftruncate(d->audit, 0) && !lseek(d->audit, 0, SEEK_SET));
	return d->record;
}

static void assert_recorded(struct desk *d, const char *reason,
			    const char *detail)
{
	const char *text = record(d);
	char member[64];

	(void)snprintf(member, sizeof(member), "\"reason\":\"%s\"", reason);
	if (!strstr(text, member) || !strstr(text, detail) ||
	    !strstr(text, "\"verdict\":\"deny\""))
		fail_msg("expected %s, %s in %s", reason, detail, text);
	assert_ptr_equal(strchr(text, '\n') + 1, text + strlen(text));
}

static bool reply_says(const struct desk *d, const char *text)
{
	return memmem(d->reply.bytes.ptr, d->reply.bytes.len, text,
		      strlen(text)) != NULL;
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

/* What a name may not lead a sandbox to, and what it may. */
static void desk__private_addresses_are_not_told(void **state)
{
	static const struct {
		const char *ip;
		bool told;
	} rows[] = {
		{ "10.0.0.1", false },
		{ "172.16.0.1", false },
		{ "192.168.1.1", false },
		{ "127.0.0.1", false },
		{ "127.8.8.8", false },
		{ "0.0.0.0", false },
		{ "169.254.1.1", false },
		{ "169.254.169.254", false },
		{ "100.64.0.1", false },
		{ "100.100.100.200", false },
		{ "224.0.0.251", false },
		{ "255.255.255.255", false },
		{ "198.18.0.1", false },
		{ "::1", false },
		{ "::", false },
		{ "fe80::1", false },
		{ "fd00:ec2::254", false },
		{ "fc00::1", false },
		{ "ff02::fb", false },
		{ "::10.0.0.1", false },
		{ "64:ff9b::a00:1", false },
		{ "2002:a00:1::", false },
		{ "203.0.114.77", false }, /* the node's own */
		{ "198.51.101.1", true },
		{ "2600::1", true },
		{ "64:ff9b::808:404", true },
	};
	struct desk *d = *state;
	struct names *n;
	struct addr a;
	unsigned i;

	world_own(d->world, "203.0.114.77/32");
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		n = names_new();
		name_add(n, NAME_HOSTS, "x.test", rows[i].ip);
		world_names(d->world, n);
		a = addr_of(rows[i].ip, 0);
		ask(d, "x.test", addr_is_v4(&a) ? DNS_TYPE_A : DNS_TYPE_AAAA);
		assert_int_equal(d->reply.rcode, DNS_NOERROR);
		assert_int_equal(d->reply.counts[DNS_ANSWER], rows[i].told);
		assert_int_equal(knows(d, "x.test", rows[i].ip), rows[i].told);
		if (rows[i].told)
			assert_string_equal(record(d), "");
		else
			assert_recorded(d, "no_allowed_address",
					"a sandbox may not reach");
	}
	assert_int_equal(d->world->worker.dns_counters.filtered, 23);
}

/* A pin, or a rule for the address whatever its ports, lets it be seen. */
static void desk__pins_and_address_rules_are_told(void **state)
{
	struct desk *d = *state;
	struct names *n = names_new();

	name_add(n, NAME_PIN, "pin.test", "10.0.0.1");
	name_add(n, NAME_HOSTS, "both.test", "10.1.0.1");
	name_add(n, NAME_HOSTS, "both.test", "10.2.0.1");
	world_names(d->world, n);
	ask(d, "pin.test", DNS_TYPE_A);
	assert_int_equal(d->reply.counts[DNS_ANSWER], 1);
	ask(d, "both.test", DNS_TYPE_A);
	assert_int_equal(d->reply.counts[DNS_ANSWER], 0);

	world_policy(d->world, 1,
		     POLICY(ALLOW("*.test") "  - {action: allow, target: "
					    "10.1.0.0/16, ports: [5432]}\n"));
	ask(d, "both.test", DNS_TYPE_A);
	assert_int_equal(d->reply.counts[DNS_ANSWER], 1);
	assert_true(knows(d, "both.test", "10.1.0.1"));
	assert_false(knows(d, "both.test", "10.2.0.1"));
	/* a default action that allows is no rule for the address */
	world_policy(d->world, 1, ANY_POLICY);
	ask(d, "both.test", DNS_TYPE_A);
	assert_int_equal(d->reply.counts[DNS_ANSWER], 0);
}

static void desk__resolvers_of_others_are_denied(void **state)
{
	static const char *const foreign[] = { "dns.google", "x.dns.nextdns.io",
					       "use-application-dns.net",
					       "mozilla.cloudflare-dns.com" };
	struct desk *d = *state;
	unsigned i, asked;

	world_policy(d->world, 1, ANY_POLICY);
	for (i = 0; i < ARRAY_LEN(foreign); i++) {
		ask(d, foreign[i], DNS_TYPE_A);
		assert_int_equal(d->reply.rcode, DNS_NXDOMAIN);
		assert_true(reply_says(d, "resolver of others"));
		assert_recorded(d, "policy",
				"\"decidedBy\":\"foreign resolver\"");
	}
	assert_int_equal(d->fake.udp_count, 0);
	ask(d, "notdns.google.example", DNS_TYPE_MX);
	assert_int_equal(d->reply.rcode, DNS_NOERROR);

	/* a wildcard does not mean it, its name does */
	world_policy(d->world, 1, POLICY(ALLOW("*.google")));
	ask(d, "dns.google", DNS_TYPE_MX);
	assert_int_equal(d->reply.rcode, DNS_NXDOMAIN);
	world_policy(d->world, 1, POLICY(ALLOW("dns.google")));
	asked = d->fake.udp_count;
	ask(d, "dns.google", DNS_TYPE_MX);
	assert_int_equal(d->reply.rcode, DNS_NOERROR);
	assert_int_equal(d->fake.udp_count, asked + 1);

	world_policy(d->world, 1, ANY_POLICY);
	d->world->config.dns_allow_foreign_resolvers = true;
	ask(d, "dns.google", DNS_TYPE_MX);
	assert_int_equal(d->reply.rcode, DNS_NOERROR);
	/* of ours there is none to tell of, whatever is allowed */
	ask(d, "_dns.resolver.arpa", DNS_TYPE_SVCB);
	assert_int_equal(d->reply.counts[DNS_ANSWER], 0);
	assert_false(fake_is(&d->fake, "_dns.resolver.arpa"));
}

/* What a wildcard allows is no channel: long names and many names stay here. */
static void desk__names_under_a_wildcard_are_bounded(void **state)
{
	struct desk *d = *state;
	char host[256], label[80];
	unsigned i, sent = 0, before;

	memset(label, 'a', 63);
	label[63] = '\0';
	(void)snprintf(host, sizeof(host), "%s.%s.test", label, label);
	ask(d, host, DNS_TYPE_TXT);
	assert_int_equal(d->reply.rcode, DNS_REFUSED);
	ask(d, host, DNS_TYPE_A);
	assert_int_equal(d->reply.rcode, DNS_REFUSED);
	ask(d, "1.2.3.4.5.6.7.8.9.a.b.c.test", DNS_TYPE_A);
	assert_int_equal(d->reply.rcode, DNS_REFUSED);
	assert_int_equal(d->fake.udp_count, 0);
	(void)record(d);

	for (i = 0; i < 200; i++) {
		(void)snprintf(host, sizeof(host), "data%u.test", i);
		before = d->fake.udp_count;
		ask(d, host, i % 2 ? DNS_TYPE_MX : DNS_TYPE_TXT);
		sent += d->reply.rcode == DNS_NOERROR;
		if (d->reply.rcode != DNS_NOERROR)
			assert_int_equal(d->fake.udp_count, before);
	}
	/* a minute's worth, and what the time that it took adds */
	assert_in_range(sent, 60, 70);
	assert_non_null(strstr(record(d), "\"reason\":\"dns_limit\""));
	assert_int_equal(d->reply.rcode, DNS_REFUSED);
	assert_true(reply_says(d, "that does not spell it out"));

	/* what a rule spells out costs nothing */
	world_policy(d->world, 1,
		     POLICY(ALLOW("data199.test") ALLOW("*.test")));
	ask(d, "data199.test", DNS_TYPE_MX);
	assert_int_equal(d->reply.rcode, DNS_NOERROR);
}

/* Over dnsPerSecond nobody is asked, allowed or not; one record a second. */
static void desk__questions_have_a_rate(void **state)
{
	struct desk *d = *state;
	struct addr here = addr_of("127.0.0.1", 0);
	struct sandbox *s =
		facts_find_sandbox(&d->world->worker.facts, &here, "");
	unsigned i, limited = 0;

	ask(d, "a.test", DNS_TYPE_A);
	quota_set_limit(s->quota, QUOTA_DNS, 5);
	for (i = 0; i < 30; i++) {
		ask(d, i % 2 ? "a.test" : "a.denied.example", DNS_TYPE_A);
		limited += d->reply.rcode == DNS_REFUSED;
	}
	assert_in_range(limited, 20, 25);
	assert_int_equal(d->world->worker.dns_counters.limited, limited);
	assert_non_null(strstr(record(d), "\"reason\":\"limit\""));
	quota_set_limit(s->quota, QUOTA_DNS, 0);
	ask(d, "a.test", DNS_TYPE_A);
	assert_int_equal(d->reply.rcode, DNS_NOERROR);
}

/* case 15: where a binding leads is for policy to say, port by port */
static void desk__service_bindings_stay_within_policy(void **state)
{
	struct desk *d = *state;

	ask(d, "ech.test", DNS_TYPE_HTTPS);
	assert_int_equal(d->reply.counts[DNS_ANSWER], 1);
	assert_false(reply_says(d, "h3"));
	assert_false(reply_says(d, "\xfe\x0d"));
	ask(d, "port.test", DNS_TYPE_HTTPS);
	assert_int_equal(d->reply.counts[DNS_ANSWER], 1);
	ask(d, "away.test", DNS_TYPE_HTTPS); /* to x.denied.test */
	assert_int_equal(d->reply.counts[DNS_ANSWER], 1);
	assert_string_equal(record(d), "");

	world_policy(d->world, 1,
		     POLICY("  - {action: deny, target: \"*.denied.test\"}\n"
			    "  - {action: allow, target: \"*.test\", ports: "
			    "[443]}\n"));
	ask(d, "away.test", DNS_TYPE_HTTPS);
	assert_int_equal(d->reply.counts[DNS_ANSWER], 0);
	assert_recorded(d, "no_allowed_address", "away.test");
	ask(d, "port.test", DNS_TYPE_HTTPS);
	assert_int_equal(d->reply.counts[DNS_ANSWER], 0);
	ask(d, "ech.test", DNS_TYPE_HTTPS);
	assert_int_equal(d->reply.counts[DNS_ANSWER], 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(desk__teaches_what_it_answered),
		TEST(desk__denied_names_teach_nothing),
		TEST(desk__what_a_sandbox_learned_goes_with_it),
		TEST(desk__private_addresses_are_not_told),
		TEST(desk__pins_and_address_rules_are_told),
		TEST(desk__resolvers_of_others_are_denied),
		TEST(desk__names_under_a_wildcard_are_bounded),
		TEST(desk__questions_have_a_rate),
		TEST(desk__service_bindings_stay_within_policy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
