/* SPDX-License-Identifier: Apache-2.0 */
/* test_server.c - the sandboxes' DNS server over UDP and TCP, on loopback */

#include "tests/unit/gateway/fake_upstream.h"

#include "gateway/dns/resolver.h"
#include "gateway/dns/server.h"

struct fixture {
	struct loop *loop;
	struct fake fake;
	struct dns_counters counters;
	struct resolver *resolver;
	struct dns_server *server;
	struct dns_server_config config;
	unsigned decided, leads;
	unsigned hides; /* addresses whose last byte this divides */
	bool is_spent;	/* nothing goes upstream any more */
	/* what audit was told last */
	unsigned audited;
	bool answered_early; /* the client, before the owner was told */
	struct dns_event event;
	struct dns_client client;
	char host[256];
	/* a client */
	int fd;
	uint8_t bytes[DNS_MESSAGE_MAX + 2];
	struct dns_message reply;
};

static void on_decide(void *ctx, const struct dns_client *client,
		      struct span host, struct dns_decision *ret)
{
	struct fixture *f = ctx;

	(void)client;
	assert_false(ret->allowed);
	assert_false(ret->text[0]);
	f->decided++;
	ret->token = f;
	ret->allowed = !span_ends(host, SPAN("denied.test"));
	if (!ret->allowed)
		(void)snprintf(ret->text, sizeof(ret->text),
			       "denied by rule 3 of policy agents");
}

static void on_audit(void *ctx, const struct dns_event *event)
{
	struct fixture *f = ctx;

	f->audited++;
	f->answered_early |= recv(f->fd, f->bytes, sizeof(f->bytes),
				  MSG_DONTWAIT | MSG_PEEK) > 0;
	f->event = *event;
	f->client = *event->client;
	assert_true(span_copy(event->host, f->host, sizeof(f->host)));
}

static bool on_may_see(void *ctx, const struct dns_decision *decision,
		       struct span host, const struct addr *address,
		       enum name_source source)
{
	struct fixture *f = ctx;

	assert_true(decision->allowed);
	assert_ptr_equal(decision->token, f);
	assert_true(host.len > 0);
	assert_int_equal(source, NAME_DNS);
	return !f->hides || address->ip[15] % f->hides;
}

static bool on_may_lead(void *ctx, const struct dns_decision *decision,
			struct span host, struct span target, uint16_t port)
{
	struct fixture *f = ctx;

	assert_true(decision->allowed);
	assert_true(host.len > 0);
	f->leads++;
	return !span_ends(target, SPAN("denied.test")) && port != 8443;
}

static bool on_may_ask(void *ctx, struct dns_decision *decision,
		       struct span host)
{
	struct fixture *f = ctx;

	assert_true(decision->allowed);
	if (!f->is_spent)
		return true;
	(void)snprintf(decision->text, sizeof(decision->text),
		       "%.*s is one too many", SPAN_FMT(host));
	return false;
}

static const struct dns_server_ops ops = {
	.decide = on_decide,
	.may_see = on_may_see,
	.may_lead = on_may_lead,
	.may_ask = on_may_ask,
	.audit = on_audit,
};

/* A server socket and a client socket connected to `to` on its port. */
static void join(struct fixture *f, const char *bind_to, const char *to)
{
	struct sockaddr_storage sa;
	struct addr a;
	int fd;

	assert_true(addr_parse(span_str(bind_to), &a));
	fd = fake_bind(SOCK_DGRAM, &a);
	assert_true(fd >= 0);
	assert_int_equal(dns_server_add_udp(f->server, fd), 0);
	assert_true(addr_parse_port(span_str(to), a.port, &a));
	f->fd = fd_close(f->fd);
	f->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(f->fd, (void *)&sa, addr_to_sockaddr(&a, &sa)),
			 0);
}

static void start(struct fixture *f)
{
	f->config.counters = &f->counters;
	must(!dns_server_new(f->loop, f->resolver, &f->config, &ops, f,
			     &f->server));
}

static int set_up(void **state)
{
	struct fixture *f = must_alloc(sizeof(*f));
	struct resolver_config config = { .timeout_ms = 300, .min_ttl_s = 5 };

	must(!loop_new(&f->loop));
	fake_init(&f->fake, f->loop);
	config.upstreams = &f->fake.address;
	config.upstream_count = 1;
	config.counters = &f->counters;
	must(!resolver_new(f->loop, &config, &f->resolver));
	f->fd = -1;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	f->fd = fd_close(f->fd);
	f->server = dns_server_free(f->server);
	f->resolver = resolver_free(f->resolver);
	fake_fini(&f->fake);
	f->loop = loop_free(f->loop);
	free(f);
	return 0;
}

