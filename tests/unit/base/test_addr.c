/* SPDX-License-Identifier: Apache-2.0 */
/* test_addr.c - kinds of addresses, and reading and printing them */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "src/base/addr.h"

static const struct {
	const char *text;
	enum addr_kind kind;
	const char *source;
} kinds[] = {
#define KIND(text, kind, source) { text, ADDR_##kind, source },
#include "tests/unit/base/addr_kinds.def"
#undef KIND
};

static struct addr parse(const char *text)
{
	struct addr a;

	if (!addr_parse(span_str(text), &a))
		fail_msg("not parsed: %s", text);
	return a;
}

static void addr__kinds(void **state)
{
	struct addr a;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(kinds); i++) {
		a = parse(kinds[i].text);
		if (addr_kind(&a) != kinds[i].kind)
			fail_msg("%s (%s): found %s, expected %s",
				 kinds[i].text, kinds[i].source,
				 addr_kind_name(addr_kind(&a)),
				 addr_kind_name(kinds[i].kind));
	}
	assert_int_equal(ADDR_UNSPECIFIED, 0);
	for (i = 0; i < ADDR_KIND_NUM; i++)
		assert_true(strlen(addr_kind_name((enum addr_kind)i)) > 3);
	assert_string_equal(addr_kind_name(ADDR_KIND_NUM), "unknown");
}

static void addr__refused_texts(void **state)
{
	static const struct span rows[] = {
		SPAN_INIT(""),
		SPAN_INIT(" 1.2.3.4"),
		SPAN_INIT("1.2.3.4 "),
		SPAN_INIT("1.2.3"),
		SPAN_INIT("127.1"),
		SPAN_INIT("1.2.3.4.5"),
		SPAN_INIT("1.2.3.256"),
		SPAN_INIT("01.2.3.4"),
		SPAN_INIT("0x7f.0.0.1"),
		SPAN_INIT("2130706433"),
		SPAN_INIT("1.2.3.4\0"),
		SPAN_INIT("1.2.3.4/8"),
		SPAN_INIT("1.2.3.4:80"),
		SPAN_INIT("[1.2.3.4]"),
		SPAN_INIT("[]"),
		SPAN_INIT("[::1"),
		SPAN_INIT("::1]"),
		SPAN_INIT("[[::1]]"),
		SPAN_INIT(":::"),
		SPAN_INIT("1::2::3"),
		SPAN_INIT("12345::"),
		SPAN_INIT("::1%lo"),
		SPAN_INIT("fe80::1%25eth0"),
		SPAN_INIT("1:2:3:4:5:6:7:8:9"),
		SPAN_INIT("0000:0000:0000:0000:0000:0000:0000:0000:0000:0000"),
	};
	struct addr a = { .port = 7 };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		if (addr_parse(rows[i], &a))
			fail_msg("accepted: %s", rows[i].ptr);
		assert_int_equal(a.port, 7);
	}
}

static void addr__text_round_trip(void **state)
{
	static const char *const rows[] = {
		"1.2.3.4", "255.255.255.255", "::",
		"::1",	   "2001:db8::1",     "64:ff9b::102:304",
	};
	char text[ADDR_TEXT_SIZE];
	struct addr a;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		a = parse(rows[i]);
		assert_string_equal(addr_text(&a, text, sizeof(text)), rows[i]);
	}
	a = parse("[2001:DB8:0::1]");
	assert_string_equal(addr_text(&a, text, sizeof(text)), "2001:db8::1");
	a = parse("::ffff:1.2.3.4");
	assert_true(addr_is_v4(&a));
	assert_string_equal(addr_text(&a, text, sizeof(text)), "1.2.3.4");
}

static void addr__random_round_trip(void **state)
{
	char text[ADDR_TEXT_SIZE];
	struct addr a, b;
	int round, i;

	(void)state;
	srandom(5);
	for (round = 0; round < 5000; round++) {
		a = (struct addr){ .port = (uint16_t)(1 + random() % 65535) };
		for (i = 0; i < 16; i++)
			a.ip[i] = (uint8_t)(random() % 3 ? random() : 0);
		addr_text(&a, text, sizeof(text));
		assert_true(addr_parse(span_str(text), &b));
		assert_true(addr_eq_ip(&a, &b));
		addr_text_port(&a, text, sizeof(text));
		assert_true(addr_parse_port(span_str(text), 0, &b));
		assert_true(addr_eq_ip(&a, &b));
		assert_int_equal(a.port, b.port);
	}
}

static void addr__parse_port(void **state)
{
	static const struct {
		const char *text, *printed; /* NULL: refused */
	} rows[] = {
		{ "1.2.3.4", "1.2.3.4:53" },
		{ "1.2.3.4:1", "1.2.3.4:1" },
		{ "1.2.3.4:65535", "1.2.3.4:65535" },
		{ "1.2.3.4:65536", NULL },
		{ "1.2.3.4:0", NULL },
		{ "1.2.3.4:", NULL },
		{ "1.2.3.4:+1", NULL },
		{ "1.2.3.4: 1", NULL },
		{ "1.2.3.4:1:2", NULL },
		{ ":53", NULL },
		{ "", NULL },
		{ "::1", "[::1]:53" },
		{ "[::1]", "[::1]:53" },
		{ "[::1]:80", "[::1]:80" },
		{ "[::1]80", NULL },
		{ "[::1]:", NULL },
		{ "[1.2.3.4]:80", NULL },
		/* an address, never an address and a port */
		{ "::1:80", "[::0.1.0.128]:53" },
		{ "2001:db8::1:80", "[2001:db8::1:80]:53" },
		{ "1:2:3:4:5:6:7:8:80", NULL },
		{ "::ffff:1.2.3.4:80", NULL },
		{ "[::ffff:1.2.3.4]:80", "1.2.3.4:80" },
		{ "example.com:80", NULL },
	};
	char text[ADDR_TEXT_SIZE];
	struct addr a;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		a = (struct addr){ .port = 7 };
		if (!addr_parse_port(span_str(rows[i].text), 53, &a)) {
			if (rows[i].printed)
				fail_msg("refused: %s", rows[i].text);
			assert_int_equal(a.port, 7);
			continue;
		}
		addr_text_port(&a, text, sizeof(text));
		assert_string_equal(text, rows[i].printed ? rows[i].printed
							  : "a refusal");
	}
}

