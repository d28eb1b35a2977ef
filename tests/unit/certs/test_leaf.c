/* SPDX-License-Identifier: Apache-2.0 */
/* test_leaf.c - leaves verify as a client would, and say one name only */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "certs/ca.h"
#include "certs/cert.h"
#include "certs/leaf.h"
#include "certs/leaf_key.h"
#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/diag.h"

static const uint64_t day_ms = 24 * 3600 * 1000ULL;
static struct ca *ca;
static EVP_PKEY *key;
static struct buf spki = BUF_INIT(LEAF_SPKI_MAX);

static int group_setup(void **state)
{
	(void)state;
	return ca_new(clock_wall_ms(), &ca) || leaf_key_new(&key) ||
	       leaf_spki(key, &spki);
}

static int group_teardown(void **state)
{
	(void)state;
	ca_free(ca);
	EVP_PKEY_free(key);
	buf_fini(&spki);
	return 0;
}

static X509 *signed_at(struct span name, uint64_t now_ms)
{
	CLEANUP(buf_fini) struct buf der = BUF_INIT(CERT_DER_MAX);
	struct diag d = { 0 };
	X509 *cert = NULL;

	assert_int_equal(leaf_sign(ca, name, buf_peek(&spki), now_ms, &der, &d),
			 0);
	assert_int_equal(cert_from_der(buf_peek(&der), &cert), 0);
	return cert;
}

/* What a strict client does: purpose, name, strict RFC 5280 checks. */
static int verify(X509 *cert, const char *host, const char *ip)
{
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	X509_STORE *store = X509_STORE_new();
	X509_VERIFY_PARAM *param;
	int error;

	assert_true(X509_STORE_add_cert(store, ca_cert(ca)));
	assert_true(X509_STORE_CTX_init(ctx, store, cert, NULL));
	param = X509_STORE_CTX_get0_param(ctx);
	X509_VERIFY_PARAM_set_purpose(param, X509_PURPOSE_SSL_SERVER);
	X509_VERIFY_PARAM_set_flags(param,
				    X509_V_FLAG_X509_STRICT |
					    X509_V_FLAG_CHECK_SS_SIGNATURE);
	if (host)
		assert_true(X509_VERIFY_PARAM_set1_host(param, host, 0));
	if (ip)
		assert_true(X509_VERIFY_PARAM_set1_ip_asc(param, ip));
	error = X509_verify_cert(ctx) == 1 ? X509_V_OK
					   : X509_STORE_CTX_get_error(ctx);
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(store);
	return error;
}

static void leaf__verifies_for_its_name_only(void **state)
{
	X509 *cert = signed_at(SPAN("api.example.com"), clock_wall_ms());

	(void)state;
	assert_int_equal(verify(cert, "api.example.com", NULL), X509_V_OK);
	assert_int_equal(verify(cert, "example.com", NULL),
			 X509_V_ERR_HOSTNAME_MISMATCH);
	assert_int_equal(verify(cert, "x.api.example.com", NULL),
			 X509_V_ERR_HOSTNAME_MISMATCH);
	assert_int_equal(verify(cert, NULL, "192.0.2.1"),
			 X509_V_ERR_IP_ADDRESS_MISMATCH);
	X509_free(cert);
}

static void leaf__verifies_for_addresses(void **state)
{
	static const char *const ips[] = { "192.0.2.1", "2001:db8::1" };
	X509 *cert;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(ips); i++) {
		cert = signed_at(span_str(ips[i]), clock_wall_ms());
		assert_int_equal(verify(cert, NULL, ips[i]), X509_V_OK);
		assert_int_equal(verify(cert, NULL, "192.0.2.2"),
				 X509_V_ERR_IP_ADDRESS_MISMATCH);
		X509_free(cert);
	}
}

