/* SPDX-License-Identifier: Apache-2.0 */
/* test_signed_route.c - vectors computed with another SHA-256, and every wrong part */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "certs/signed_route.h"

#define ID	  SPAN("3f0c1a52-8a4e-4a43-9d0c-6b8c6b1a2f10")
#define NOW	  1890000000u
#define EXPIRES	  SPAN("vf7lds") /* 1900000000 */
#define SIGNATURE SPAN("eb8c2217a")

static const struct signed_keys
	keys = { .keys = {
			 { 'b', SPAN_INIT("another") },
			 { 'a', SPAN_INIT("0123456789abcdef") },
			 { 'k', SPAN_INIT("k") },
		 } };

static void test_vector(void **state)
{
	(void)state;
	assert_true(
		signed_route_check(&keys, ID, 8080, EXPIRES, SIGNATURE, NOW));
	assert_true(signed_route_check(&keys, SPAN("a"), 1,
				       SPAN("3w5e11264sgsf"), SPAN("02dcc8eek"),
				       UINT64_MAX));
}

static void test_make(void **state)
{
	char expires[SIGNED_EXPIRES_SIZE + 1];
	char signature[SIGNED_ROUTE_SIZE + 1];

	(void)state;
	assert_true(signed_route_make(&keys, 'a', ID, 8080, 1900000000, expires,
				      signature));
	assert_string_equal(expires, "vf7lds");
	assert_string_equal(signature, "eb8c2217a");
	assert_true(signed_route_make(&keys, 'k', SPAN("a"), 1, UINT64_MAX,
				      expires, signature));
	assert_string_equal(expires, "3w5e11264sgsf");
	assert_false(
		signed_route_make(&keys, 'z', ID, 8080, 1, expires, signature));
	assert_false(
		signed_route_make(&keys, 0, ID, 8080, 1, expires, signature));
}

static void test_every_part_counts(void **state)
{
	const struct signed_keys rotated = {
		.keys = { { 'b', SPAN_INIT("another") } },
	};

	(void)state;
	assert_false(
		signed_route_check(&keys, ID, 8081, EXPIRES, SIGNATURE, NOW));
	assert_false(signed_route_check(&keys, SPAN("3f0c"), 8080, EXPIRES,
					SIGNATURE, NOW));
	assert_false(signed_route_check(&keys, ID, 8080, SPAN("vf7ldt"),
					SIGNATURE, NOW));
	assert_false(signed_route_check(&keys, ID, 8080, EXPIRES,
					SPAN("eb8c2217b"), NOW));
	assert_false(signed_route_check(&keys, ID, 8080, EXPIRES,
					SPAN("eb8c2218a"), NOW));
	assert_false(signed_route_check(&rotated, ID, 8080, EXPIRES, SIGNATURE,
					NOW));
}

static void test_time(void **state)
{
	(void)state;
	assert_true(signed_route_check(&keys, ID, 8080, EXPIRES, SIGNATURE,
				       1900000000));
	assert_false(signed_route_check(&keys, ID, 8080, EXPIRES, SIGNATURE,
					1900000001));
}

static void test_malformed(void **state)
{
	static const struct span expires[] = {
		SPAN_INIT(""),
		SPAN_INIT("0vf7lds"),
		SPAN_INIT("VF7LDS"),
		SPAN_INIT("vf7-ds"),
		SPAN_INIT("3w5e11264sgsg"),
		SPAN_INIT("10000000000000"),
		SPAN_INIT("0"),
	};
	static const struct span signatures[] = {
		SPAN_INIT(""),
		SPAN_INIT("eb8c2217"),
		SPAN_INIT("eb8c2217aa"),
		SPAN_INIT("EB8C2217a"),
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(expires) / sizeof(expires[0]); i++)
		assert_false(signed_route_check(&keys, ID, 8080, expires[i],
						SIGNATURE, 0));
	for (i = 0; i < sizeof(signatures) / sizeof(signatures[0]); i++)
		assert_false(signed_route_check(&keys, ID, 8080, EXPIRES,
						signatures[i], NOW));
	assert_false(signed_route_check(
		&keys, ID, 8080, EXPIRES,
		span_of("eb8c2217\0", SIGNED_ROUTE_SIZE), NOW));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vector),
		cmocka_unit_test(test_make),
		cmocka_unit_test(test_every_part_counts),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
