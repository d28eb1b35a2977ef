/* SPDX-License-Identifier: Apache-2.0 */
/* test_dns_relay.c - upstream answers as they are passed on */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/base/err.h"
#include "src/wire/dns_emit.h"
#include "src/wire/dns_relay.h"

#define BYTES(literal)		span_of((literal), sizeof(literal) - 1)
#define HEAD(flags, an, ns, ar) "\x12\x34" flags "\0\1" an ns ar
#define N0			"\0\0"
#define N1			"\0\1"
#define N2			"\0\2"
#define OPT			"\0\0\x29\x04\xd0\0\0\0\0\0\0"

/* www.example.com MX, two of them, and glue that must not pass */
static const char mx_reply[] =
	HEAD("\x85\xa0", N2, N0, N2) "\3www\7example\3com\0\0\x0f\0\1"
				     "\xc0\x0c\0\x0f\0\1\0\0\0\1\0\7\0\x0a\2mx"
				     "\xc0\x10"
				     "\xc0\x0c\0\x0f\0\1\0\1\x51\x80\0\7\0\x14"
				     "\2my\xc0\x10"
				     "\2mx\xc0\x10\0\1\0\1\0\0\0\1\0\4\x7f\0\0"
				     "\1" OPT;
static const char mx_query[] =
	HEAD("\1\0", N0, N0, N1) "\3wwW\7EXAMPLE\3com\0\0\x0f\0\1" OPT;

struct fixture {
	struct dns_message query, upstream, reply;
	struct dns_relay how;
	uint8_t bytes[DNS_MESSAGE_MAX];
	/* what may_lead was asked, and how it answers */
	unsigned asked;
	struct dns_name target;
	uint16_t port;
	bool refuses;
};

static bool may_lead(void *ctx, const struct dns_name *target, uint16_t port)
{
	struct fixture *f = ctx;

	f->asked++;
	f->target = *target;
	f->port = port;
	return !f->refuses;
}

