/* SPDX-License-Identifier: Apache-2.0 */
/* test_host.c - names, authorities and label boundaries */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "src/base/attrib.h"
#include "src/wire/host.h"

#define A63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define NAME_253                \
	A63 "." A63 "." A63 "." \
	    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct {
	const char *text, *canonical;
} good_names[] = {
	{ "example.com", "example.com" },
	{ "API.Example.COM", "api.example.com" },
	{ "example.com.", "example.com" },
	{ "localhost", "localhost" },
	{ "a", "a" },
	{ "_dmarc.example.com", "_dmarc.example.com" },
	{ "xn--bcher-kva.example", "xn--bcher-kva.example" },
	{ "r1---sn-4g5e.example.com", "r1---sn-4g5e.example.com" },
	{ "1.2.3.4.example", "1.2.3.4.example" },
	{ "127.0.0.1x", "127.0.0.1x" },
	{ "0xyz", "0xyz" },
	{ "a.0b", "a.0b" },
	{ A63 ".com", A63 ".com" },
	{ NAME_253, NAME_253 },
	{ NAME_253 ".", NAME_253 },
};

static const struct span bad_names[] = {
	SPAN_INIT(""),
	SPAN_INIT("."),
	SPAN_INIT(".."),
	SPAN_INIT("a.."),
	SPAN_INIT(".a"),
	SPAN_INIT("a..b"),
	SPAN_INIT("a b"),
	SPAN_INIT(" a"),
	SPAN_INIT("a\t"),
	SPAN_INIT("a/b"),
	SPAN_INIT("a%2eb"),
	SPAN_INIT("a:1"),
	SPAN_INIT("a@b"),
	SPAN_INIT("*.example.com"),
	SPAN_INIT("-a.com"),
	SPAN_INIT("a-.com"),
	SPAN_INIT("a.com-"),
	SPAN_INIT("evil.com\0.trusted.com"), /* field case 4 */
	SPAN_INIT("b\xc3\xbc"
		  "cher.example"),
	SPAN_INIT("1.2.3.4"),
	SPAN_INIT("1.2.3.4."),
	SPAN_INIT("127.1"),
	SPAN_INIT("2130706433"),
	SPAN_INIT("0x7f.1"),
	SPAN_INIT("0x7f000001"),
	SPAN_INIT("a.0X7F"),
	SPAN_INIT("0x"),
	SPAN_INIT("example.0"),
	SPAN_INIT("::1"),
	SPAN_INIT("[::1]"),
	SPAN_INIT(A63 "a.com"),
	SPAN_INIT(NAME_253 "a"),
	SPAN_INIT(NAME_253 ".."),
};

static void host__good_names(void **state)
{
	struct host h;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good_names); i++) {
		assert_true(host_canon(span_str(good_names[i].text), &h));
		assert_string_equal(h.text, good_names[i].canonical);
		assert_int_equal(h.len, strlen(h.text));
		/* canonical is a fixed point */
		assert_true(host_canon(host_span(&h), &h));
		assert_string_equal(h.text, good_names[i].canonical);
	}
}

static void host__bad_names_change_nothing(void **state)
{
	struct host h = { "before", 6 };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad_names); i++) {
		if (host_canon(bad_names[i], &h))
			fail_msg("accepted: %s", bad_names[i].ptr);
		assert_string_equal(h.text, "before");
		assert_int_equal(h.len, 6);
	}
}

/* Every byte value, alone in the middle of a label. */
static void host__every_byte(void **state)
{
	struct span name = SPAN("axb.example");
	char text[16];
	struct host h;
	bool fine;
	int c;

	(void)state;
	for (c = 0; c < 256; c++) {
		memcpy(text, name.ptr, name.len);
		text[1] = (char)c;
		fine = c && strchr("abcdefghijklmnopqrstuvwxyz0123456789-_."
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
				   c);
		assert_int_equal(host_canon(span_of(text, name.len), &h), fine);
	}
}