/* case 26: no list and no responder that a client would wait for. */
static void leaf__has_one_san_one_purpose_no_pointers(void **state)
{
	X509 *cert = signed_at(SPAN("a_b.example"), clock_wall_ms());
	GENERAL_NAMES *names;
	BIGNUM *serial;

	(void)state;
	names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	assert_int_equal(sk_GENERAL_NAME_num(names), 1);
	GENERAL_NAMES_free(names);
	assert_int_equal(X509_get_extended_key_usage(cert), XKU_SSL_SERVER);
	assert_int_equal(X509_get_key_usage(cert), KU_DIGITAL_SIGNATURE);
	assert_int_equal(X509_check_ca(cert), 0);
	assert_int_equal(
		X509_get_ext_by_NID(cert, NID_crl_distribution_points, -1), -1);
	assert_int_equal(X509_get_ext_by_NID(cert, NID_info_access, -1), -1);
	assert_non_null(X509_get0_authority_key_id(cert));
	serial = ASN1_INTEGER_to_BN(X509_get0_serialNumber(cert), NULL);
	assert_int_equal(BN_num_bytes(serial), 16);
	BN_free(serial);
	X509_free(cert);
}

static void leaf__of_a_long_name_has_no_subject(void **state)
{
	struct span longest =
		SPAN("a-label-of-some-length.another-label-of-some"
		     "-length.and-one-more.example.com");
	X509 *cert = signed_at(longest, clock_wall_ms());
	int critical = 0;

	(void)state;
	assert_true(longest.len > 64);
	assert_int_equal(X509_NAME_entry_count(X509_get_subject_name(cert)), 0);
	GENERAL_NAMES_free(
		X509_get_ext_d2i(cert, NID_subject_alt_name, &critical, NULL));
	assert_int_equal(critical, 1);
	assert_int_equal(verify(cert, longest.ptr, NULL), X509_V_OK);
	X509_free(cert);
}

static void leaf__lives_a_week_and_not_beyond_its_ca(void **state)
{
	uint64_t now = clock_wall_ms();
	int days, seconds;
	X509 *cert;

	(void)state;
	cert = signed_at(SPAN("a.example"), now);
	assert_true(ASN1_TIME_diff(&days, &seconds, X509_get0_notBefore(cert),
				   X509_get0_notAfter(cert)));
	assert_int_equal(days, LEAF_DAYS);
	assert_int_equal(seconds, LEAF_BACKDATE_S);
	X509_free(cert);

	cert = signed_at(SPAN("a.example"), now + (CA_DAYS - 2) * day_ms);
	assert_int_equal(ASN1_TIME_compare(X509_get0_notAfter(cert),
					   X509_get0_notAfter(ca_cert(ca))),
			 0);
	X509_free(cert);
}

static void leaf__refuses_bad_names(void **state)
{
	static const char *const bad[] = {
		"",
		"*.example.com",
		"Example.com",
		"example.com.",
		"a..b",
		"a,DNS:b.example",
		"a/b",
		"a b",
		"-a.example",
		"1.2.3",
		"127.1",
		"[::1",
		"a.example:443",
		"0x7f.1",
		"a@b.example",
	};
	CLEANUP(buf_fini) struct buf der = BUF_INIT(CERT_DER_MAX);
	struct diag d;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		d = (struct diag){ 0 };
		assert_true(leaf_sign(ca, span_str(bad[i]), buf_peek(&spki),
				      clock_wall_ms(), &der, &d) < 0);
		assert_non_null(strstr(d.msg, "expected a canonical host"));
		assert_int_equal(buf_len(&der), 0);
	}
	d = (struct diag){ 0 };
	assert_true(leaf_sign(ca, span_of("a\0b", 3), buf_peek(&spki),
			      clock_wall_ms(), &der, &d) < 0);
}