struct query {
	uint8_t bytes[600];
	size_t len;
};

static struct query query_of(const char *host, uint16_t type, uint16_t udp_size)
{
	struct dns_name name;
	struct query q;

	assert_true(dns_name_from_host(span_str(host), &name));
	q.len = dns_emit_query(77, &name, type, udp_size, q.bytes,
			       sizeof(q.bytes));
	return q;
}

static void client_send(struct fixture *f, const struct query *q)
{
	assert_int_equal(send(f->fd, q->bytes, q->len, 0), q->len);
}

/* Turns the loop until the client has bytes; 0 = nothing came in a while. */
static size_t client_receive(struct fixture *f, uint64_t patience_ms)
{
	uint64_t end_ms = clock_ms() + patience_ms;
	ssize_t n;

	do {
		loop_run_once(f->loop, false);
		n = recv(f->fd, f->bytes, sizeof(f->bytes), MSG_DONTWAIT);
		if (n > 0)
			return (size_t)n;
		(void)usleep(1000);
	} while (clock_ms() < end_ms);
	return 0;
}

static void exchange(struct fixture *f, const char *host, uint16_t type)
{
	struct query q = query_of(host, type, 1232);
	size_t len;

	client_send(f, &q);
	len = client_receive(f, 3000);
	assert_int_equal(dns_parse_reply(span_of(f->bytes, len), &f->reply), 0);
	assert_int_equal(f->reply.id, 77);
	assert_int_equal(f->reply.type, type);
}

static bool reply_says(const struct fixture *f, const char *text)
{
	return memmem(f->reply.bytes.ptr, f->reply.bytes.len, text,
		      strlen(text)) != NULL;
}

/* Another loop may meet a client that has its answer already. */
static void server__tells_its_owner_before_the_client(void **state)
{
	struct fixture *f = *state;

	start(f);
	join(f, "127.0.0.1", "127.0.0.1");
	exchange(f, "a.test", DNS_TYPE_A);
	assert_int_equal(f->audited, 1);
	exchange(f, "a.test", DNS_TYPE_A); /* from the cache */
	exchange(f, "denied.test", DNS_TYPE_A);
	assert_int_equal(f->audited, 3);
	assert_false(f->answered_early);
}

static void server__answers_allowed_names(void **state)
{
	struct fixture *f = *state;
	struct dns_record record;
	struct addr a;

	start(f);
	join(f, "127.0.0.1", "127.0.0.1");
	exchange(f, "a.test", DNS_TYPE_AAAA);
	assert_int_equal(f->reply.rcode, DNS_NOERROR);
	assert_int_equal(f->reply.counts[DNS_ANSWER], 1);
	struct dns_walk w = DNS_WALK(&f->reply);
	assert_true(dns_walk_next(&w, &f->reply, &record));
	assert_true(dns_record_addr(&f->reply, &record, &a));
	assert_int_equal(a.ip[0], 0x20);
	assert_int_equal(record.ttl_s, 5);

	assert_int_equal(f->decided, 1);
	assert_int_equal(f->audited, 1);
	assert_string_equal(f->host, "a.test");
	assert_int_equal(f->event.type, DNS_TYPE_AAAA);
	assert_int_equal(f->event.source, NAME_DNS);
	assert_int_equal(f->event.addr_count, 1);
	assert_false(f->event.tcp);
	assert_int_equal(f->client.source.ip[12], 127);
	assert_int_equal(f->client.destination.ip[12], 127);
	assert_int_equal(f->client.ifindex, 1); /* lo */

	/* from the cache now, at once */
	exchange(f, "a.test", DNS_TYPE_A);
	assert_int_equal(f->fake.udp_count, 2);
	assert_int_equal(f->counters.answered, 2);

	exchange(f, "nx.test", DNS_TYPE_A);
	assert_int_equal(f->reply.rcode, DNS_NXDOMAIN);
	exchange(f, "nodata.test", DNS_TYPE_A);
	assert_int_equal(f->reply.rcode, DNS_NOERROR);
	assert_int_equal(f->reply.counts[DNS_ANSWER], 0);
	exchange(f, "servfail.test", DNS_TYPE_A);
	assert_int_equal(f->reply.rcode, DNS_SERVFAIL);
	exchange(f, "v4only.test", DNS_TYPE_AAAA);
	assert_int_equal(f->reply.rcode, DNS_NOERROR);
	assert_true(reply_says(f, "upstream did not answer"));
}

