/* SPDX-License-Identifier: Apache-2.0 */
/* test_dns.c - DNS messages: good ones, every truncation, hostile names */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/wire/dns_emit.h"

#define HEAD(flags, qd, an, ns, ar) "\x12\x34" flags qd an ns ar
#define N0			    "\0\0"
#define N1			    "\0\1"
#define N2			    "\0\2"
#define EXAMPLE			    "\3wWw\7example\3com\0"
#define OPT			    "\0\0\x29\x04\xd0\0\0\0\0\0\0"

static const char query[] = HEAD("\1\0", N1, N0, N0, N0) EXAMPLE "\0\1\0\1";
static const char query_opt[] =
	HEAD("\1\x10", N1, N0, N0, N1) EXAMPLE "\0\x1c\0\1" OPT;

/* www.example.com CNAME a.example.com, A 192.0.2.1 and AAAA; SOA; OPT */
static const char reply[] = HEAD("\x81\x80", N1, "\0\3", N1, N1) EXAMPLE
	"\0\1\0\1"
	"\xc0\x0c\0\5\0\1\0\0\0\x3c\0\4\1a\xc0\x10"
	"\xc0\x2d\0\1\0\1\x80\0\0\1\0\4\xc0\0\2\1"
	"\xc0\x2d\0\x1c\0\1\0\0\0\x1e\0\x10\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0"
	"\1"
	"\xc0\x10\0\6\0\1\0\0\3\x84\0\x1c\1n\xc0\x10\1h\xc0\x10\0\0\0\1"
	"\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\x0a" OPT;

#define BYTES(literal) span_of((literal), sizeof(literal) - 1)

static void dns__parses_queries(void **state)
{
	struct dns_message m;
	struct host host;

	(void)state;
	assert_int_equal(dns_parse_query(BYTES(query), &m), DNS_OK);
	assert_int_equal(m.id, 0x1234);
	assert_int_equal(m.type, DNS_TYPE_A);
	assert_int_equal(m.qclass, DNS_CLASS_IN);
	assert_false(m.edns);
	assert_int_equal(m.udp_size, DNS_UDP_MIN);
	assert_true(dns_name_to_host(&m.name, &host));
	assert_string_equal(host.text, "www.example.com");

	assert_int_equal(dns_parse_query(BYTES(query_opt), &m), DNS_OK);
	assert_true(m.edns);
	assert_int_equal(m.udp_size, 1232);
	assert_int_equal(m.type, DNS_TYPE_AAAA);
}

static void dns__walks_replies(void **state)
{
	static const uint16_t types[] = { DNS_TYPE_CNAME, DNS_TYPE_A,
					  DNS_TYPE_AAAA, DNS_TYPE_SOA,
					  DNS_TYPE_OPT };
	struct dns_name name, target;
	struct dns_message m;
	struct dns_record record;
	struct span before;
	char text[ADDR_TEXT_SIZE];
	struct addr a;
	uint32_t ttl_s;
	unsigned i = 0;

	(void)state;
	assert_int_equal(dns_parse_reply(BYTES(reply), &m), DNS_OK);
	assert_true(dns_name_from_host(SPAN("a.example.com"), &name));
	struct dns_walk w = DNS_WALK(&m);

	for (; dns_walk_next(&w, &m, &record); i++) {
		assert_int_equal(record.type, types[i]);
		if (i == 0) {
			assert_int_equal(record.ttl_s, 60);
			assert_true(dns_record_target(&m, &record, &before,
						      &target));
			assert_int_equal(before.len, 0);
			assert_true(dns_name_eq(&target, &name));
		} else if (i == 1) {
			assert_true(dns_name_eq(&record.name, &name));
			assert_int_equal(record.ttl_s, 0); /* the top bit */
			assert_true(dns_record_addr(&m, &record, &a));
			assert_string_equal(addr_text(&a, text, sizeof(text)),
					    "192.0.2.1");
		} else if (i == 2) {
			assert_true(dns_record_addr(&m, &record, &a));
			assert_string_equal(addr_text(&a, text, sizeof(text)),
					    "2001:db8::1");
		} else if (i == 3) {
			assert_int_equal(record.section, DNS_AUTHORITY);
			assert_true(
				dns_record_negative_ttl(&m, &record, &ttl_s));
			assert_int_equal(ttl_s, 10);
		}
	}
	assert_int_equal(i, ARRAY_LEN(types));
	assert_false(dns_walk_next(&w, &m, &record));
}

