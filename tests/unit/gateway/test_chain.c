/* SPDX-License-Identifier: Apache-2.0 */
/* test_chain.c - which connections leave by way of the upstream proxy */

#include "tests/unit/gateway/fixture.h"

#include "gateway/upstream/chain.h"

static const char *const near[] = {
	"10.0.0.0/8",	"192.0.2.7",	   "fd00::/8",
	"near.example", ".Nearer.Example",
};

static struct chain *chain_of(const char *proxy, bool resolves)
{
	struct config c = {
		.upstream_proxy = (char *)(uintptr_t)proxy,
		.upstream_proxy_resolves = resolves,
		.no_proxy.items = (char **)(uintptr_t)near,
		.no_proxy.count = ARRAY_LEN(near),
	};

	return chain_new(&c);
}

static bool takes(const struct chain *c, const char *host, const char *ip)
{
	struct addr address;

	if (ip)
		address = addr_of(ip, 443);
	return chain_takes(c, span_str(host), ip ? &address : NULL);
}

static void chain__takes_what_is_not_near(void **state)
{
	struct chain *c = chain_of("corp.example:8080", false);

	(void)state;
	assert_true(takes(c, "", "9.9.9.9"));
	assert_true(takes(c, "a.example", "9.9.9.9"));
	assert_true(takes(c, "a.example", NULL));
	assert_true(takes(c, "", "2001:db8::1"));
	/* by address, whatever the name */
	assert_false(takes(c, "a.example", "10.255.0.1"));
	assert_false(takes(c, "", "192.0.2.7"));
	assert_true(takes(c, "", "192.0.2.8"));
	assert_false(takes(c, "", "fd12::1"));
	/* by name, itself and below, at a label */
	assert_false(takes(c, "near.example", "9.9.9.9"));
	assert_false(takes(c, "a.b.near.example", NULL));
	assert_true(takes(c, "notnear.example", NULL));
	assert_false(takes(c, "nearer.example", NULL));
	assert_false(takes(c, "a.nearer.example", NULL));
	(void)chain_free(c);
}

static void chain__resolves_only_where_told(void **state)
{
	struct chain *c = chain_of("[2001:db8::1]:3128", true);

	(void)state;
	assert_true(chain_resolves(c, SPAN("a.example")));
	assert_false(chain_resolves(c, SPAN("x.near.example")));
	assert_true(chain_proxy(c)->is_address);
	assert_int_equal(chain_proxy(c)->address.port, 3128);
	(void)chain_free(c);
	c = chain_of("corp.example:8080", false);
	assert_false(chain_resolves(c, SPAN("a.example")));
	(void)chain_free(c);
}

static void chain__none_takes_nothing(void **state)
{
	(void)state;
	assert_null(chain_of("", true));
	assert_false(takes(NULL, "a.example", "9.9.9.9"));
	assert_false(chain_resolves(NULL, SPAN("a.example")));
	assert_null(chain_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chain__takes_what_is_not_near),
		cmocka_unit_test(chain__resolves_only_where_told),
		cmocka_unit_test(chain__none_takes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