static void server__denies_without_asking(void **state)
{
	struct fixture *f = *state;

	start(f);
	join(f, "127.0.0.1", "127.0.0.1");
	exchange(f, "secret.denied.test", DNS_TYPE_A);
	assert_int_equal(f->reply.rcode, DNS_NXDOMAIN);
	assert_false(f->reply.flags & DNS_FLAG_AA);
	assert_true(reply_says(f, "denied by rule 3 of policy agents"));
	exchange(f, "secret.denied.test", DNS_TYPE_TXT);
	assert_int_equal(f->reply.rcode, DNS_NXDOMAIN);
	exchange(f, "denied.test", DNS_TYPE_HTTPS);
	assert_int_equal(f->reply.rcode, DNS_NXDOMAIN);
	assert_int_equal(f->fake.udp_count, 0);
	assert_int_equal(f->counters.denied, 3);
	assert_int_equal(f->audited, 3);
	assert_false(f->event.rcode == DNS_NOERROR);
}

/* The reply must come from the address that was asked, or the connected
 * client does not see it. */
static void server__answers_from_the_asked_address(void **state)
{
	struct fixture *f = *state;

	start(f);
	join(f, "0.0.0.0", "127.0.0.53");
	exchange(f, "a.test", DNS_TYPE_A);
	assert_int_equal(f->client.destination.ip[15], 53);
	exchange(f, "nx.denied.test", DNS_TYPE_A);
}

static void server__speaks_ipv6(void **state)
{
	struct sockaddr_in6 sa = { .sin6_family = AF_INET6 };
	struct fixture *f = *state;
	socklen_t len = sizeof(sa);
	int fd;

	start(f);
	fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (void *)&sa, len) < 0)
		skip();
	assert_int_equal(getsockname(fd, (void *)&sa, &len), 0);
	assert_int_equal(dns_server_add_udp(f->server, fd), 0);

	sa.sin6_addr = in6addr_loopback;
	f->fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(f->fd, (void *)&sa, len), 0);
	exchange(f, "a.test", DNS_TYPE_AAAA);
	assert_int_equal(f->client.destination.ip[15], 1);
	assert_int_equal(f->client.destination.ip[0], 0);

	/* IPv4 on the same socket */
	(void)inet_pton(AF_INET6, "::ffff:127.0.0.7", &sa.sin6_addr);
	f->fd = fd_close(f->fd);
	f->fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(f->fd, (void *)&sa, len), 0);
	exchange(f, "a.test", DNS_TYPE_A);
	assert_true(addr_is_v4(&f->client.destination));
	assert_true(addr_is_v4(&f->client.source));
}

static void server__treats_types_differently(void **state)
{
	struct fixture *f = *state;
	struct dns_record record;

	start(f);
	join(f, "127.0.0.1", "127.0.0.1");
	exchange(f, "a.test", DNS_TYPE_MX);
	assert_int_equal(f->reply.rcode, DNS_NOERROR);
	assert_int_equal(f->reply.counts[DNS_ANSWER], 1);
	struct dns_walk w = DNS_WALK(&f->reply);
	assert_true(dns_walk_next(&w, &f->reply, &record));
	assert_int_equal(record.ttl_s, 5);
	exchange(f, "a.test", DNS_TYPE_TXT);
	assert_true(reply_says(f, "hello"));
	assert_int_equal(f->fake.udp_count, 2);
	/* an answer with something else in it */
	exchange(f, "odd.test", DNS_TYPE_TXT);
	assert_int_equal(f->reply.rcode, DNS_SERVFAIL);
	assert_int_equal(f->fake.udp_count, 3);

	exchange(f, "1.0.0.127.in-addr.arpa", DNS_TYPE_PTR);
	assert_int_equal(f->reply.rcode, DNS_NOERROR);
	assert_int_equal(f->reply.counts[DNS_ANSWER], 0);
	exchange(f, "a.test", DNS_TYPE_ANY);
	assert_int_equal(f->reply.rcode, DNS_REFUSED);
	/* the node's own names have no mail */
	exchange(f, "localhost", DNS_TYPE_MX);
	assert_int_equal(f->reply.rcode, DNS_NOERROR);
	assert_int_equal(f->fake.udp_count, 3);
	assert_int_equal(f->audited, 6);
	assert_int_equal(f->decided, 5);
}