/* No prefix of a message is a message, and none is read past its end. */
static void cut_everywhere(struct span bytes,
			   enum dns_error (*parse)(struct span,
						   struct dns_message *))
{
	struct dns_message m;
	size_t len;
	char *exact;

	for (len = 0; len < bytes.len; len++) {
		exact = malloc(len ? len : 1);
		assert_non_null(exact);
		memcpy(exact, bytes.ptr, len);
		assert_int_not_equal(parse(span_of(exact, len), &m), DNS_OK);
		free(exact);
	}
	assert_int_equal(parse(bytes, &m), DNS_OK);
}

static void dns__refuses_every_truncation(void **state)
{
	(void)state;
	cut_everywhere(BYTES(query), dns_parse_query);
	cut_everywhere(BYTES(query_opt), dns_parse_query);
	cut_everywhere(BYTES(reply), dns_parse_reply);
}

#define ROW(literal, why)                        \
	{                                        \
		BYTES_INIT(literal), DNS_E_##why \
	}
#define BYTES_INIT(literal)                    \
	{                                      \
		(literal), sizeof(literal) - 1 \
	}

static const struct {
	struct span bytes;
	enum dns_error error;
} bad_queries[] = {
	/* a reply, other opcodes, wrong counts */
	ROW(HEAD("\x81\0", N1, N0, N0, N0) EXAMPLE "\0\1\0\1", DIRECTION),
	ROW(HEAD("\x29\0", N1, N0, N0, N0) EXAMPLE "\0\1\0\1", OPCODE),
	ROW(HEAD("\1\0", N0, N0, N0, N0), COUNT),
	ROW(HEAD("\1\0", N2, N0, N0, N0) EXAMPLE "\0\1\0\1" EXAMPLE "\0\1\0\1",
	    COUNT),
	ROW(HEAD("\1\0", N1, N1, N0, N0) EXAMPLE "\0\1\0\1"
						 "\0\0\1\0\1\0\0\0\0\0\0",
	    COUNT),
	ROW(HEAD("\1\0", N1, N0, N1, N0) EXAMPLE "\0\1\0\1"
						 "\0\0\1\0\1\0\0\0\0\0\0",
	    COUNT),
	ROW(HEAD("\1\0", N1, N0, N0, "\xff\xff") EXAMPLE "\0\1\0\1", COUNT),
	/* names: compressed question, pointer to itself, reserved bits */
	ROW(HEAD("\1\0", N1, N0, N0, N0) "\1a\xc0\x04\0\1\0\1", NAME),
	ROW(HEAD("\1\0", N1, N0, N0, N0) "\xc0\x0c\0\1\0\1", NAME),
	ROW(HEAD("\1\0", N1, N0, N0, N0) "\x41"
					 "abc\0\0\1\0\1",
	    NAME),
	ROW(HEAD("\1\0", N1, N0, N0, N0) "\x80\0\0\1\0\1", NAME),
	/* additional: pointer loop, forward pointer, bad OPT, two OPT */
	ROW(HEAD("\1\0", N1, N0, N0, N1) EXAMPLE "\0\1\0\1"
						 "\xc0\x21\0\1\0\1\0\0\0\0\0\0",
	    NAME),
	ROW(HEAD("\1\0", N1, N0, N0, N1) EXAMPLE
	    "\0\1\0\1"
	    "\1a\xc0\x21\0\1\0\1\0\0\0\0\0\0",
	    NAME),
	ROW(HEAD("\1\0", N1, N0, N0, N1) EXAMPLE "\0\1\0\1"
						 "\xc0\x30\0\1\0\1\0\0\0\0\0\0",
	    NAME),
	ROW(HEAD("\1\0", N1, N0, N0, N1) EXAMPLE
	    "\0\1\0\1"
	    "\0\0\x29\x04\xd0\0\0\0\0\0\3\0\1\0",
	    OPT),
	ROW(HEAD("\1\0", N1, N0, N0, N1) EXAMPLE
	    "\0\1\0\1"
	    "\0\0\x29\x04\xd0\0\0\0\0\0\4\0\1\0\1",
	    OPT),
	ROW(HEAD("\1\0", N1, N0, N0, N1) EXAMPLE
	    "\0\1\0\1"
	    "\1x\0\0\x29\x04\xd0\0\0\0\0\0\0",
	    OPT),
	ROW(HEAD("\1\0", N1, N0, N0, N2) EXAMPLE "\0\1\0\1" OPT OPT, OPT),
	/* data beyond the end, bytes after it */
	ROW(HEAD("\1\0", N1, N0, N0, N1) EXAMPLE "\0\1\0\1"
						 "\0\0\1\0\1\0\0\0\0\0\1",
	    RECORD),
	ROW(HEAD("\1\0", N1, N0, N0, N0) EXAMPLE "\0\1\0\1x", TRAILING),
	ROW("", SHORT),
};

