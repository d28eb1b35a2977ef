/* SPDX-License-Identifier: Apache-2.0 */
/* test_record_memory.c - buffers of records come back, all else is malloc's */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <string.h>

#include "gateway/tls/record_memory.h"
#include "src/base/blocks.h"

enum { RECORD = 16717, OTHER = 17000, SMALL = 300, LARGE = 64 * 1024 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { KEEPS = 0 };
#else
enum { KEEPS = 1 };
#endif

static void record_memory__the_same_buffer_again(void **state)
{
	char *a, *b;

	(void)state;
	a = OPENSSL_malloc(RECORD);
	assert_non_null(a);
	memset(a, 1, RECORD);
	OPENSSL_free(a);
	b = OPENSSL_malloc(OTHER); /* of the other direction */
	if (KEEPS)
		assert_ptr_equal(a, b);
	memset(b, 2, OTHER);
	OPENSSL_free(b);
	OPENSSL_free(NULL);
}

static void record_memory__other_sizes_do_not_mix(void **state)
{
	char *small, *large, *record;

	(void)state;
	small = OPENSSL_malloc(SMALL);
	large = OPENSSL_malloc(LARGE);
	memset(small, 3, SMALL);
	memset(large, 4, LARGE);
	OPENSSL_free(small);
	OPENSSL_free(large);
	record = OPENSSL_malloc(RECORD);
	assert_true(record != small && record != large);
	memset(record, 5, OTHER); /* there is room for either */
	small = OPENSSL_realloc(record, SMALL);
	assert_non_null(small);
	assert_int_equal(small[SMALL - 1], 5);
	small = OPENSSL_realloc(small, LARGE);
	assert_non_null(small);
	assert_int_equal(small[SMALL - 1], 5);
	OPENSSL_free(small);
	assert_null(OPENSSL_malloc(0));
}

static void record_memory__openssl_works_on_it(void **state)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	unsigned i;

	(void)state;
	assert_non_null(ctx);
	for (i = 0; i < 3; i++) {
		SSL *ssl = SSL_new(ctx);

		assert_non_null(ssl);
		SSL_free(ssl);
	}
	SSL_CTX_free(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record_memory__the_same_buffer_again),
		cmocka_unit_test(record_memory__other_sizes_do_not_mix),
		cmocka_unit_test(record_memory__openssl_works_on_it),
	};
	int r;

	record_memory_init();
	blocks_keep(256 * 1024);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	blocks_drop();
	return r;
}