static void server__leaves_out_what_may_not_be_seen(void **state)
{
	struct fixture *f = *state;

	start(f);
	join(f, "127.0.0.1", "127.0.0.1");
	/* of 192.0.2.0 to 192.0.2.31 */
	f->hides = 4;
	exchange(f, "big.test", DNS_TYPE_A);
	assert_int_equal(f->reply.counts[DNS_ANSWER], 24);
	assert_int_equal(f->event.end, DNS_END_ANSWERED);
	assert_int_equal(f->event.addr_count, 24);
	assert_int_equal(f->counters.addresses_left_out, 8);

	/* nothing is left: the name exists, and the answer says why */
	f->hides = 1;
	exchange(f, "a.test", DNS_TYPE_A);
	assert_int_equal(f->reply.rcode, DNS_NOERROR);
	assert_int_equal(f->reply.counts[DNS_ANSWER], 0);
	assert_true(reply_says(f, "only to addresses a sandbox may not"));
	assert_true(reply_says(f, "\0\x11the")); /* EDE 17 */
	assert_int_equal(f->event.end, DNS_END_FILTERED);
	assert_int_equal(f->event.addr_count, 0);
	assert_int_equal(f->counters.filtered, 1);
	/* there was none of the family: that is the truth, and unexplained */
	exchange(f, "nodata.test", DNS_TYPE_A);
	assert_int_equal(f->event.end, DNS_END_ANSWERED);
}

/* case 14, case 54 */
static void server__answers_service_bindings(void **state)
{
	struct fixture *f = *state;
	struct dns_record record;

	start(f);
	join(f, "127.0.0.1", "127.0.0.1");
	exchange(f, "ech.test", DNS_TYPE_HTTPS);
	assert_int_equal(f->reply.rcode, DNS_NOERROR);
	assert_int_equal(f->reply.counts[DNS_ANSWER], 1);
	struct dns_walk w = DNS_WALK(&f->reply);
	assert_true(dns_walk_next(&w, &f->reply, &record));
	assert_int_equal(record.data_len, 3 + 7);
	assert_memory_equal(f->reply.bytes.ptr + record.data_at,
			    "\0\1\0\0\1\0\3\2h2", 10);
	assert_int_equal(f->event.end, DNS_END_ANSWERED);
	assert_int_equal(f->leads, 1);

	exchange(f, "away.test", DNS_TYPE_HTTPS);
	assert_int_equal(f->reply.counts[DNS_ANSWER], 0);
	assert_int_equal(f->reply.rcode, DNS_NOERROR);
	assert_true(reply_says(f, "no service binding"));
	assert_int_equal(f->event.end, DNS_END_FILTERED);
	exchange(f, "port.test", DNS_TYPE_SVCB);
	assert_int_equal(f->event.end, DNS_END_FILTERED);
	exchange(f, "broken.test", DNS_TYPE_HTTPS);
	assert_int_equal(f->reply.rcode, DNS_NOERROR);
	assert_int_equal(f->reply.counts[DNS_ANSWER], 0);
	assert_true(reply_says(f, "malformed"));
	exchange(f, "secret.denied.test", DNS_TYPE_HTTPS);
	assert_int_equal(f->reply.rcode, DNS_NXDOMAIN);
	assert_int_equal(f->fake.udp_count, 4);
}

/* Over a budget nothing new goes upstream; what is known is still told. */
static void server__asks_nobody_over_a_budget(void **state)
{
	static const uint16_t types[] = { DNS_TYPE_A, DNS_TYPE_TXT,
					  DNS_TYPE_HTTPS, DNS_TYPE_MX };
	struct fixture *f = *state;
	unsigned i, before;

	start(f);
	join(f, "127.0.0.1", "127.0.0.1");
	exchange(f, "a.test", DNS_TYPE_A);
	before = f->fake.udp_count;
	f->is_spent = true;
	exchange(f, "a.test", DNS_TYPE_A);
	assert_int_equal(f->reply.rcode, DNS_NOERROR);
	for (i = 0; i < ARRAY_LEN(types); i++) {
		exchange(f, "new.test", types[i]);
		assert_int_equal(f->reply.rcode, DNS_REFUSED);
		assert_true(reply_says(f, "new.test is one too many"));
		assert_int_equal(f->event.end, DNS_END_LIMITED);
	}
	assert_int_equal(f->counters.limited, 4);
	assert_int_equal(f->fake.udp_count, before);
}

