/* SPDX-License-Identifier: Apache-2.0 */
/* test_hosts.c - the syntax of /etc/hosts */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "src/text/hosts.h"

struct log {
	char text[1024];
	size_t len;
};

static void on_pair(void *ctx, struct span name, const struct addr *address)
{
	char text[ADDR_TEXT_SIZE];
	struct log *log = ctx;

	log->len += (size_t)snprintf(
		log->text + log->len, sizeof(log->text) - log->len, "%.*s=%s ",
		SPAN_FMT(name), addr_text(address, text, sizeof(text)));
}

static const struct {
	const char *text, *pairs;
} rows[] = {
	{ "", "" },
	{ "127.0.0.1 localhost", "localhost=127.0.0.1 " },
	{ "127.0.0.1\tlocalhost\r\n::1 ip6-localhost  ip6-loopback\n",
	  "localhost=127.0.0.1 ip6-localhost=::1 ip6-loopback=::1 " },
	{ "# 1.2.3.4 no\n  1.2.3.4 a # b c\n1.2.3.4#x\n", "a=1.2.3.4 " },
	{ "\n\n \t\n1.2.3.4\n1.2.3.4 Upper.Case", "Upper.Case=1.2.3.4 " },
	/* lines that mean nothing to us */
	{ "fe80::1%lo0 a\n1.2.3 b\nname 1.2.3.4\n127.1 c\n", "" },
	{ "1.2.3.4 a\n1.2.3.5 a", "a=1.2.3.4 a=1.2.3.5 " },
};

static void hosts__parses(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct log log = { 0 };

		(void)hosts_parse(span_str(rows[i].text), on_pair, &log);
		assert_string_equal(log.text, rows[i].pairs);
	}
}

static void count_pair(void *ctx, struct span name, const struct addr *address)
{
	(void)name;
	(void)address;
	++*(unsigned *)ctx;
}

static void hosts__is_bounded(void **state)
{
	enum { NAMES = HOSTS_ENTRIES_MAX + 10 };
	static char text[8 + 2 * NAMES] = "1.2.3.4";
	unsigned count = 0, i;

	(void)state;
	for (i = 0; i < NAMES; i++)
		memcpy(text + 7 + 2 * i, " a", 2);
	assert_int_equal(hosts_parse(span_str(text), count_pair, &count),
			 HOSTS_ENTRIES_MAX);
	assert_int_equal(count, HOSTS_ENTRIES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts__parses),
		cmocka_unit_test(hosts__is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
