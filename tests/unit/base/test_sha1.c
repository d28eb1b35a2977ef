/* SPDX-License-Identifier: Apache-2.0 */
/* test_sha1.c - the digests of FIPS 180-4's examples, and of every padding */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "src/base/attrib.h"
#include "src/base/sha1.h"

static void check(struct span bytes, const char *hex)
{
	uint8_t digest[SHA1_SIZE];
	char text[2 * SHA1_SIZE + 1];

	sha1(bytes, digest);
	for (size_t i = 0; i < SHA1_SIZE; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
	assert_string_equal(text, hex);
}

static void sha1__vectors(void **state)
{
	(void)state;
	check(SPAN(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
	check(SPAN("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
	check(SPAN("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
	      "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
}

static void sha1__a_million(void **state)
{
	char *bytes = malloc(1000000);

	(void)state;
	assert_non_null(bytes);
	memset(bytes, 'a', 1000000);
	check(span_of(bytes, 1000000),
	      "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
	free(bytes);
}

/* Lengths around which the padding takes a block more; digests from
 * another implementation (coreutils' sha1sum). */
static void sha1__paddings(void **state)
{
	char bytes[128];

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	check(span_of(bytes, 55), "cef734ba81a024479e09eb5a75b6ddae62e6abf1");
	check(span_of(bytes, 56), "901305367c259952f4e7af8323f480d59f81335b");
	check(span_of(bytes, 63), "0ddc4e0cccd9a12850deb5abb0853a4425559fec");
	check(span_of(bytes, 64), "bb2fa3ee7afb9f54c6dfb5d021f14b1ffe40c163");
	check(span_of(bytes, 65), "78c741ddc482e4cdf8c474a0876347a0905b6233");
	check(span_of(bytes, 119), "4300320394f7ee239bcdce7d3b8bcee173a0cd5c");
	check(span_of(bytes, 120), "ceb2821639c4b6dcb10bce0e522ca2e608ce056d");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sha1__vectors),
		cmocka_unit_test(sha1__a_million),
		cmocka_unit_test(sha1__paddings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