static void raw(struct fixture *f, const void *bytes, size_t len,
		unsigned rcode)
{
	struct query q = { .len = len };

	memcpy(q.bytes, bytes, len);
	client_send(f, &q);
	len = client_receive(f, rcode == ~0u ? 30 : 3000);
	if (rcode == ~0u) {
		assert_int_equal(len, 0);
		return;
	}
	assert_int_equal(dns_parse_reply(span_of(f->bytes, len), &f->reply), 0);
	assert_int_equal(f->reply.rcode, rcode);
}

static void server__refuses_odd_questions(void **state)
{
	static const char root[] = "\0\1\1\0\0\1\0\0\0\0\0\0\0\0\2\0\1";
	static const char star[] = "\0\1\1\0\0\1\0\0\0\0\0\0\1*\0\0\1\0\1";
	static const char chaos[] = "\0\1\1\0\0\1\0\0\0\0\0\0\1a\0\0\1\0\3";
	static const char version[] =
		"\0\1\1\0\0\1\0\0\0\0\0\1\1a\0\0\1\0\1\0\0\x29\4\0\0\1\0\0\0\0";
	struct fixture *f = *state;

	start(f);
	join(f, "127.0.0.1", "127.0.0.1");
	raw(f, root, sizeof(root) - 1, DNS_REFUSED);
	assert_string_equal(f->host, ".");
	raw(f, star, sizeof(star) - 1, DNS_REFUSED);
	assert_string_equal(f->host, "*");
	raw(f, chaos, sizeof(chaos) - 1, DNS_REFUSED);
	raw(f, version, sizeof(version) - 1, DNS_BADVERS);
	assert_int_equal(f->decided, 0);
	assert_int_equal(f->audited, 4);
	assert_int_equal(f->counters.refused, 4);
}

static void server__drops_what_is_no_query(void **state)
{
	static const char reply[] = "\0\1\x81\0\0\1\0\0\0\0\0\0\1a\0\0\1\0\1";
	struct fixture *f = *state;

	start(f);
	join(f, "127.0.0.1", "127.0.0.1");
	raw(f, "x", 1, ~0u);
	raw(f, reply, sizeof(reply) - 1, ~0u);
	raw(f, reply, sizeof(reply) - 2, ~0u);
	assert_int_equal(f->counters.malformed, 3);
	assert_int_equal(f->audited, 3); /* the owner hears of each */
	/* longer than any query */
	memset(f->bytes, 0, 1400);
	assert_int_equal(send(f->fd, f->bytes, 1400, 0), 1400);
	assert_int_equal(client_receive(f, 30), 0);
	assert_int_equal(f->counters.malformed, 4);
}

static void server__truncates_over_udp(void **state)
{
	struct fixture *f = *state;
	struct query q = query_of("big.test", DNS_TYPE_A, 0);
	size_t len;

	start(f);
	join(f, "127.0.0.1", "127.0.0.1");
	client_send(f, &q);
	len = client_receive(f, 3000);
	assert_int_equal(dns_parse_reply(span_of(f->bytes, len), &f->reply), 0);
	assert_true(f->reply.flags & DNS_FLAG_TC);
	assert_true(len <= 512);
	assert_int_equal(f->counters.truncated, 1);
	exchange(f, "big.test", DNS_TYPE_A);
	assert_int_equal(f->reply.counts[DNS_ANSWER], NAME_ADDRS_MAX);
}

static void server__serves_bursts(void **state)
{
	struct fixture *f = *state;
	struct query q = query_of("x.denied.test", DNS_TYPE_A, 0);
	unsigned i, replies = 0;

	start(f);
	join(f, "127.0.0.1", "127.0.0.1");
	for (i = 0; i < 100; i++)
		client_send(f, &q);
	while (replies < 100 && client_receive(f, 1000))
		replies++;
	assert_int_equal(replies, 100);
}