/* host is "" when the authority is an address. */
static const struct {
	const char *text, *host, *address;
	uint16_t port;
	bool given;
} good_authorities[] = {
	{ "example.com", "example.com", NULL, 443, false },
	{ "Example.com:8443", "example.com", NULL, 8443, true },
	{ "example.com.:1", "example.com", NULL, 1, true },
	{ "example.com:65535", "example.com", NULL, 65535, true },
	{ "192.0.2.1", "", "192.0.2.1", 443, false },
	{ "192.0.2.1:80", "", "192.0.2.1", 80, true },
	{ "[2001:db8::1]", "", "2001:db8::1", 443, false },
	{ "[2001:DB8::1]:80", "", "2001:db8::1", 80, true },
	{ "[::ffff:192.0.2.1]:80", "", "192.0.2.1", 80, true },
};

static const char *const bad_authorities[] = {
	"",
	":",
	":80",
	"a:",
	"a:0",
	"a:00080",
	"a:080",
	"a:65536",
	"a:99999",
	"a:100000",
	"a:+80",
	"a: 80",
	"a:80 ",
	"a:8o",
	"a:80:80",
	"user@a",
	"user:pw@a:80",
	"a,b",
	"a/b",
	"::1",
	"2001:db8::1:80",
	"[::1",
	"[::1]80",
	"[::1]:",
	"[::1]:0",
	"[::1%eth0]",
	"[::1%25eth0]",
	"[v1.x]",
	"[1.2.3.4]",
	"[example.com]",
	"[]",
	"[]:80",
	"1.2.3.4.5",
	"1.2.3",
	"01.2.3.4",
	"1.2.3.4.",
};

static void authority__good(void **state)
{
	char text[ADDR_TEXT_SIZE];
	struct authority a;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good_authorities); i++) {
		assert_true(authority_parse(span_str(good_authorities[i].text),
					    443, &a));
		assert_string_equal(a.host.text, good_authorities[i].host);
		assert_int_equal(a.is_address,
				 good_authorities[i].address != NULL);
		if (a.is_address) {
			addr_text(&a.address, text, sizeof(text));
			assert_string_equal(text, good_authorities[i].address);
			assert_int_equal(a.address.port,
					 good_authorities[i].port);
		}
		assert_int_equal(a.port, good_authorities[i].port);
		assert_int_equal(a.port_given, good_authorities[i].given);
	}
}

static void authority__bad(void **state)
{
	struct authority a = { .port = 7 };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad_authorities); i++) {
		if (authority_parse(span_str(bad_authorities[i]), 80, &a))
			fail_msg("accepted: %s", bad_authorities[i]);
		assert_int_equal(a.port, 7);
	}
	assert_false(authority_parse(SPAN("a\0b:80"), 80, &a));
	assert_false(authority_parse(SPAN_NONE, 80, &a));
}

/* Field cases 6 and 7: boundaries only, any depth, not the name itself. */
static void host__is_below(void **state)
{
	static const struct {
		const char *name, *suffix;
		bool below;
	} rows[] = {
		{ "a.trusted.net", "trusted.net", true },
		{ "a.b.trusted.net", "trusted.net", true },
		{ "a.b.c.d.e.trusted.net", "trusted.net", true },
		{ "trusted.net", "trusted.net", false },
		{ "nottrusted.net", "trusted.net", false },
		{ ".trusted.net", "trusted.net", false },
		{ "trusted.net.evil.com", "trusted.net", false },
		{ "net", "trusted.net", false },
		{ "a.b", "", false },
		{ "", "", false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(host_is_below(span_str(rows[i].name),
					       span_str(rows[i].suffix)),
				 rows[i].below);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host__good_names),
		cmocka_unit_test(host__bad_names_change_nothing),
		cmocka_unit_test(host__every_byte),
		cmocka_unit_test(authority__good),
		cmocka_unit_test(authority__bad),
		cmocka_unit_test(host__is_below),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