static void leaf__refuses_bad_keys(void **state)
{
	CLEANUP(buf_fini) struct buf der = BUF_INIT(CERT_DER_MAX);
	CLEANUP(buf_fini) struct buf other = BUF_INIT(4096);
	struct span good = buf_peek(&spki);
	EVP_PKEY *p384 = EVP_EC_gen("P-384");
	EVP_PKEY *rsa = EVP_RSA_gen(2048);
	struct diag d = { 0 };
	size_t cut;

	(void)state;
	for (cut = 0; cut < good.len; cut++)
		assert_true(leaf_sign(ca, SPAN("a.example"),
				      span_of(good.ptr, cut), clock_wall_ms(),
				      &der, &d) < 0);
	assert_int_equal(leaf_spki(p384, &other), 0);
	assert_true(leaf_sign(ca, SPAN("a.example"), buf_peek(&other),
			      clock_wall_ms(), &der, &d) < 0);
	buf_clear(&other);
	assert_int_equal(leaf_spki(rsa, &other), 0);
	assert_true(leaf_sign(ca, SPAN("a.example"), buf_peek(&other),
			      clock_wall_ms(), &der, &d) < 0);
	EVP_PKEY_free(p384);
	EVP_PKEY_free(rsa);
}

/* One that OpenSSL would take back is the one that was given; what is a P-256
 * key in another form, or none for a bit, is refused with a sentence. */
static void leaf__key_is_byte_for_byte_what_was_given(void **state)
{
	CLEANUP(buf_fini) struct buf der = BUF_INIT(CERT_DER_MAX);
	X509 *cert = signed_at(SPAN("a.example"), clock_wall_ms());
	char changed[LEAF_SPKI_MAX + 1];
	struct span good = buf_peek(&spki);
	unsigned char *again = NULL;
	struct diag d;
	size_t i;
	int len;

	(void)state;
	len = i2d_PUBKEY(X509_get0_pubkey(cert), &again);
	assert_int_equal(len, good.len);
	assert_memory_equal(again, good.ptr, good.len);
	assert_int_equal(EVP_PKEY_eq(X509_get0_pubkey(cert), key), 1);
	OPENSSL_free(again);
	X509_free(cert);

	for (i = 0; i < good.len; i++) {
		memcpy(changed, good.ptr, good.len);
		changed[i] = (char)(changed[i] ^ 1);
		d = (struct diag){ 0 };
		assert_int_equal(leaf_sign(ca, SPAN("a.example"),
					   span_of(changed, good.len),
					   clock_wall_ms(), &der, &d),
				 -EINVAL);
		assert_non_null(strstr(d.msg, "P-256"));
	}
	memcpy(changed, good.ptr, good.len);
	changed[good.len] = 0;
	assert_int_equal(leaf_sign(ca, SPAN("a.example"),
				   span_of(changed, good.len + 1),
				   clock_wall_ms(), &der, &d),
			 -EINVAL);
	assert_int_equal(buf_len(&der), 0);
	assert_int_equal(ERR_peek_error(), 0);
}

static void leaf__refuses_an_expired_ca(void **state)
{
	CLEANUP(buf_fini) struct buf der = BUF_INIT(CERT_DER_MAX);
	struct diag d = { 0 };

	(void)state;
	assert_true(leaf_sign(ca, SPAN("a.example"), buf_peek(&spki),
			      clock_wall_ms() + (CA_DAYS + 1) * day_ms, &der,
			      &d) < 0);
	assert_non_null(strstr(d.msg, "expired"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaf__verifies_for_its_name_only),
		cmocka_unit_test(leaf__verifies_for_addresses),
		cmocka_unit_test(leaf__has_one_san_one_purpose_no_pointers),
		cmocka_unit_test(leaf__of_a_long_name_has_no_subject),
		cmocka_unit_test(leaf__lives_a_week_and_not_beyond_its_ca),
		cmocka_unit_test(leaf__refuses_bad_names),
		cmocka_unit_test(leaf__refuses_bad_keys),
		cmocka_unit_test(leaf__key_is_byte_for_byte_what_was_given),
		cmocka_unit_test(leaf__refuses_an_expired_ca),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