static int set_up(void **state)
{
	struct fixture *f = must_alloc(sizeof(*f));

	f->how = (struct dns_relay){
		.min_ttl_s = 5,
		.max_ttl_s = 3600,
		.may_lead = may_lead,
		.ctx = f,
	};
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static enum dns_relay_end relay(struct fixture *f, size_t size)
{
	enum dns_relay_end end = dns_emit_relay(&f->query, &f->upstream,
						&f->how, f->bytes, size);

	if (end == DNS_RELAY_DONE)
		assert_int_equal(dns_parse_reply(span_of(f->bytes, f->how.len),
						 &f->reply),
				 DNS_OK);
	return end;
}

/* -- an answer under construction ------------------------------------------ */

struct maker {
	uint8_t bytes[DNS_MESSAGE_MAX];
	size_t len;
};

static void make(struct maker *k, const void *bytes, size_t len)
{
	memcpy(k->bytes + k->len, bytes, len);
	k->len += len;
}

static void make_16(struct maker *k, unsigned v)
{
	const uint8_t b[2] = { (uint8_t)(v >> 8), (uint8_t)v };

	make(k, b, 2);
}

static struct dns_name name_of(const char *text)
{
	struct dns_name n;

	must(dns_name_from_host(span_str(text), &n));
	return n;
}

/* The question "host type", in the query too. */
static void begin(struct fixture *f, struct maker *k, const char *host,
		  uint16_t type)
{
	struct dns_name n = name_of(host);
	uint8_t query[600];
	size_t len = dns_emit_query(7, &n, type, 1232, query, sizeof(query));

	assert_int_equal(dns_parse_query(span_of(query, len), &f->query), 0);
	k->len = 0;
	make(k, "\0\7\x81\x80\0\1\0\0\0\0\0\0", 12);
	make(k, n.wire, n.len);
	make_16(k, type);
	make_16(k, DNS_CLASS_IN);
}

static void record(struct maker *k, const char *owner, uint16_t type,
		   uint32_t ttl_s, struct span data)
{
	struct dns_name n = name_of(owner);

	k->bytes[7]++;
	make(k, n.wire, n.len);
	make_16(k, type);
	make_16(k, DNS_CLASS_IN);
	make_16(k, ttl_s >> 16);
	make_16(k, ttl_s & 0xffff);
	make_16(k, (unsigned)data.len);
	make(k, data.ptr, data.len);
}

static void alias(struct maker *k, const char *owner, const char *target,
		  uint32_t ttl_s)
{
	struct dns_name n = name_of(target);

	record(k, owner, DNS_TYPE_CNAME, ttl_s, span_of(n.wire, n.len));
}

static enum dns_relay_end pass(struct fixture *f, const struct maker *k)
{
	assert_int_equal(
		dns_parse_reply(span_of(k->bytes, k->len), &f->upstream),
		DNS_OK);
	return relay(f, sizeof(f->bytes));
}

/* The data of the reply's only record, which is the question's. */
static struct span only(struct fixture *f, uint32_t *ret_ttl_s)
{
	struct dns_walk w = DNS_WALK(&f->reply);
	struct dns_record r;

	assert_int_equal(f->reply.counts[DNS_ANSWER], 1);
	assert_true(dns_walk_next(&w, &f->reply, &r));
	assert_true(dns_name_eq(&r.name, &f->query.name));
	assert_int_equal(r.type, f->query.type);
	*ret_ttl_s = r.ttl_s;
	return span_of(f->reply.bytes.ptr + r.data_at, r.data_len);
}

/* -- tests ----------------------------------------------------------------- */

static void relay__writes_the_answer_anew(void **state)
{
	struct fixture *f = *state;
	struct dns_record r;

	assert_int_equal(dns_parse_query(BYTES(mx_query), &f->query), DNS_OK);
	assert_int_equal(dns_parse_reply(BYTES(mx_reply), &f->upstream),
			 DNS_OK);
	f->query.id = 99;
	assert_int_equal(relay(f, 2048), DNS_RELAY_DONE);
	assert_int_equal(f->reply.id, 99);
	assert_int_equal(f->reply.flags,
			 DNS_FLAG_QR | DNS_FLAG_RD | DNS_FLAG_RA);
	/* as it was asked */
	assert_memory_equal(f->reply.name.wire, "\3wwW\7EXAMPLE\3com", 17);
	assert_int_equal(f->reply.counts[DNS_ANSWER], 2);
	assert_int_equal(f->reply.counts[DNS_ADDITIONAL], 1); /* OPT */
	struct dns_walk w = DNS_WALK(&f->reply);
	assert_true(dns_walk_next(&w, &f->reply, &r));
	assert_int_equal(r.ttl_s, 5);
	assert_int_equal(r.data_len, 2 + 16);
	assert_memory_equal(f->bytes + r.data_at, "\0\x0a\2mx\7example\3com",
			    18);
	assert_true(dns_walk_next(&w, &f->reply, &r));
	assert_int_equal(r.ttl_s, 3600);

	/* a different name or type is not our answer */
	f->query.type = DNS_TYPE_TXT;
	assert_int_equal(relay(f, 2048), DNS_RELAY_UNUSABLE);
	f->query.type = DNS_TYPE_MX;
	f->query.name.wire[1] = 'x';
	assert_int_equal(relay(f, 2048), DNS_RELAY_UNUSABLE);
}

static void relay__passes_no_strangers(void **state)
{
	struct fixture *f = *state;
	char bytes[sizeof(mx_reply)];

	assert_int_equal(dns_parse_query(BYTES(mx_query), &f->query), DNS_OK);
	memcpy(bytes, mx_reply, sizeof(bytes));
	bytes[33 + 3] = DNS_TYPE_HTTPS; /* inside the answer to MX */
	assert_int_equal(dns_parse_reply(BYTES(bytes), &f->upstream), DNS_OK);
	assert_int_equal(relay(f, 2048), DNS_RELAY_UNUSABLE);

	/* the exchanger's name points forwards */
	memcpy(bytes, mx_reply, sizeof(bytes));
	bytes[33 + 12 + 6] = 0x60;
	assert_int_equal(dns_parse_reply(BYTES(bytes), &f->upstream), DNS_OK);
	assert_int_equal(relay(f, 2048), DNS_RELAY_UNUSABLE);
}

static void relay__says_when_it_does_not_fit(void **state)
{
	struct fixture *f = *state;
	struct maker k;
	char text[256] = { (char)255 };

	begin(f, &k, "a.test", DNS_TYPE_TXT);
	record(&k, "a.test", DNS_TYPE_TXT, 60, span_of(text, 256));
	record(&k, "a.test", DNS_TYPE_TXT, 60, span_of(text, 256));
	assert_int_equal(pass(f, &k), DNS_RELAY_DONE);
	assert_int_equal(f->reply.counts[DNS_ANSWER], 2);
	assert_int_equal(relay(f, DNS_UDP_MIN), DNS_RELAY_DONE);
	assert_true(f->reply.flags & DNS_FLAG_TC);
	assert_int_equal(f->how.len, 12 + 8 + 4 + 11);
	assert_int_equal(relay(f, DNS_UDP_MIN - 1), DNS_RELAY_UNUSABLE);
}

static void relay__follows_aliases(void **state)
{
	struct fixture *f = *state;
	struct maker k;
	uint32_t ttl_s;

	begin(f, &k, "a.test", DNS_TYPE_TXT);
	record(&k, "c.test", DNS_TYPE_TXT, 60, BYTES("\5hello"));
	record(&k, "stranger.test", DNS_TYPE_TXT, 60, BYTES("\4evil"));
	alias(&k, "b.test", "c.test", 30);
	alias(&k, "a.test", "B.test", 90);
	assert_int_equal(pass(f, &k), DNS_RELAY_DONE);
	assert_true(span_eq(only(f, &ttl_s), BYTES("\5hello")));
	assert_int_equal(ttl_s, 30);

	/* one that ends nowhere: no data */
	begin(f, &k, "a.test", DNS_TYPE_TXT);
	alias(&k, "a.test", "b.test", 30);
	assert_int_equal(pass(f, &k), DNS_RELAY_DONE);
	assert_int_equal(f->reply.counts[DNS_ANSWER], 0);

	/* asked for the alias itself, that is the answer */
	begin(f, &k, "a.test", DNS_TYPE_CNAME);
	alias(&k, "a.test", "b.test", 30);
	alias(&k, "b.test", "c.test", 30);
	assert_int_equal(pass(f, &k), DNS_RELAY_DONE);
	assert_true(span_eq(only(f, &ttl_s), BYTES("\1b\4test\0")));
}

static void relay__refuses_aliases_without_end(void **state)
{
	struct fixture *f = *state;
	char owner[24], target[24];
	struct maker k;
	unsigned links, i;

	begin(f, &k, "a.test", DNS_TYPE_TXT);
	alias(&k, "a.test", "b.test", 30);
	alias(&k, "b.test", "a.test", 30);
	assert_int_equal(pass(f, &k), DNS_RELAY_UNUSABLE);

	for (links = DNS_RELAY_LINKS_MAX; links < DNS_RELAY_LINKS_MAX + 2;
	     links++) {
		begin(f, &k, "n0.test", DNS_TYPE_TXT);
		for (i = 0; i < links; i++) {
			(void)snprintf(owner, sizeof(owner), "n%u.test", i);
			(void)snprintf(target, sizeof(target), "n%u.test",
				       i + 1);
			alias(&k, owner, target, 30);
		}
		record(&k, target, DNS_TYPE_TXT, 60, BYTES("\5hello"));
		assert_int_equal(pass(f, &k), links <= DNS_RELAY_LINKS_MAX
						      ? DNS_RELAY_DONE
						      : DNS_RELAY_UNUSABLE);
	}
}

/* case 14, case 54: neither the keys of ECH nor HTTP/3 nor hints come along */
static void relay__cleans_service_bindings(void **state)
{
	static const char data[] = "\0\1\0\0\1\0\6\2h3\2h2\0\3\0\2\x20\xfb"
				   "\0\4\0\4\x7f\0\0\1"
				   "\0\5\0\4\0\2\xfe\x0d";
	struct fixture *f = *state;
	struct maker k;
	uint32_t ttl_s;

	begin(f, &k, "a.test", DNS_TYPE_HTTPS);
	alias(&k, "a.test", "b.test", 90);
	record(&k, "b.test", DNS_TYPE_HTTPS, 60, BYTES(data));
	assert_int_equal(pass(f, &k), DNS_RELAY_DONE);
	assert_true(span_eq(only(f, &ttl_s),
			    BYTES("\0\1\0\0\1\0\3\2h2\0\3\0\2\x20\xfb")));
	assert_int_equal(f->asked, 1);
	assert_int_equal(f->target.len, 1);
	assert_int_equal(f->port, 8443);
	assert_int_equal(f->how.withheld, 0);
}

static void relay__withholds_where_nobody_may_go(void **state)
{
	static const char away[] = "\0\1\1x\4test\0\0\1\0\3\2h2";
	struct fixture *f = *state;
	struct maker k;

	f->refuses = true;
	begin(f, &k, "a.test", DNS_TYPE_HTTPS);
	record(&k, "a.test", DNS_TYPE_HTTPS, 60, BYTES(away));
	assert_int_equal(pass(f, &k), DNS_RELAY_WITHHELD);
	assert_memory_equal(f->target.wire, "\1x\4test", 8);

	/* only the record that leads there */
	record(&k, "a.test", DNS_TYPE_HTTPS, 60,
	       BYTES("\0\2\0\0\1\0\3\2h3\0\2\0\0"));
	f->refuses = false;
	assert_int_equal(pass(f, &k), DNS_RELAY_DONE);
	assert_int_equal(f->reply.counts[DNS_ANSWER], 1);
	assert_int_equal(f->how.withheld, 1);

	/* no record at all is the truth, not a refusal */
	begin(f, &k, "a.test", DNS_TYPE_HTTPS);
	assert_int_equal(pass(f, &k), DNS_RELAY_DONE);
	assert_int_equal(f->reply.counts[DNS_ANSWER], 0);
}

/* RFC 9460 2.2: one that is malformed spoils the set. */
static void relay__a_malformed_binding_spoils_all(void **state)
{
	struct fixture *f = *state;
	struct maker k;

	begin(f, &k, "a.test", DNS_TYPE_SVCB);
	record(&k, "a.test", DNS_TYPE_SVCB, 60, BYTES("\0\1\0"));
	record(&k, "a.test", DNS_TYPE_SVCB, 60, BYTES("\0\1\0\0\1\0\0"));
	assert_int_equal(pass(f, &k), DNS_RELAY_MALFORMED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(relay__writes_the_answer_anew),
		TEST(relay__passes_no_strangers),
		TEST(relay__says_when_it_does_not_fit),
		TEST(relay__follows_aliases),
		TEST(relay__refuses_aliases_without_end),
		TEST(relay__cleans_service_bindings),
		TEST(relay__withholds_where_nobody_may_go),
		TEST(relay__a_malformed_binding_spoils_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