static void dns__refuses_bad_queries(void **state)
{
	struct dns_message m;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad_queries); i++)
		assert_int_equal(dns_parse_query(bad_queries[i].bytes, &m),
				 bad_queries[i].error);
	assert_string_equal(dns_error_text(DNS_E_TRAILING),
			    "bytes follow the last record");
}

static void dns__ignores_records_of_truncated_replies(void **state)
{
	static const char cut[] =
		HEAD("\x83\x80", N1, "\0\7", N0, N0) EXAMPLE "\0\1\0\1\xc0";
	struct dns_message m;
	struct dns_record record;

	(void)state;
	assert_int_equal(dns_parse_reply(BYTES(cut), &m), DNS_OK);
	assert_true(m.flags & DNS_FLAG_TC);
	struct dns_walk w = DNS_WALK(&m);
	assert_false(dns_walk_next(&w, &m, &record));
}

/* A staircase of pointers, each to the one before it. */
static void dns__bounds_pointer_chains(void **state)
{
	enum { BASE = DNS_HEAD_SIZE };
	char bytes[BASE + 2 + 2 * 200] = { 0 };
	struct dns_name name;
	size_t i, at;

	(void)state;
	for (i = 1; i <= 200; i++) {
		bytes[BASE + 2 * i] = (char)(0xc0 | (BASE + 2 * (i - 1)) >> 8);
		bytes[BASE + 2 * i + 1] = (char)(BASE + 2 * (i - 1));
	}
	at = BASE + 2 * 60;
	assert_true(dns_name_read(BYTES(bytes), &at, &name));
	assert_int_equal(at, BASE + 2 * 60 + 2);
	assert_int_equal(name.len, 1);
	at = BASE + 2 * 199;
	assert_false(dns_name_read(BYTES(bytes), &at, &name));
	assert_int_equal(at, BASE + 2 * 199);

	/* nor into the header */
	bytes[BASE + 3] = BASE - 1;
	at = BASE + 2;
	assert_false(dns_name_read(BYTES(bytes), &at, &name));
}

static void dns__bounds_name_length(void **state)
{
	char host[HOST_MAX + 3];
	struct dns_name name;
	struct host back;
	char wire[300];
	size_t at = 0, i;

	(void)state;
	memset(host, 'a', sizeof(host));
	for (i = 63; i < sizeof(host); i += 64)
		host[i] = '.';
	/* 63.63.63.61 = 253 */
	assert_true(dns_name_from_host(span_of(host, 253), &name));
	assert_int_equal(name.len, 255);
	assert_true(dns_name_to_host(&name, &back));
	assert_memory_equal(back.text, host, 253);
	assert_false(dns_name_from_host(span_of(host, 254), &name));

	memcpy(wire, name.wire, 255);
	assert_true(dns_name_read(span_of(wire, 255), &at, &name));
	/* one byte more in the last label */
	wire[192]++;
	wire[254] = 'a';
	wire[255] = 0;
	at = 0;
	assert_false(dns_name_read(span_of(wire, 256), &at, &name));
}

static const struct span no_hosts[] = {
	SPAN_INIT("\0"),	   /* the root */
	SPAN_INIT("\3a.b\3com\0"), /* a dot inside a label */
	SPAN_INIT("\1*\3com\0"),
	SPAN_INIT("\3a\0b\3com\0"),
	SPAN_INIT("\4a b \3com\0"),
	SPAN_INIT("\1"
		  "1\1"
		  "2\1"
		  "3\1"
		  "4\0"),
	SPAN_INIT("\4%41a\3com\0"),
};

static void dns__knows_what_is_no_host(void **state)
{
	struct dns_name name;
	struct host host;
	size_t i, at;

	(void)state;
	for (i = 0; i < ARRAY_LEN(no_hosts); i++) {
		at = 0;
		assert_true(dns_name_read(no_hosts[i], &at, &name));
		assert_false(dns_name_to_host(&name, &host));
	}
	assert_false(dns_name_from_host(SPAN(""), &name));
	assert_false(dns_name_from_host(SPAN("a..b"), &name));
	assert_false(dns_name_from_host(SPAN("a.b."), &name));
	assert_false(dns_name_from_host(SPAN(".a"), &name));
}

