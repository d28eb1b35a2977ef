/* SPDX-License-Identifier: Apache-2.0 */
/* envelope.c - seal, open, authenticate and derive through EVP
 *
 * The cipher contexts keep their key schedule between calls: setting a key
 * costs more than sealing a credential.
 */

#include "vault/envelope.h"

#include <errno.h>
#include <limits.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include "src/base/err.h"
#include "src/base/log.h"
#include "src/base/secret.h"

enum { SCRYPT_MEMORY_MAX = 512 * 1024 * 1024 };

struct envelope {
	EVP_CIPHER_CTX *seal;
	EVP_CIPHER_CTX *open;
};

struct envelope_mac {
	EVP_MAC_CTX *ctx;
};

/* Foreign errors end here. */
static int failed(void)
{
	unsigned long code = ERR_get_error();
	const char *reason = code ? ERR_reason_error_string(code) : NULL;

	log_debug("OpenSSL refused: %s", reason ? reason : "unknown error");
	ERR_clear_error();
	(void)err_origin(-EIO);
	return -EIO;
}

int envelope_new(const struct secret *key, struct envelope **ret)
{
	const unsigned char *bytes =
		(const unsigned char *)secret_open(key).ptr;
	struct envelope *e = must_alloc(sizeof(*e));

	must(secret_len(key) == ENVELOPE_KEY_SIZE);
	e->seal = EVP_CIPHER_CTX_new();
	e->open = EVP_CIPHER_CTX_new();
	if (!e->seal || !e->open ||
	    !EVP_EncryptInit_ex(e->seal, EVP_aes_256_gcm(), NULL, bytes,
				NULL) ||
	    !EVP_DecryptInit_ex(e->open, EVP_aes_256_gcm(), NULL, bytes,
				NULL)) {
		envelope_free(e);
		return failed();
	}
	*ret = e;
	return 0;
}

struct envelope *envelope_free(struct envelope *e)
{
	if (!e)
		return NULL;
	EVP_CIPHER_CTX_free(e->seal);
	EVP_CIPHER_CTX_free(e->open);
	free(e);
	return NULL;
}

int envelope_seal(struct envelope *e, const uint8_t *nonce, struct span aad,
		  struct span plain, char *dst)
{
	unsigned char *out = (unsigned char *)dst;
	int len;

	must(plain.len <= INT_MAX && aad.len <= INT_MAX);
	if (!EVP_EncryptInit_ex(e->seal, NULL, NULL, NULL, nonce) ||
	    !EVP_EncryptUpdate(e->seal, NULL, &len,
			       (const unsigned char *)aad.ptr, (int)aad.len) ||
	    !EVP_EncryptUpdate(e->seal, out, &len,
			       (const unsigned char *)plain.ptr,
			       (int)plain.len) ||
	    !EVP_EncryptFinal_ex(e->seal, out + len, &len) ||
	    !EVP_CIPHER_CTX_ctrl(e->seal, EVP_CTRL_GCM_GET_TAG,
				 ENVELOPE_TAG_SIZE, out + plain.len))
		return failed();
	return 0;
}

int envelope_open(struct envelope *e, const uint8_t *nonce, struct span aad,
		  struct span sealed, char *dst)
{
	size_t plain = sealed.len - ENVELOPE_TAG_SIZE;
	unsigned char tag[ENVELOPE_TAG_SIZE];
	unsigned char *out = (unsigned char *)dst;
	int len;

	if (sealed.len < ENVELOPE_TAG_SIZE || plain > INT_MAX)
		return ENVELOPE_E_FORGED;
	memcpy(tag, sealed.ptr + plain, sizeof(tag));
	if (!EVP_DecryptInit_ex(e->open, NULL, NULL, NULL, nonce) ||
	    !EVP_CIPHER_CTX_ctrl(e->open, EVP_CTRL_GCM_SET_TAG, sizeof(tag),
				 tag) ||
	    !EVP_DecryptUpdate(e->open, NULL, &len,
			       (const unsigned char *)aad.ptr, (int)aad.len) ||
	    !EVP_DecryptUpdate(e->open, out, &len,
			       (const unsigned char *)sealed.ptr, (int)plain))
		return failed();
	if (EVP_DecryptFinal_ex(e->open, out + len, &len) == 1)
		return 0;
	ERR_clear_error();
	secret_wipe(dst, plain); /* GCM decrypts before it knows */
	return ENVELOPE_E_FORGED;
}

int envelope_mac_new(const struct secret *key, struct envelope_mac **ret)
{
	static char digest[] = "SHA256";
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest,
						 0),
		OSSL_PARAM_construct_end(),
	};
	EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	struct span bytes = secret_open(key);
	EVP_MAC_CTX *ctx = hmac ? EVP_MAC_CTX_new(hmac) : NULL;

	EVP_MAC_free(hmac); /* the context holds a reference */
	if (!ctx || !EVP_MAC_init(ctx, (const unsigned char *)bytes.ptr,
				  bytes.len, params)) {
		EVP_MAC_CTX_free(ctx);
		return failed();
	}
	*ret = must_alloc(sizeof(**ret));
	(*ret)->ctx = ctx;
	return 0;
}

struct envelope_mac *envelope_mac_free(struct envelope_mac *m)
{
	if (!m)
		return NULL;
	EVP_MAC_CTX_free(m->ctx);
	free(m);
	return NULL;
}

int envelope_mac_run(struct envelope_mac *m, const struct span *parts,
		     unsigned count, uint8_t *ret)
{
	size_t len = 0;
	unsigned i;

	/* without a key: the same key again, from its beginning */
	if (!EVP_MAC_init(m->ctx, NULL, 0, NULL))
		return failed();
	for (i = 0; i < count; i++)
		if (!EVP_MAC_update(m->ctx, (const unsigned char *)parts[i].ptr,
				    parts[i].len))
			return failed();
	if (!EVP_MAC_final(m->ctx, ret, &len, ENVELOPE_MAC_SIZE) ||
	    len != ENVELOPE_MAC_SIZE)
		return failed();
	return 0;
}

int envelope_derive(const struct secret *key, struct span label,
		    struct secret **ret)
{
	struct envelope_mac *mac = NULL;
	struct secret *derived = NULL;
	int r;

	r = envelope_mac_new(key, &mac);
	if (!r)
		r = secret_new(ENVELOPE_KEY_SIZE, &derived);
	if (!r)
		r = envelope_mac_run(mac, &label, 1,
				     (uint8_t *)secret_fill(derived));
	envelope_mac_free(mac);
	if (r) {
		secret_free(derived);
		return r;
	}
	*ret = derived;
	return 0;
}

int envelope_scrypt(const struct secret *passphrase, struct span salt,
		    unsigned log2_n, unsigned block, unsigned parallel,
		    struct secret **ret)
{
	struct span pass = secret_open(passphrase);
	struct secret *key = NULL;
	int r = secret_new(ENVELOPE_KEY_SIZE, &key);

	if (r)
		return r;
	if (EVP_PBE_scrypt(pass.ptr, pass.len, (const unsigned char *)salt.ptr,
			   salt.len, 1ULL << log2_n, block, parallel,
			   SCRYPT_MEMORY_MAX, (unsigned char *)secret_fill(key),
			   ENVELOPE_KEY_SIZE) != 1) {
		secret_free(key);
		return failed();
	}
	*ret = key;
	return 0;
}

void envelope_random(void *dst, size_t len)
{
	must(len <= INT_MAX && RAND_bytes(dst, (int)len) == 1);
}
