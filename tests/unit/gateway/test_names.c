/* SPDX-License-Identifier: Apache-2.0 */
/* test_names.c - the table of pins and hosts entries, and the answer cache */

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "gateway/dns/cache.h"
#include "gateway/dns/names.h"
#include "gateway/dns/nameserver.h"

static struct addr addr_of(unsigned last)
{
	struct addr a;

	assert_true(addr_parse(SPAN("192.0.2.0"), &a));
	a.ip[15] = (uint8_t)last;
	a.port = 99;
	return a;
}

static void names__finds_pins_before_hosts(void **state)
{
	struct addr one = addr_of(1), two = addr_of(2);
	struct names *n = names_new();
	struct name_answer answer;

	(void)state;
	assert_int_equal(names_add(n, NAME_HOSTS, SPAN("a.b"), &two), 0);
	assert_int_equal(names_add(n, NAME_HOSTS, SPAN("c.d"), &two), 0);
	assert_int_equal(names_add(n, NAME_PIN, SPAN("a.b"), &one), 0);
	assert_int_equal(names_add(n, NAME_PIN, SPAN("a.b"), &one), 0);
	assert_int_equal(names_count(n), 3);

	assert_true(names_find(n, SPAN("a.b"), &answer));
	assert_int_equal(answer.source, NAME_PIN);
	assert_int_equal(answer.count, 1);
	assert_true(addr_eq_ip(&answer.addrs[0], &one));
	assert_int_equal(answer.addrs[0].port, 0);
	assert_true(names_find(n, SPAN("c.d"), &answer));
	assert_int_equal(answer.source, NAME_HOSTS);
	assert_false(names_find(n, SPAN("b"), &answer));

	names_ref(n);
	assert_null(names_unref(n));
	assert_true(names_find(n, SPAN("a.b"), &answer));
	n = names_unref(n);
	assert_null(names_unref(NULL));
}

static void names__refuses_what_is_no_entry(void **state)
{
	struct addr a = addr_of(1);
	struct names *n = names_new();
	unsigned i;

	(void)state;
	assert_int_equal(names_add(n, NAME_PIN, SPAN("A.b"), &a), -EINVAL);
	assert_int_equal(names_add(n, NAME_PIN, SPAN("a.b."), &a), -EINVAL);
	assert_int_equal(names_add(n, NAME_PIN, SPAN("1.2.3.4"), &a), -EINVAL);
	assert_int_equal(names_add(n, NAME_PIN, SPAN("*.b"), &a), -EINVAL);
	assert_int_equal(names_add(n, NAME_DNS, SPAN("a.b"), &a), -EINVAL);
	for (i = 0; i < NAME_ADDRS_MAX; i++) {
		a = addr_of(i);
		assert_int_equal(names_add(n, NAME_PIN, SPAN("a.b"), &a), 0);
	}
	a = addr_of(i);
	assert_int_equal(names_add(n, NAME_PIN, SPAN("a.b"), &a), -ENOSPC);
	n = names_unref(n);
}

static void names__has_names_for_everything(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < NAME_SOURCE_NUM; i++)
		assert_non_null(name_source_name(i));
	for (i = 0; i < NAME_STATUS_NUM; i++)
		assert_non_null(name_status_name(i));
	assert_string_equal(name_source_name(NAME_HOSTS), "hosts");
	assert_string_equal(name_status_name(77), "unknown");
}

static void put(struct cache *c, const char *host, uint32_t ttl_s, unsigned a,
		uint64_t now_ms)
{
	struct addr addrs[2] = { addr_of(a), addr_of(a + 1) };
	struct name_answer answer = {
		.status = NAME_OK,
		.source = NAME_DNS,
		.ttl_s = ttl_s,
		.addrs = addrs,
		.count = 2,
	};

	cache_put(c, span_str(host), &answer, now_ms);
}