static void server__limits_a_client(void **state)
{
	struct fixture *f = *state;
	struct query q = query_of("silent.test", DNS_TYPE_A, 1232);
	unsigned i;
	size_t len;

	f->config.client_queries_max = 2;
	start(f);
	join(f, "127.0.0.1", "127.0.0.1");
	for (i = 0; i < 3; i++)
		client_send(f, &q);
	len = client_receive(f, 800);
	assert_int_equal(dns_parse_reply(span_of(f->bytes, len), &f->reply), 0);
	assert_int_equal(f->reply.rcode, DNS_SERVFAIL);
	assert_int_equal(f->counters.overload, 1);
	/* the two come to their end, and then there is room again */
	assert_true(client_receive(f, 5000) && client_receive(f, 5000));
	assert_int_equal(f->audited, 3);
	exchange(f, "a.test", DNS_TYPE_A);
	assert_int_equal(f->reply.rcode, DNS_NOERROR);
}

static void server__audits_what_dies_with_it(void **state)
{
	struct fixture *f = *state;
	struct query q = query_of("silent.test", DNS_TYPE_A, 1232);
	struct query mx = query_of("silent.test", DNS_TYPE_MX, 1232);

	start(f);
	join(f, "127.0.0.1", "127.0.0.1");
	client_send(f, &q);
	client_send(f, &mx);
	assert_int_equal(client_receive(f, 50), 0);
	assert_int_equal(f->decided, 2);
	assert_int_equal(f->audited, 0);
	f->server = dns_server_free(f->server);
	assert_int_equal(f->audited, 2);
	assert_int_equal(f->event.rcode, DNS_SERVFAIL);
}

/* TCP: the server gets one end of a pair. */
static void dial(struct fixture *f)
{
	static const struct dns_client client = {
		.source = { .ip = { [15] = 9 }, .port = 1234 },
		.ifindex = 7,
	};
	struct stream *s;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX,
				    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
				    0, fds),
			 0);
	f->fd = fd_close(f->fd);
	f->fd = fds[0];
	assert_int_equal(stream_new(f->loop, fds[1], &s), 0);
	dns_server_give(f->server, s, &client);
}

static struct query framed(struct query q)
{
	memmove(q.bytes + 2, q.bytes, q.len);
	q.bytes[0] = (uint8_t)(q.len >> 8);
	q.bytes[1] = (uint8_t)q.len;
	q.len += 2;
	return q;
}

/* One framed reply into .bytes and .reply; false: end of stream. */
static bool tcp_reply(struct fixture *f, uint64_t patience_ms)
{
	uint64_t end_ms = clock_ms() + patience_ms;
	size_t have = 0, want = 2;
	ssize_t n;

	while (have < want && clock_ms() < end_ms) {
		loop_run_once(f->loop, false);
		n = recv(f->fd, f->bytes + have, want - have, MSG_DONTWAIT);
		if (n == 0)
			return false;
		if (n < 0) {
			(void)usleep(1000);
			continue;
		}
		have += (size_t)n;
		if (have == 2)
			want = 2u + (f->bytes[0] << 8 | f->bytes[1]);
	}
	assert_true(have > 2 && have == want);
	assert_int_equal(
		dns_parse_reply(span_of(f->bytes + 2, have - 2), &f->reply), 0);
	return true;
}

static void server__speaks_tcp(void **state)
{
	struct query q = framed(query_of("big.test", DNS_TYPE_A, 0));
	struct fixture *f = *state;
	size_t i;

	start(f);
	dial(f);
	/* byte by byte */
	for (i = 0; i < q.len; i++) {
		assert_int_equal(send(f->fd, q.bytes + i, 1, 0), 1);
		loop_run_once(f->loop, false);
	}
	assert_true(tcp_reply(f, 3000));
	assert_int_equal(f->reply.counts[DNS_ANSWER], NAME_ADDRS_MAX);
	assert_true(f->event.tcp);
	assert_int_equal(f->client.ifindex, 7);

	/* half a query, then the end: nothing more is said */
	assert_int_equal(send(f->fd, q.bytes, 9, 0), 9);
	assert_int_equal(shutdown(f->fd, SHUT_WR), 0);
	assert_false(tcp_reply(f, 3000));
}

static void server__answers_out_of_order_over_tcp(void **state)
{
	struct query slow = framed(query_of("silent.test", DNS_TYPE_A, 0));
	struct query fast = framed(query_of("a.denied.test", DNS_TYPE_A, 0));
	struct fixture *f = *state;
	struct query both = slow;

	memcpy(both.bytes + slow.len, fast.bytes, fast.len);
	both.len += fast.len;
	start(f);
	dial(f);
	client_send(f, &both);
	/* the client ends its side: it still gets both answers */
	assert_int_equal(shutdown(f->fd, SHUT_WR), 0);
	assert_true(tcp_reply(f, 3000));
	assert_int_equal(f->reply.rcode, DNS_NXDOMAIN);
	assert_true(tcp_reply(f, 3000));
	assert_int_equal(f->reply.rcode, DNS_SERVFAIL);
	assert_false(tcp_reply(f, 3000));
}