static void dns__prints_names(void **state)
{
	struct dns_name name;
	char text[256], tiny[12];
	size_t at = 0;

	(void)state;
	assert_true(dns_name_read(SPAN("\6a.\0\\\x7f"
				       "b\3com\0"),
				  &at, &name));
	assert_string_equal(dns_name_text(&name, text, sizeof(text)),
			    "a\\046\\000\\092\\127b.com");
	assert_string_equal(dns_name_text(&name, tiny, sizeof(tiny)),
			    "a\\046...");
	at = 0;
	assert_true(dns_name_read(SPAN("\0"), &at, &name));
	assert_string_equal(dns_name_text(&name, text, sizeof(text)), ".");
}

static void dns__emits_queries(void **state)
{
	struct dns_name name;
	struct dns_message m;
	uint8_t bytes[512];
	size_t len;

	(void)state;
	assert_true(dns_name_from_host(SPAN("example.com"), &name));
	len = dns_emit_query(7, &name, DNS_TYPE_MX, 1232, bytes, sizeof(bytes));
	assert_int_equal(dns_parse_query(span_of(bytes, len), &m), DNS_OK);
	assert_int_equal(m.id, 7);
	assert_int_equal(m.type, DNS_TYPE_MX);
	assert_true(m.edns && m.flags & DNS_FLAG_RD);

	len = dns_emit_query(7, &name, DNS_TYPE_MX, 0, bytes, sizeof(bytes));
	assert_int_equal(dns_parse_query(span_of(bytes, len), &m), DNS_OK);
	assert_false(m.edns);
	assert_int_equal(dns_emit_query(7, &name, 1, 0, bytes, len - 1), 0);
}

static struct addr addr_of(const char *text)
{
	struct addr a;

	assert_true(addr_parse(span_str(text), &a));
	return a;
}

static void dns__emits_answers_of_the_family(void **state)
{
	const struct addr addrs[] = { addr_of("192.0.2.1"),
				      addr_of("2001:db8::1"),
				      addr_of("192.0.2.2") };
	const struct dns_reply r = { .addrs = addrs,
				     .addr_count = 3,
				     .ttl_s = 9 };
	struct dns_message q, m;
	struct dns_record record;
	uint8_t bytes[512];
	struct addr a;
	size_t len;

	(void)state;
	assert_int_equal(dns_parse_query(BYTES(query), &q), DNS_OK);
	len = dns_emit_reply(&q, &r, bytes, sizeof(bytes));
	assert_int_equal(dns_parse_reply(span_of(bytes, len), &m), DNS_OK);
	assert_int_equal(m.id, 0x1234);
	assert_int_equal(m.flags, DNS_FLAG_QR | DNS_FLAG_RD | DNS_FLAG_RA);
	assert_int_equal(m.counts[DNS_ANSWER], 2);
	assert_false(m.edns);
	/* the case of the question comes back (0x20 clients) */
	assert_memory_equal(m.name.wire, EXAMPLE, m.name.len);
	struct dns_walk w = DNS_WALK(&m);
	assert_true(dns_walk_next(&w, &m, &record));
	assert_int_equal(record.ttl_s, 9);
	assert_true(dns_record_addr(&m, &record, &a));
	assert_true(addr_eq_ip(&a, &addrs[0]));
	assert_true(dns_walk_next(&w, &m, &record));
	assert_true(dns_record_addr(&m, &record, &a));
	assert_true(addr_eq_ip(&a, &addrs[2]));
}

