/* SPDX-License-Identifier: Apache-2.0 */
/* test_ca.c - the node's CA: made, saved, loaded, refused */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/x509v3.h>

#include "certs/ca.h"
#include "certs/cert.h"
#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/diag.h"
#include "src/base/secret.h"

static const uint64_t day_ms = 24 * 3600 * 1000ULL;

static void ca__is_what_it_says(void **state)
{
	char subject[CERT_NAME_SIZE];
	struct ca *ca = NULL;
	uint64_t now = clock_wall_ms();
	X509 *cert;
	int days, seconds;

	(void)state;
	assert_int_equal(ca_new(now, &ca), 0);
	cert = ca_cert(ca);
	assert_int_equal(X509_check_ca(cert), 1);
	assert_int_equal(X509_get_pathlen(cert), 0);
	assert_int_equal(X509_get_key_usage(cert),
			 KU_KEY_CERT_SIGN | KU_CRL_SIGN);
	assert_non_null(X509_get0_subject_key_id(cert));
	assert_int_equal(X509_verify(cert, ca_key(ca)), 1);
	assert_int_equal(
		ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(cert)),
		1);
	assert_in_range(days, CA_DAYS - 1, CA_DAYS);

	cert_subject(cert, subject, sizeof(subject));
	assert_true(span_starts(span_str(subject),
				SPAN("CN = Sallyport node CA ")));
	assert_int_equal(strlen(subject),
			 strlen("CN = Sallyport node CA ") + 8);
	ca_free(ca);
}

static void ca__two_have_different_names_and_keys(void **state)
{
	struct ca *a = NULL, *b = NULL;

	(void)state;
	assert_int_equal(ca_new(clock_wall_ms(), &a), 0);
	assert_int_equal(ca_new(clock_wall_ms(), &b), 0);
	assert_false(span_eq(ca_cert_der(a), ca_cert_der(b)));
	assert_int_equal(EVP_PKEY_eq(ca_key(a), ca_key(b)), 0);
	ca_free(a);
	ca_free(b);
}

static void ca__saves_and_loads(void **state)
{
	struct ca *ca = NULL, *again = NULL;
	struct secret *key = NULL;
	struct diag d = { 0 };

	(void)state;
	assert_int_equal(ca_new(clock_wall_ms(), &ca), 0);
	assert_int_equal(ca_key_der(ca, &key), 0);
	assert_int_equal(ca_load(secret_open(key), ca_cert_der(ca),
				 clock_wall_ms(), &again, &d),
			 0);
	assert_true(span_eq(ca_cert_der(ca), ca_cert_der(again)));
	assert_int_equal(EVP_PKEY_eq(ca_key(ca), ca_key(again)), 1);
	secret_free(key);
	ca_free(again);
	ca_free(ca);
}

static void refused(struct span key, struct span cert, uint64_t now,
		    const char *expected)
{
	struct diag d = { 0 };
	struct ca *ca = NULL;

	assert_true(ca_load(key, cert, now, &ca, &d) < 0);
	assert_null(ca);
	assert_non_null(strstr(d.msg, expected));
}

static void ca__refuses_what_does_not_fit(void **state)
{
	struct ca *a = NULL, *b = NULL;
	struct secret *key = NULL;
	uint64_t now = clock_wall_ms();
	struct span k;

	(void)state;
	assert_int_equal(ca_new(now, &a), 0);
	assert_int_equal(ca_new(now, &b), 0);
	assert_int_equal(ca_key_der(a, &key), 0);
	k = secret_open(key);

	refused(SPAN_NONE, ca_cert_der(a), now, "no private key");
	refused(span_of(k.ptr, k.len - 1), ca_cert_der(a), now,
		"no private key");
	refused(k, SPAN("nonsense"), now, "no certificate");
	refused(k, ca_cert_der(b), now, "belong together");
	refused(k, ca_cert_der(a), now + (CA_DAYS + 1) * day_ms, "expired");
	secret_free(key);
	ca_free(a);
	ca_free(b);
}

static void ca__pem_round_trip(void **state)
{
	CLEANUP(buf_fini) struct buf pem = BUF_INIT(8192);
	struct ca *ca = NULL;

	(void)state;
	assert_int_equal(ca_new(clock_wall_ms(), &ca), 0);
	assert_int_equal(cert_der_to_pem(ca_cert_der(ca), &pem), 0);
	assert_true(span_starts(buf_peek(&pem),
				SPAN("-----BEGIN CERTIFICATE-----\n")));
	assert_true(cert_der_to_pem(SPAN("x"), &pem) < 0);
	ca_free(ca);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ca__is_what_it_says),
		cmocka_unit_test(ca__two_have_different_names_and_keys),
		cmocka_unit_test(ca__saves_and_loads),
		cmocka_unit_test(ca__refuses_what_does_not_fit),
		cmocka_unit_test(ca__pem_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
