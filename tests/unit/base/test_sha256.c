/* SPDX-License-Identifier: Apache-2.0 */
/* test_sha256.c - the digests of FIPS 180-4's examples, and of every padding */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "src/base/attrib.h"
#include "src/base/sha256.h"

static void check(struct span bytes, const char *hex)
{
	uint8_t digest[SHA256_SIZE];
	char text[2 * SHA256_SIZE + 1];

	sha256(bytes, digest);
	for (size_t i = 0; i < SHA256_SIZE; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
	assert_string_equal(text, hex);
}

static void sha256__vectors(void **state)
{
	(void)state;
	check(SPAN(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca49599"
			"1b7852b855");
	check(SPAN("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb41"
			   "0ff61f20015ad");
	check(SPAN("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
	      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c"
	      "1");
}

static void sha256__a_million(void **state)
{
	char *bytes = malloc(1000000);

	(void)state;
	assert_non_null(bytes);
	memset(bytes, 'a', 1000000);
	check(span_of(bytes, 1000000), "cdc76e5c9914fb9281a1c7e284d73e67f1809a4"
				       "8a497200e046d39ccc7112cd0");
	free(bytes);
}

/* Lengths around which the padding takes a block more; digests from another
 * implementation (Python's hashlib). */
static void sha256__paddings(void **state)
{
	char bytes[128];

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	check(span_of(bytes, 55), "d5e285683cd4efc02d021a5c62014694958901005d6f"
				  "71e89e0989fac77e4072");
	check(span_of(bytes, 56), "04c26261370ee7541549d16dee320c723e3fd14671e6"
				  "6a099afe0a377c16888e");
	check(span_of(bytes, 63), "75220b47218278e656f2013bb8f0c455a25eaf01e86c"
				  "64924e9d48d89776d6f2");
	check(span_of(bytes, 64), "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7"
				  "ee8d5fd6219506b5393c");
	check(span_of(bytes, 65), "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea"
				  "814db1633ad565aed7e9");
	check(span_of(bytes, 119), "000b48d4edf0fa7bee3c6236ecd2785baa5db4eeb8b"
				   "b54341b029e0d9fa5fb0c");
	check(span_of(bytes, 120), "13f05a0b594787f5ecd315edc96141bd3243203d1b7"
				   "d4f0836f37308b276ba98");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sha256__vectors),
		cmocka_unit_test(sha256__a_million),
		cmocka_unit_test(sha256__paddings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