static void dns__emits_reasons(void **state)
{
	char long_text[400];
	struct dns_reply r = { .rcode = DNS_NXDOMAIN,
			       .ede = DNS_EDE_FILTERED,
			       .ede_text = SPAN("denied by rule 3\n") };
	static const char option[] = "\0\x0f\0\x13\0\x11"
				     "denied by rule 3?";
	struct dns_message q, m;
	uint8_t bytes[512];
	size_t len;

	(void)state;
	assert_int_equal(dns_parse_query(BYTES(query_opt), &q), DNS_OK);
	len = dns_emit_reply(&q, &r, bytes, sizeof(bytes));
	assert_int_equal(dns_parse_reply(span_of(bytes, len), &m), DNS_OK);
	assert_int_equal(m.rcode, DNS_NXDOMAIN);
	assert_true(m.edns);
	assert_true(m.flags & DNS_FLAG_CD);
	assert_false(m.flags & DNS_FLAG_AA);
	assert_memory_equal(bytes + len - (sizeof(option) - 1), option,
			    sizeof(option) - 1);

	/* too long a sentence is cut, and says so */
	memset(long_text, 'x', sizeof(long_text));
	r.ede_text = span_of(long_text, sizeof(long_text));
	len = dns_emit_reply(&q, &r, bytes, sizeof(bytes));
	assert_int_equal(dns_parse_reply(span_of(bytes, len), &m), DNS_OK);
	assert_memory_equal(bytes + len - 5, "xx...", 5);

	/* without OPT in the question there is no place for it */
	assert_int_equal(dns_parse_query(BYTES(query), &q), DNS_OK);
	len = dns_emit_reply(&q, &r, bytes, sizeof(bytes));
	assert_int_equal(len, sizeof(query) - 1);

	/* an extended code */
	assert_int_equal(dns_parse_query(BYTES(query_opt), &q), DNS_OK);
	r = (struct dns_reply){ .rcode = DNS_BADVERS };
	len = dns_emit_reply(&q, &r, bytes, sizeof(bytes));
	assert_int_equal(dns_parse_reply(span_of(bytes, len), &m), DNS_OK);
	assert_int_equal(m.rcode, DNS_BADVERS);
}

static void dns__says_when_an_answer_does_not_fit(void **state)
{
	struct addr addrs[32];
	struct dns_reply r = { .addrs = addrs, .addr_count = 32 };
	struct dns_message q, m;
	uint8_t bytes[2048];
	size_t len;
	unsigned i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(addrs); i++) {
		addrs[i] = addr_of("192.0.2.1");
		addrs[i].ip[15] = (uint8_t)i;
	}
	assert_int_equal(dns_parse_query(BYTES(query), &q), DNS_OK);
	len = dns_emit_reply(&q, &r, bytes, DNS_UDP_MIN);
	assert_int_equal(dns_parse_reply(span_of(bytes, len), &m), DNS_OK);
	assert_true(m.flags & DNS_FLAG_TC);
	assert_int_equal(len, sizeof(query) - 1);

	/* 33 + 32 * 16 = 545 */
	len = dns_emit_reply(&q, &r, bytes, 545);
	assert_int_equal(dns_parse_reply(span_of(bytes, len), &m), DNS_OK);
	assert_int_equal(m.counts[DNS_ANSWER], 32);
	assert_int_equal(len, 545);
	len = dns_emit_reply(&q, &r, bytes, 544);
	assert_int_equal(len, sizeof(query) - 1);
	assert_int_equal(dns_emit_reply(&q, &r, bytes, DNS_UDP_MIN - 1), 0);
}

/* Any byte may be any byte: nothing crashes, and what parses can be walked. */
static void dns__survives_noise(void **state)
{
	char bytes[sizeof(reply)];
	struct dns_message m;
	struct dns_record record;
	struct dns_name target;
	struct span before;
	unsigned round, i, at;
	uint64_t noise = 1;

	(void)state;
	for (round = 0; round < 200000; round++) {
		memcpy(bytes, reply, sizeof(bytes));
		for (i = 0; i < 1 + round % 4; i++) {
			noise = noise * 6364136223846793005u + 1;
			at = (unsigned)(noise >> 33) % sizeof(bytes);
			bytes[at] = (char)(noise >> 24);
		}
		if (dns_parse_reply(BYTES(bytes), &m) != DNS_OK)
			continue;
		struct dns_walk w = DNS_WALK(&m);
		while (dns_walk_next(&w, &m, &record))
			(void)!dns_record_target(&m, &record, &before, &target);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dns__parses_queries),
		cmocka_unit_test(dns__walks_replies),
		cmocka_unit_test(dns__refuses_every_truncation),
		cmocka_unit_test(dns__refuses_bad_queries),
		cmocka_unit_test(dns__ignores_records_of_truncated_replies),
		cmocka_unit_test(dns__bounds_pointer_chains),
		cmocka_unit_test(dns__bounds_name_length),
		cmocka_unit_test(dns__knows_what_is_no_host),
		cmocka_unit_test(dns__prints_names),
		cmocka_unit_test(dns__emits_queries),
		cmocka_unit_test(dns__emits_answers_of_the_family),
		cmocka_unit_test(dns__emits_reasons),
		cmocka_unit_test(dns__says_when_an_answer_does_not_fit),
		cmocka_unit_test(dns__survives_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