/* More at once than a connection may have under way: reading pauses. */
static void server__bounds_a_pipeline(void **state)
{
	struct query q = framed(query_of("silent.test", DNS_TYPE_A, 0));
	struct fixture *f = *state;
	unsigned i;

	start(f);
	dial(f);
	for (i = 0; i < 150; i++)
		client_send(f, &q);
	for (i = 0; i < 50; i++)
		loop_run_once(f->loop, false);
	assert_int_equal(f->decided, 64);
	for (i = 0; i < 150; i++)
		assert_true(tcp_reply(f, 5000));
	assert_int_equal(f->decided, 150);
	assert_int_equal(f->audited, 150);
}

static void server__closes_on_bytes_that_are_no_query(void **state)
{
	static const struct query bad[] = {
		{ "\0\1x", 3 },		      /* shorter than a header */
		{ "\xff\xff\0\0", 4 },	      /* longer than any query */
		{ "\0\x0cxxxxxxxxxxxx", 14 }, /* noise */
	};
	struct fixture *f = *state;
	size_t i;

	start(f);
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		dial(f);
		client_send(f, &bad[i]);
		assert_false(tcp_reply(f, 3000));
	}
	assert_int_equal(f->counters.malformed, 3);
}

static void server__closes_idle_connections(void **state)
{
	struct fixture *f = *state;
	uint64_t start_ms = clock_ms();

	f->config.idle_ms = 100;
	start(f);
	dial(f);
	assert_false(tcp_reply(f, 3000));
	assert_in_range(clock_ms() - start_ms, 90, 2500);
}

static void server__limits_connections(void **state)
{
	struct fixture *f = *state;
	int first;

	f->config.client_connections_max = 1;
	start(f);
	dial(f);
	first = f->fd;
	f->fd = -1;
	dial(f);
	loop_run_once(f->loop, false);
	assert_int_equal(recv(f->fd, f->bytes, 1, MSG_DONTWAIT), 0);
	assert_int_equal(f->counters.connections_refused, 1);
	(void)fd_close(first);
	loop_run_once(f->loop, true);
	loop_run_once(f->loop, false);
	dial(f);
	assert_int_equal(f->counters.connections_refused, 1);
	assert_int_equal(f->counters.connections, 2);
}

/* The client goes away with questions under way. */
static void server__survives_a_vanishing_client(void **state)
{
	struct query q = framed(query_of("silent.test", DNS_TYPE_A, 0));
	struct query n = framed(query_of("a.denied.test", DNS_TYPE_A, 0));
	struct fixture *f = *state;
	unsigned i;

	start(f);
	dial(f);
	client_send(f, &q);
	client_send(f, &n);
	f->fd = fd_close(f->fd);
	for (i = 0; i < 1000 && f->audited < 2; i++) {
		loop_run_once(f->loop, false);
		(void)usleep(1000);
	}
	assert_int_equal(f->audited, 2);
	assert_int_equal(f->decided, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(server__tells_its_owner_before_the_client),
		TEST(server__answers_allowed_names),
		TEST(server__denies_without_asking),
		TEST(server__answers_from_the_asked_address),
		TEST(server__speaks_ipv6),
		TEST(server__treats_types_differently),
		TEST(server__refuses_odd_questions),
		TEST(server__leaves_out_what_may_not_be_seen),
		TEST(server__answers_service_bindings),
		TEST(server__asks_nobody_over_a_budget),
		TEST(server__drops_what_is_no_query),
		TEST(server__truncates_over_udp),
		TEST(server__serves_bursts),
		TEST(server__limits_a_client),
		TEST(server__audits_what_dies_with_it),
		TEST(server__speaks_tcp),
		TEST(server__answers_out_of_order_over_tcp),
		TEST(server__bounds_a_pipeline),
		TEST(server__closes_on_bytes_that_are_no_query),
		TEST(server__closes_idle_connections),
		TEST(server__limits_connections),
		TEST(server__survives_a_vanishing_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
