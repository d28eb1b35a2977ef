/* SPDX-License-Identifier: Apache-2.0 */
/* test_leaf_cache.c - who may evict whom, expiry, and many threads */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <pthread.h>

#include <openssl/x509.h>

#include "certs/ca.h"
#include "certs/cert.h"
#include "certs/leaf.h"
#include "certs/leaf_cache.h"
#include "certs/leaf_key.h"
#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/diag.h"

static const uint64_t hour_ms = 3600 * 1000ULL;
static const uint64_t day_ms = 24 * 3600 * 1000ULL;
static uint64_t now;
static X509 *leaf;

static int group_setup(void **state)
{
	CLEANUP(buf_fini) struct buf spki = BUF_INIT(LEAF_SPKI_MAX);
	CLEANUP(buf_fini) struct buf der = BUF_INIT(CERT_DER_MAX);
	struct diag d = { 0 };
	struct ca *ca = NULL;
	EVP_PKEY *key = NULL;
	int r;

	(void)state;
	now = clock_wall_ms();
	r = ca_new(now, &ca) || leaf_key_new(&key) || leaf_spki(key, &spki) ||
	    leaf_sign(ca, SPAN("a.example"), buf_peek(&spki), now, &der, &d) ||
	    cert_from_der(buf_peek(&der), &leaf);
	ca_free(ca);
	EVP_PKEY_free(key);
	return r;
}

static int group_teardown(void **state)
{
	(void)state;
	X509_free(leaf);
	return 0;
}

static void put(struct leaf_cache *c, const char *sandbox, const char *name)
{
	leaf_cache_put(c, span_str(sandbox), span_str(name), leaf, now);
}

static bool has(struct leaf_cache *c, const char *name)
{
	X509 *cert = leaf_cache_get(c, span_str(name), now);

	X509_free(cert);
	return cert != NULL;
}

static void leaf_cache__gives_what_was_put(void **state)
{
	struct leaf_cache *c = leaf_cache_new(4, 4, hour_ms);
	X509 *cert;

	(void)state;
	assert_false(has(c, "a"));
	put(c, "s1", "a");
	cert = leaf_cache_get(c, SPAN("a"), now);
	assert_ptr_equal(cert, leaf);
	leaf_cache_clear(c);
	assert_int_equal(leaf_cache_count(c), 0);
	assert_int_equal(X509_get_version(cert), X509_VERSION_3); /* our ref */
	X509_free(cert);
	leaf_cache_free(c);
}

static void leaf_cache__evicts_the_least_recently_used(void **state)
{
	struct leaf_cache *c = leaf_cache_new(3, 3, hour_ms);

	(void)state;
	put(c, "s1", "a");
	put(c, "s2", "b");
	put(c, "s3", "c");
	assert_true(has(c, "a"));
	put(c, "s4", "d");
	assert_false(has(c, "b"));
	assert_true(has(c, "a") && has(c, "c") && has(c, "d"));
	leaf_cache_free(c);
}

/* case 25: asking for many names flushes nobody else's. */
static void leaf_cache__a_full_share_evicts_its_own(void **state)
{
	struct leaf_cache *c = leaf_cache_new(10, 3, hour_ms);
	char name[32];
	int i;

	(void)state;
	put(c, "quiet", "q1");
	put(c, "quiet", "q2");
	for (i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), "n%d", i);
		put(c, "loud", name);
	}
	assert_int_equal(leaf_cache_count(c), 5);
	assert_true(has(c, "q1") && has(c, "q2"));
	assert_true(has(c, "n999") && has(c, "n998") && has(c, "n997"));
	leaf_cache_free(c);
}

static void leaf_cache__replaces_the_same_name(void **state)
{
	struct leaf_cache *c = leaf_cache_new(1, 1, hour_ms);

	(void)state;
	put(c, "s1", "a");
	put(c, "s1", "a");
	put(c, "s2", "a");
	assert_int_equal(leaf_cache_count(c), 1);
	put(c, "s2", "b");
	assert_true(has(c, "b") && !has(c, "a"));
	leaf_cache_free(c);
}

static void leaf_cache__forgets_before_expiry(void **state)
{
	struct leaf_cache *c = leaf_cache_new(4, 4, hour_ms);
	uint64_t end = now + LEAF_DAYS * day_ms;

	(void)state;
	put(c, "s1", "a");
	X509_free(leaf_cache_get(c, SPAN("a"), end - hour_ms - 2000));
	assert_int_equal(leaf_cache_count(c), 1);
	assert_null(leaf_cache_get(c, SPAN("a"), end - hour_ms + 2000));
	assert_int_equal(leaf_cache_count(c), 0);
	leaf_cache_put(c, SPAN("s1"), SPAN("a"), leaf, end - hour_ms + 2000);
	assert_int_equal(leaf_cache_count(c), 0);
	leaf_cache_free(c);
}

static void *hammer(void *arg)
{
	struct leaf_cache *c = arg;
	char name[32], sandbox[32];
	int i;

	for (i = 0; i < 20000; i++) {
		(void)snprintf(name, sizeof(name), "n%d", i * 7919 % 97);
		(void)snprintf(sandbox, sizeof(sandbox), "s%d", i % 5);
		if (!has(c, name))
			put(c, sandbox, name);
	}
	return NULL;
}

static void leaf_cache__is_safe_between_threads(void **state)
{
	struct leaf_cache *c = leaf_cache_new(32, 12, hour_ms);
	pthread_t threads[4];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hammer, c),
				 0);
	for (i = 0; i < ARRAY_LEN(threads); i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_in_range(leaf_cache_count(c), 1, 32);
	leaf_cache_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaf_cache__gives_what_was_put),
		cmocka_unit_test(leaf_cache__evicts_the_least_recently_used),
		cmocka_unit_test(leaf_cache__a_full_share_evicts_its_own),
		cmocka_unit_test(leaf_cache__replaces_the_same_name),
		cmocka_unit_test(leaf_cache__forgets_before_expiry),
		cmocka_unit_test(leaf_cache__is_safe_between_threads),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
