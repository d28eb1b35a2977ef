/* SPDX-License-Identifier: Apache-2.0 */
/* test_foreign.c - the table of resolvers of others */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "policy/foreign.h"
#include "src/base/err.h"
#include "src/wire/host.h"

static bool is_address(const char *text)
{
	struct addr a;

	assert_true(addr_parse(span_str(text), &a));
	return foreign_is_address(&a);
}

/* Every row is what it says: a canonical name, a prefix without loose bits. */
static void foreign__the_table_is_sound(void **state)
{
	static const struct {
		const char *text;
		bool is_host;
	} rows[] = {
#define FOREIGN_HOST(name)  { name, true },
#define FOREIGN_NET(prefix) { prefix, false },
#include "policy/foreign.def"
#undef FOREIGN_HOST
#undef FOREIGN_NET
	};
	char text[ADDR_TEXT_SIZE + 8], below[128];
	struct host host;
	struct cidr cidr;
	struct addr a = { 0 };
	unsigned i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		for (k = 0; k < i; k++)
			assert_string_not_equal(rows[i].text, rows[k].text);
		if (rows[i].is_host) {
			assert_true(host_canon(span_str(rows[i].text), &host));
			assert_string_equal(host.text, rows[i].text);
			assert_true(foreign_is_host(host_span(&host)));
			(void)snprintf(below, sizeof(below), "a.%s",
				       rows[i].text);
			assert_true(foreign_is_host(span_str(below)));
			continue;
		}
		assert_true(cidr_parse(span_str(rows[i].text), &cidr));
		assert_string_equal(cidr_text(&cidr, text, sizeof(text)),
				    rows[i].text);
		memcpy(a.ip, cidr.ip, sizeof(a.ip));
		assert_true(foreign_is_address(&a));
		assert_int_equal(addr_kind(&a), ADDR_GLOBAL);
		for (k = cidr.prefix; k < 128; k++) /* its last one */
			a.ip[k / 8] |= (uint8_t)(0x80u >> k % 8);
		assert_true(foreign_is_address(&a));
	}
}

static void foreign__knows_hosts_and_what_is_below(void **state)
{
	(void)state;
	assert_true(foreign_is_host(SPAN("dns.google")));
	assert_true(foreign_is_host(SPAN("abc123.dns.nextdns.io")));
	assert_false(foreign_is_host(SPAN("google")));
	assert_false(foreign_is_host(SPAN("notdns.google")));
	assert_false(foreign_is_host(SPAN("dns.google.example")));
	assert_false(foreign_is_host(SPAN("example")));
}

static void foreign__knows_addresses(void **state)
{
	(void)state;
	assert_true(is_address("8.8.8.8"));
	assert_true(is_address("1.1.1.3"));
	assert_true(is_address("2606:4700:4700::1111"));
	assert_true(is_address("64:ff9b::808:808"));
	assert_false(is_address("8.8.8.9"));
	assert_false(is_address("1.1.1.4"));
	assert_false(is_address("64:ff9b::808:809"));
	assert_false(is_address("2001:db8::1"));
	assert_false(is_address("10.0.0.1"));
}

static void foreign__knows_requests(void **state)
{
	(void)state;
	assert_true(
		foreign_is_request(SPAN("/dns-query"), SPAN_NONE, SPAN_NONE));
	assert_true(foreign_is_request(SPAN("/dns-query/abc"), SPAN_NONE,
				       SPAN_NONE));
	assert_true(foreign_is_request(
		SPAN("/"), SPAN("Application/DNS-Message"), SPAN_NONE));
	assert_true(foreign_is_request(
		SPAN("/x"), SPAN_NONE,
		SPAN("text/html, application/dns-message;q=0.5")));
	assert_true(foreign_is_request(SPAN("/resolve"), SPAN_NONE,
				       SPAN("application/dns-json")));
	assert_false(foreign_is_request(SPAN("/dns-querying"),
					SPAN("application/json"),
					SPAN("*/*, text/html")));
	assert_false(foreign_is_request(SPAN("/docs/dns-query"), SPAN_NONE,
					SPAN_NONE));
	assert_false(foreign_is_request(SPAN_NONE, SPAN_NONE, SPAN_NONE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(foreign__the_table_is_sound),
		cmocka_unit_test(foreign__knows_hosts_and_what_is_below),
		cmocka_unit_test(foreign__knows_addresses),
		cmocka_unit_test(foreign__knows_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