static void cache__keeps_until_the_ttl(void **state)
{
	struct name_answer answer,
		negative = { .status = NAME_NXDOMAIN, .ttl_s = 5 };
	struct cache c;

	(void)state;
	cache_init(&c, 10);
	put(&c, "a", 10, 1, 1000);
	assert_true(cache_find(&c, SPAN("a"), 1000, &answer));
	assert_int_equal(answer.ttl_s, 10);
	assert_int_equal(answer.addrs[1].ip[15], 2);
	assert_true(cache_find(&c, SPAN("a"), 10999, &answer));
	assert_int_equal(answer.ttl_s, 1);
	assert_false(cache_find(&c, SPAN("a"), 11000, &answer));
	assert_int_equal(map_count(&c.map), 0);

	put(&c, "a", 10, 1, 1000);
	put(&c, "a", 10, 7, 2000); /* replaces */
	assert_true(cache_find(&c, SPAN("a"), 11500, &answer));
	assert_int_equal(answer.addrs[0].ip[15], 7);
	/* an answer may be put from the entry that it replaces */
	cache_put(&c, SPAN("a"), &answer, 3000);
	assert_true(cache_find(&c, SPAN("a"), 3500, &answer));
	assert_int_equal(answer.addrs[1].ip[15], 8);

	cache_put(&c, SPAN("n"), &negative, 0);
	assert_true(cache_find(&c, SPAN("n"), 4000, &answer));
	assert_int_equal(answer.status, NAME_NXDOMAIN);
	cache_clear(&c);
	assert_false(cache_find(&c, SPAN("n"), 0, &answer));
	cache_clear(&c);
}

static void cache__drops_the_least_used(void **state)
{
	struct name_answer answer;
	struct cache c;
	char host[16];
	unsigned i;

	(void)state;
	cache_init(&c, 3);
	put(&c, "a", 10, 1, 0);
	put(&c, "b", 10, 1, 0);
	put(&c, "c", 10, 1, 0);
	assert_true(cache_find(&c, SPAN("a"), 0, &answer));
	put(&c, "d", 10, 1, 0);
	assert_false(cache_find(&c, SPAN("b"), 0, &answer));
	assert_true(cache_find(&c, SPAN("a"), 0, &answer));
	for (i = 0; i < 10000; i++) {
		(void)snprintf(host, sizeof(host), "x%u", i);
		put(&c, host, 10, 1, 0);
	}
	assert_int_equal(map_count(&c.map), 3);
	cache_clear(&c);
}

static void nameserver__prefers_the_well(void **state)
{
	struct addr addrs[NAMESERVERS_MAX + 2] = { 0 };
	struct nameservers ns = { 0 };
	unsigned i;

	(void)state;
	assert_int_equal(nameservers_pick(&ns, 0, 0), -1);
	for (i = 0; i < NAMESERVERS_MAX + 2; i++)
		addrs[i] = addr_of(i);
	addrs[0].port = 0;
	assert_true(nameservers_set(&ns, addrs, NAMESERVERS_MAX + 2));
	assert_false(nameservers_set(&ns, addrs, NAMESERVERS_MAX));
	assert_int_equal(ns.count, NAMESERVERS_MAX);
	assert_int_equal(ns.items[0].address.port, 53);
	assert_int_equal(ns.items[1].address.port, 99);

	assert_true(nameservers_set(&ns, addrs, 3));
	assert_int_equal(nameservers_pick(&ns, 0, 1000), 0);
	assert_int_equal(nameservers_pick(&ns, 1, 1000), 1);
	nameserver_failed(&ns.items[0], 1000);
	nameserver_failed(&ns.items[0], 1000); /* the same incident */
	assert_int_equal(ns.items[0].down_until_ms, 6000);
	assert_int_equal(nameservers_pick(&ns, 0, 1000), 1);
	nameserver_failed(&ns.items[1], 2000);
	nameserver_failed(&ns.items[2], 3000);
	/* all in the corner: the one that comes out first */
	assert_int_equal(nameservers_pick(&ns, 0, 3000), 0);
	assert_int_equal(nameservers_pick(&ns, 0, 6000), 0);
	nameserver_failed(&ns.items[0], 6000); /* longer this time */
	assert_int_equal(ns.items[0].down_until_ms, 16000);
	nameserver_answered(&ns.items[0]);
	assert_int_equal(nameservers_pick(&ns, 0, 6001), 0);
	assert_int_equal(nameservers_pick(&ns, 7, 6001), -1);
	for (i = 0; i < 20; i++)
		nameserver_failed(&ns.items[0], ns.items[0].down_until_ms);
	assert_int_equal(ns.items[0].down_ms, NAMESERVER_DOWN_MAX_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names__finds_pins_before_hosts),
		cmocka_unit_test(names__refuses_what_is_no_entry),
		cmocka_unit_test(names__has_names_for_everything),
		cmocka_unit_test(cache__keeps_until_the_ttl),
		cmocka_unit_test(cache__drops_the_least_used),
		cmocka_unit_test(nameserver__prefers_the_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
