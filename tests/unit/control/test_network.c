/* SPDX-License-Identifier: Apache-2.0 */
/* test_network.c - addresses: lowest first, never twice, at rest for a minute
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/base/err.h"
#include "src/control/lifecycle/network.h"

static struct cidr cidr_of(const char *text)
{
	struct cidr c;

	assert_true(cidr_parse(span_str(text), &c));
	return c;
}

static struct addr addr_of(const char *text)
{
	struct addr a;

	assert_true(addr_parse(span_str(text), &a));
	return a;
}

static int make(const char *v4, const char *v6, struct network **ret)
{
	struct cidr a = cidr_of(v4), b = cidr_of(v6);

	return network_new(&a, &b, ret);
}

static void assert_pair(const struct addr *v4, const struct addr *v6,
			const char *want4, const char *want6)
{
	char text[ADDR_TEXT_SIZE];

	assert_string_equal(addr_text(v4, text, sizeof(text)), want4);
	assert_string_equal(addr_text(v6, text, sizeof(text)), want6);
}

static void pairs__are_taken_lowest_first(void **state)
{
	struct addr v4, v6;
	struct network *n;
	unsigned i;

	(void)state;
	assert_int_equal(make("10.9.8.0/24", "fd00:9::/64", &n), 0);
	network_gateways(n, &v4, &v6);
	assert_pair(&v4, &v6, "10.9.8.1", "fd00:9::1");
	assert_int_equal(network_take(n, 1, &v4, &v6), 0);
	assert_pair(&v4, &v6, "10.9.8.2", "fd00:9::2");
	for (i = 3; i < 255; i++)
		assert_int_equal(network_take(n, 1, &v4, &v6), 0);
	assert_pair(&v4, &v6, "10.9.8.254", "fd00:9::fe");
	assert_int_equal(network_take(n, 1, &v4, &v6), -ENOSPC);
	network_free(n);
}

static void given_back__rests(void **state)
{
	struct addr v4, v6, other4, other6;
	struct network *n;

	(void)state;
	assert_int_equal(make("10.9.8.0/29", "fd00:9::/64", &n), 0);
	assert_int_equal(network_take(n, 1000, &v4, &v6), 0);
	network_give_back(n, 1000, &v4);
	assert_int_equal(network_take(n, 1000, &other4, &other6), 0);
	assert_pair(&other4, &other6, "10.9.8.3", "fd00:9::3");
	while (!network_take(n, 1000 + NETWORK_REST_MS - 1, &other4, &other6))
		assert_false(addr_eq_ip(&v4, &other4));
	assert_int_equal(
		network_take(n, 1000 + NETWORK_REST_MS, &other4, &other6), 0);
	assert_true(addr_eq_ip(&v4, &other4));
	/* what is not ours changes nothing */
	other4 = addr_of("10.9.8.1");
	network_give_back(n, 0, &other4);
	other4 = addr_of("10.9.9.2");
	network_give_back(n, 0, &other4);
	other4 = addr_of("10.9.8.7");
	network_give_back(n, 0, &other4);
	other4 = addr_of("fd00:9::2");
	network_give_back(n, 0, &other4);
	assert_int_equal(network_take(n, UINT64_MAX - 1, &v4, &v6), -ENOSPC);
	network_free(n);
}

static void claims__are_checked(void **state)
{
	static const struct {
		const char *v4, *v6;
		int r;
	} cases[] = {
		{ "10.9.8.2", "fd00:9::2", 0 },
		{ "10.9.8.2", "fd00:9::2", -EEXIST },
		{ "10.9.8.3", "fd00:9::4", -ERANGE },
		{ "10.9.8.1", "fd00:9::1", -ERANGE },
		{ "10.9.8.0", "fd00:9::", -ERANGE },
		{ "10.9.8.255", "fd00:9::ff", -ERANGE },
		{ "10.9.7.5", "fd00:9::5", -ERANGE },
		{ "fd00:9::5", "fd00:9::5", -ERANGE },
	};
	struct addr v4, v6;
	struct network *n;
	size_t i;

	(void)state;
	assert_int_equal(make("10.9.8.0/24", "fd00:9::/64", &n), 0);
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		v4 = addr_of(cases[i].v4);
		v6 = addr_of(cases[i].v6);
		if (network_claim(n, &v4, &v6) != cases[i].r)
			fail_msg("%s %s", cases[i].v4, cases[i].v6);
	}
	assert_int_equal(network_take(n, 0, &v4, &v6), 0);
	assert_pair(&v4, &v6, "10.9.8.3", "fd00:9::3");
	network_free(n);
}

static void subnets__must_fit(void **state)
{
	static const struct {
		const char *v4, *v6;
		int r;
	} cases[] = {
		{ "10.0.0.0/8", "fd00::/112", 0 },
		{ "10.0.0.0/8", "fd00::/113", -EINVAL },
		{ "10.0.0.0/29", "fd00::/125", 0 },
		{ "10.0.0.0/29", "fd00::/126", -EINVAL },
		{ "10.0.0.0/30", "fd00::/64", -EINVAL },
		{ "fd01::/64", "fd00::/64", -EINVAL },
		{ "10.0.0.0/24", "10.0.1.0/24", -EINVAL },
	};
	struct network *n = NULL;
	size_t i;
	int r;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		r = make(cases[i].v4, cases[i].v6, &n);
		if (r != cases[i].r)
			fail_msg("%s %s: %d", cases[i].v4, cases[i].v6, r);
		n = r ? NULL : network_free(n);
	}
}

/* A large network is used as far as numbers go, and the last is no gap. */
static void large_networks__are_used(void **state)
{
	struct addr v4, v6;
	struct network *n;
	unsigned count = 0;

	(void)state;
	assert_int_equal(make("10.32.0.0/12", "fd00:9::/64", &n), 0);
	while (!network_take(n, 1, &v4, &v6))
		count++;
	assert_int_equal(count, NETWORK_HOSTS_MAX - 1);
	assert_pair(&v4, &v6, "10.32.255.254", "fd00:9::fffe");
	network_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs__are_taken_lowest_first),
		cmocka_unit_test(given_back__rests),
		cmocka_unit_test(claims__are_checked),
		cmocka_unit_test(subnets__must_fit),
		cmocka_unit_test(large_networks__are_used),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