static void addr__longest_text_fits(void **state)
{
	struct addr a = { .port = 65535, .scope_id = UINT32_MAX };
	char text[ADDR_TEXT_SIZE];

	(void)state;
	memset(a.ip, 0xff, sizeof(a.ip));
	addr_text_port(&a, text, sizeof(text));
	assert_string_equal(text, "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
				  "%4294967295]:65535");
}

static void cidr__parse_and_has(void **state)
{
	static const struct {
		const char *cidr, *printed, *in, *out;
	} rows[] = {
		{ "10.0.0.0/8", "10.0.0.0/8", "10.255.0.1", "11.0.0.0" },
		{ "10.1.2.3/8", "10.0.0.0/8", "10.0.0.1", "9.255.255.255" },
		{ "192.168.1.77/31", "192.168.1.76/31", "192.168.1.77",
		  "192.168.1.78" },
		{ "1.2.3.4", "1.2.3.4/32", "1.2.3.4", "1.2.3.5" },
		{ "1.2.3.4/32", "1.2.3.4/32", "1.2.3.4", "1.2.3.5" },
		{ "0.0.0.0/0", "0.0.0.0/0", "8.8.8.8", "2001:db8::1" },
		{ "100.64.0.0/10", "100.64.0.0/10", "100.127.0.0",
		  "100.128.0.0" },
		{ "2001:db8::/32", "2001:db8::/32",
		  "2001:db8:ffff::", "2001:db9::" },
		{ "2001:db8::1/33", "2001:db8::/33",
		  "2001:db8:7fff::", "2001:db8:8000::" },
		{ "::1", "::1/128", "::1", "::2" },
		{ "[::1]/128", "::1/128", "::1", "::" },
		{ "::ffff:10.0.0.0/104", "10.0.0.0/8", "10.9.9.9", "11.0.0.1" },
	};
	char text[ADDR_TEXT_SIZE];
	struct addr in, out;
	struct cidr c;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		assert_true(cidr_parse(span_str(rows[i].cidr), &c));
		assert_string_equal(cidr_text(&c, text, sizeof(text)),
				    rows[i].printed);
		in = parse(rows[i].in);
		out = parse(rows[i].out);
		assert_true(cidr_has(&c, &in));
		assert_false(cidr_has(&c, &out));
	}
	/* bits only, as the header says */
	in = parse("1.2.3.4");
	assert_true(cidr_parse(SPAN("::/0"), &c));
	assert_true(cidr_has(&c, &in));
}

static void cidr__refused(void **state)
{
	static const char *const rows[] = {
		"",	    "/8",	    "10.0.0.0/",   "10.0.0.0/33",
		"10.0.0/8", "10.0.0.0/8/8", "10.0.0.0/-1", "10.0.0.0/ 8",
		"::/129",   "a/8",	    "10.0.0.0/8x", "1.2.3.4:80/8",
	};
	struct cidr c = { .prefix = 7 };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		if (cidr_parse(span_str(rows[i]), &c))
			fail_msg("accepted: %s", rows[i]);
		assert_int_equal(c.prefix, 7);
	}
}

static void addr__sockaddr_round_trip(void **state)
{
	struct sockaddr_storage sa;
	struct addr a, b;

	(void)state;
	a = parse("1.2.3.4");
	a.port = 80;
	assert_int_equal(addr_to_sockaddr(&a, &sa), sizeof(struct sockaddr_in));
	assert_int_equal(sa.ss_family, AF_INET);
	assert_true(addr_from_sockaddr((struct sockaddr *)&sa, &b));
	assert_memory_equal(&a, &b, sizeof(a));

	a = parse("fe80::1");
	a.port = 443;
	a.scope_id = 3;
	assert_int_equal(addr_to_sockaddr(&a, &sa),
			 sizeof(struct sockaddr_in6));
	assert_int_equal(sa.ss_family, AF_INET6);
	assert_true(addr_from_sockaddr((struct sockaddr *)&sa, &b));
	assert_memory_equal(&a, &b, sizeof(a));

	sa.ss_family = AF_UNIX;
	assert_false(addr_from_sockaddr((struct sockaddr *)&sa, &b));
	assert_memory_equal(&a, &b, sizeof(a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addr__kinds),
		cmocka_unit_test(addr__refused_texts),
		cmocka_unit_test(addr__text_round_trip),
		cmocka_unit_test(addr__random_round_trip),
		cmocka_unit_test(addr__parse_port),
		cmocka_unit_test(addr__longest_text_fits),
		cmocka_unit_test(cidr__parse_and_has),
		cmocka_unit_test(cidr__refused),
		cmocka_unit_test(addr__sockaddr_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
