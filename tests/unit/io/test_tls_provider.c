/* SPDX-License-Identifier: Apache-2.0 */
/* test_tls_provider.c - our TLS13-KDF says what OpenSSL's own says */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <string.h>

#include "src/base/attrib.h"
#include "src/io/tls/provider.h"

/* < 0: not given */
struct row {
	int mode;
	const char *digest;
	int key, salt, label, data;
	size_t len;
};

static unsigned char bytes[512];

static int derive(const char *provider, const struct row *r, unsigned char *dst)
{
	const struct {
		const char *name;
		int len;
	} octets[] = {
		{ OSSL_KDF_PARAM_KEY, r->key },
		{ OSSL_KDF_PARAM_SALT, r->salt },
		{ OSSL_KDF_PARAM_LABEL, r->label },
		{ OSSL_KDF_PARAM_DATA, r->data },
	};
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "TLS13-KDF", provider);
	EVP_KDF_CTX *ctx;
	OSSL_PARAM params[8], *p = params;
	int mode = r->mode, ok;

	assert_non_null(kdf);
	ctx = EVP_KDF_CTX_new(kdf);
	assert_non_null(ctx);
	*p++ = OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode);
	*p++ = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST,
						(char *)r->digest, 0);
	*p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PREFIX,
						 (char *)"tls13 ", 6);
	for (size_t i = 0; i < ARRAY_LEN(octets); i++)
		if (octets[i].len >= 0)
			*p++ = OSSL_PARAM_construct_octet_string(
				octets[i].name, bytes + i,
				(size_t)octets[i].len);
	*p = OSSL_PARAM_construct_end();
	ok = EVP_KDF_derive(ctx, dst, r->len, params);
	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
	ERR_clear_error();
	return ok;
}

enum {
	EXTRACT = EVP_KDF_HKDF_MODE_EXTRACT_ONLY,
	EXPAND = EVP_KDF_HKDF_MODE_EXPAND_ONLY,
};

static void kdf__is_that_of_openssl(void **state)
{
	static const struct row rows[] = {
		{ EXTRACT, "SHA256", -1, -1, 7, -1, 32 },
		{ EXTRACT, "SHA256", 32, -1, 7, -1, 32 },
		{ EXTRACT, "SHA256", -1, 32, 7, -1, 32 },
		{ EXTRACT, "SHA2-256", 48, 32, 7, -1, 32 },
		{ EXTRACT, "sha384", 133, 48, 7, -1, 48 },
		{ EXTRACT, "SHA384", -1, 48, 7, -1, 48 },
		{ EXPAND, "SHA256", 32, -1, 12, 32, 32 },
		{ EXPAND, "SHA256", 32, -1, 3, -1, 16 },
		{ EXPAND, "SHA2-384", 48, -1, 2, 0, 12 },
		{ EXPAND, "SHA384", 48, -1, 12, 48, 48 },
		{ EXPAND, "SHA256", 64, -1, 9, 32, 32 },
		{ EXPAND, "SHA256", 65, -1, 9, 32, 33 },   /* key: hashed */
		{ EXPAND, "SHA384", 200, -1, 9, 48, 300 }, /* rounds */
		{ EXPAND, "SHA256", 32, -1, 9, 32, 1 },
	};
	unsigned char ours[512], theirs[512];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 7 + 3);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		memset(ours, 0, sizeof(ours));
		memset(theirs, 0, sizeof(theirs));
		assert_int_equal(derive("provider=default", &rows[i], theirs),
				 1);
		assert_int_equal(derive("provider=sallyport", &rows[i], ours),
				 1);
		assert_memory_equal(ours, theirs, sizeof(ours));
	}
}

static void kdf__refuses_what_it_is_not_for(void **state)
{
	static const struct row rows[] = {
		{ EXPAND, "SHA512", 64, -1, 9, 32, 32 },
		{ EXPAND, "SHA1", 20, -1, 9, 20, 20 },
		{ EVP_KDF_HKDF_MODE_EXTRACT_AND_EXPAND, "SHA256", 32, 32, 9, 32,
		  32 },
		{ EXTRACT, "SHA256", 32, 32, 7, -1, 31 },
		{ EXPAND, "SHA256", 32, -1, 200, 32, 32 },
		{ EXPAND, "SHA256", 32, -1, 9, 300, 32 },
	};
	unsigned char dst[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(derive("provider=sallyport", &rows[i], dst),
				 0);
}

/* What asks for nothing in particular gets OpenSSL's, as before. */
static void kdf__is_taken_by_who_asks_for_it(void **state)
{
	static const struct {
		const char *query, *provider;
	} rows[] = {
		{ NULL, "default" },
		{ "provider=default", "default" },
		{ TLS_PROVIDER_QUERY, "sallyport" },
	};
	EVP_MD *md = EVP_MD_fetch(NULL, "SHA256", TLS_PROVIDER_QUERY);
	EVP_KDF *kdf;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		kdf = EVP_KDF_fetch(NULL, "TLS13-KDF", rows[i].query);
		assert_non_null(kdf);
		assert_string_equal(
			OSSL_PROVIDER_get0_name(EVP_KDF_get0_provider(kdf)),
			rows[i].provider);
		EVP_KDF_free(kdf);
	}
	assert_non_null(md); /* all else is still found */
	assert_string_equal(OSSL_PROVIDER_get0_name(EVP_MD_get0_provider(md)),
			    "default");
	EVP_MD_free(md);
}

static int setup(void **state)
{
	(void)state;
	tls_provider_init();
	tls_provider_init();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kdf__is_that_of_openssl),
		cmocka_unit_test(kdf__refuses_what_it_is_not_for),
		cmocka_unit_test(kdf__is_taken_by_who_asks_for_it),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
