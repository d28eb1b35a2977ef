/* SPDX-License-Identifier: Apache-2.0 */
/* ca.c - make, load and save the node's certificate authority */

#include "certs/ca.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "certs/cert.h"
#include "certs/ext.h"
#include "certs/leaf_key.h"
#include "certs/ossl.h"
#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/secret.h"

enum {
	SECURE_HEAP = 64 * 1024, /* OpenSSL's locked heap: private numbers */
	SECURE_HEAP_MIN = 32,
	BACKDATE_S = 3600,
	DAY_S = 24 * 3600,
	KEY_DER_MAX = 1024,
};

struct ca {
	EVP_PKEY *key;
	X509 *cert;
	struct buf der; /* of cert */
};

static void cleanup_ca(struct ca **ca)
{
	*ca = ca_free(*ca);
}

/* OpenSSL keeps private numbers of EC keys in its locked heap if there is one.
 * Without it they lie in ordinary memory, which still is out of cores. */
static void secure_heap_init(void)
{
	if (!CRYPTO_secure_malloc_initialized())
		(void)CRYPTO_secure_malloc_init(SECURE_HEAP, SECURE_HEAP_MIN);
}

/* "Sallyport node CA <8 hex>": an operator with many nodes can tell them. */
static int ca_name_put(X509 *cert)
{
	X509_NAME *name = X509_get_subject_name(cert);
	unsigned char id[4];
	char text[64];

	if (RAND_bytes(id, sizeof(id)) != 1)
		return cert_error(err_origin(-EIO));
	(void)snprintf(text, sizeof(text), "Sallyport node CA %02x%02x%02x%02x",
		       id[0], id[1], id[2], id[3]);
	if (!X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
					(unsigned char *)text, -1, -1, 0) ||
	    !X509_set_issuer_name(cert, name))
		return cert_error(err_origin(-EIO));
	return 0;
}

static int ca_cert_make(struct ca *ca, uint64_t now_ms)
{
	time_t now = (time_t)(now_ms / 1000);
	X509 *cert = X509_new();
	int r;

	if (!cert)
		return cert_error(err_origin(-ENOMEM));
	ca->cert = cert;
	if (!X509_set_version(cert, X509_VERSION_3) ||
	    !X509_set_pubkey(cert, ca->key) ||
	    !ASN1_TIME_set(X509_getm_notBefore(cert), now - BACKDATE_S) ||
	    !ASN1_TIME_set(X509_getm_notAfter(cert),
			   now + (time_t)CA_DAYS * DAY_S))
		return cert_error(err_origin(-EIO));
	if ((r = ext_serial(cert)) || (r = ca_name_put(cert)) ||
	    (r = ext_basic(cert, true)) ||
	    (r = ext_key_usage(cert, EXT_USAGE_CA)) ||
	    (r = ext_subject_key_id(cert)) ||
	    (r = ext_authority_key_id(cert, cert)))
		return r;
	if (!X509_sign(cert, ca->key, EVP_sha256()))
		return cert_error(err_origin(-EIO));
	return 0;
}

int ca_new(uint64_t now_ms, struct ca **ret)
{
	CLEANUP(cleanup_ca) struct ca *ca = must_alloc(sizeof(*ca));
	int r;

	secure_heap_init();
	buf_init(&ca->der, CERT_DER_MAX);
	if ((r = leaf_key_new(&ca->key)) || (r = ca_cert_make(ca, now_ms)) ||
	    (r = cert_to_der(ca->cert, &ca->der)))
		return r;
	*ret = take_ptr(ca);
	return 0;
}

/* What a stored pair must be before anything is signed with it. */
static int ca_check(const struct ca *ca, uint64_t now_ms, struct diag *d)
{
	time_t now = (time_t)(now_ms / 1000);
	char group[32];

	if (!EVP_PKEY_get_group_name(ca->key, group, sizeof(group), NULL) ||
	    strcmp(group, SN_X9_62_prime256v1) != 0)
		return diag_set(d, 0, 0,
				"the CA key is no P-256 key; expected the key "
				"that the vault made");
	if (X509_check_private_key(ca->cert, ca->key) != 1)
		return diag_set(d, 0, 0,
				"the CA key and the CA certificate do not "
				"belong together");
	if (X509_check_ca(ca->cert) != 1)
		return diag_set(d, 0, 0,
				"the CA certificate is not that of a CA");
	if (X509_cmp_time(X509_get0_notAfter(ca->cert), &now) <= 0)
		return diag_set(d, 0, 0, "the CA certificate has expired");
	return 0;
}

int ca_load(struct span key_der, struct span cert_der, uint64_t now_ms,
	    struct ca **ret, struct diag *d)
{
	CLEANUP(cleanup_ca) struct ca *ca = must_alloc(sizeof(*ca));
	const unsigned char *at = (const unsigned char *)key_der.ptr;
	int r;

	secure_heap_init();
	buf_init(&ca->der, CERT_DER_MAX);
	if (key_der.len && key_der.len <= KEY_DER_MAX)
		ca->key = d2i_AutoPrivateKey(NULL, &at, (long)key_der.len);
	if (!ca->key) {
		(void)cert_error(-EINVAL);
		return diag_set(d, 0, 0, "the CA key is no private key in DER");
	}
	if (cert_from_der(cert_der, &ca->cert))
		return diag_set(d, 0, 0,
				"the CA certificate is no certificate in DER");
	if ((r = ca_check(ca, now_ms, d)) || (r = buf_put(&ca->der, cert_der)))
		return cert_error(r);
	*ret = take_ptr(ca);
	return 0;
}

struct ca *ca_free(struct ca *ca)
{
	if (!ca)
		return NULL;
	EVP_PKEY_free(ca->key);
	X509_free(ca->cert);
	buf_fini(&ca->der);
	free(ca);
	return NULL;
}

struct span ca_cert_der(const struct ca *ca)
{
	return buf_peek(&ca->der);
}

int ca_key_der(const struct ca *ca, struct secret **ret)
{
	PKCS8_PRIV_KEY_INFO *info = EVP_PKEY2PKCS8(ca->key);
	unsigned char *der = NULL;
	int len, r;

	if (!info)
		return cert_error(err_origin(-EIO));
	len = i2d_PKCS8_PRIV_KEY_INFO(info, &der);
	PKCS8_PRIV_KEY_INFO_free(info); /* wipes the key inside */
	if (len <= 0)
		return cert_error(err_origin(-EIO));
	r = secret_dup(span_of(der, (size_t)len), ret);
	OPENSSL_clear_free(der, (size_t)len);
	return r;
}

struct evp_pkey_st *ca_key(const struct ca *ca)
{
	return ca->key;
}

struct x509_st *ca_cert(const struct ca *ca)
{
	return ca->cert;
}
