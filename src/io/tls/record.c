/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - keys, nonces, and records with them */

#include "src/io/tls/record.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <pthread.h>

#include "src/base/err.h"
#include "src/base/secret.h"
#include "src/io/tls/hkdf.h"

enum {
	KEY_MAX = 32,
	/* So many bytes are sooner copied than the type behind them encrypted
	 * by a call of its own. */
	COPY_MAX = 4096,
};

struct tls_suite {
	uint16_t number;
	uint8_t key_len;
	const char *cipher_name, *hash_name;
	/* Found once: OpenSSL would look them up with each use. */
	EVP_CIPHER *cipher;
	const struct tls_hash *hash;
};

static struct tls_suite suites[] = {
	{ 0x1301, 16, "AES-128-GCM", "SHA256", NULL, NULL },
	{ 0x1302, 32, "AES-256-GCM", "SHA384", NULL, NULL },
	{ 0x1303, 32, "ChaCha20-Poly1305", "SHA256", NULL, NULL },
};

static void suites_fetch(void)
{
	for (size_t i = 0; i < ARRAY_LEN(suites); i++) {
		suites[i].cipher =
			EVP_CIPHER_fetch(NULL, suites[i].cipher_name, NULL);
		suites[i].hash = tls_hash_find(span_str(suites[i].hash_name));
		must(suites[i].cipher && suites[i].hash);
	}
}

static const struct tls_suite *suite_find(uint16_t number)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, suites_fetch);
	for (size_t i = 0; i < ARRAY_LEN(suites); i++)
		if (suites[i].number == number)
			return &suites[i];
	return NULL;
}

/* -- keys ------------------------------------------------------------------ */

static void expand(const struct tls_keys *k, struct span label, uint8_t *dst,
		   size_t len)
{
	const struct tls_hash *h = k->suite->hash;

	must(tls_expand(h, span_of(k->secret, h->size), label, SPAN_NONE, dst,
			len));
}

static void keys_derive(struct tls_keys *k)
{
	uint8_t key[KEY_MAX];

	expand(k, SPAN("tls13 key"), key, k->suite->key_len);
	expand(k, SPAN("tls13 iv"), k->iv, sizeof(k->iv));
	must(EVP_CipherInit_ex2(k->cipher, k->suite->cipher, key, NULL,
				k->seals, NULL));
	secret_wipe(key, sizeof(key));
	k->count = 0;
}

bool tls_keys_init(struct tls_keys *k, uint16_t suite, struct span secret,
		   bool seals, uint64_t count)
{
	const struct tls_suite *row = suite_find(suite);

	if (!row || secret.len != row->hash->size)
		return false;
	k->suite = row;
	k->seals = seals;
	k->cipher = EVP_CIPHER_CTX_new();
	must(k->cipher != NULL);
	memcpy(k->secret, secret.ptr, secret.len);
	keys_derive(k);
	k->count = count;
	return true;
}

void tls_keys_update(struct tls_keys *k)
{
	uint8_t next[TLS_SECRET_MAX];

	expand(k, SPAN("tls13 traffic upd"), next, k->suite->hash->size);
	memcpy(k->secret, next, k->suite->hash->size);
	secret_wipe(next, sizeof(next));
	keys_derive(k);
}

void tls_keys_fini(struct tls_keys *k)
{
	EVP_CIPHER_CTX_free(k->cipher); /* wipes */
	secret_wipe(k, sizeof(*k));
}

/* -- records -------------------------------------------------------------- */

/* RFC 8446 5.3: the count, XORed into the end of the IV. */
static void next_nonce(struct tls_keys *k, uint8_t dst[TLS_NONCE_SIZE])
{
	uint64_t count = k->count++;

	must(k->count); /* it never comes round */
	memcpy(dst, k->iv, TLS_NONCE_SIZE);
	for (int i = TLS_NONCE_SIZE - 1; count; i--, count >>= 8U)
		dst[i] ^= (uint8_t)count;
}

void tls_seal(struct tls_keys *k, uint8_t type, struct span bytes, char *dst)
{
	size_t body = bytes.len + 1 + TLS_TAG_SIZE;
	uint8_t nonce[TLS_NONCE_SIZE];
	uint8_t *at = (uint8_t *)dst;
	int n;

	must(bytes.len <= TLS_PLAIN_MAX);
	next_nonce(k, nonce);
	at[0] = TLS_TYPE_DATA;
	at[1] = at[2] = 3; /* as TLS 1.2, for who looks on (RFC 8446 5.2) */
	at[3] = (uint8_t)(body >> 8U);
	at[4] = (uint8_t)body;
	must(EVP_CipherInit_ex2(k->cipher, NULL, NULL, nonce, 1, NULL));
	must(EVP_CipherUpdate(k->cipher, NULL, &n, at, TLS_HEAD_SIZE));
	at += TLS_HEAD_SIZE;
	if (bytes.len <= COPY_MAX) {
		memcpy(at, bytes.len ? bytes.ptr : "", bytes.len);
		at[bytes.len] = type;
		must(EVP_CipherUpdate(k->cipher, at, &n, at,
				      (int)bytes.len + 1));
	} else {
		must(EVP_CipherUpdate(k->cipher, at, &n,
				      (const uint8_t *)bytes.ptr,
				      (int)bytes.len));
		must(EVP_CipherUpdate(k->cipher, at + bytes.len, &n, &type, 1));
	}
	at += bytes.len + 1;
	must(EVP_CipherFinal_ex(k->cipher, at, &n));
	must(EVP_CIPHER_CTX_ctrl(k->cipher, EVP_CTRL_AEAD_GET_TAG, TLS_TAG_SIZE,
				 at));
}

/* Padding is zeros behind the type (RFC 8446 5.4). */
static uint8_t content_of(const char *inner, size_t len, uint8_t *type,
			  size_t *ret)
{
	while (len && !inner[len - 1])
		len--;
	if (!len)
		return TLS_ALERT_UNEXPECTED_MESSAGE;
	*type = (uint8_t)inner[--len];
	*ret = len;
	return len > TLS_PLAIN_MAX ? TLS_ALERT_RECORD_OVERFLOW : 0;
}

uint8_t tls_open(struct tls_keys *k, const uint8_t head[TLS_HEAD_SIZE],
		 struct span body, char *dst, uint8_t *type, size_t *len)
{
	size_t inner = body.len - TLS_TAG_SIZE;
	uint8_t nonce[TLS_NONCE_SIZE], tag[TLS_TAG_SIZE];
	const OSSL_PARAM params[] = {
		OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag,
					sizeof(tag)),
		OSSL_PARAM_END,
	};
	int n, end = 0;

	must(body.len > TLS_TAG_SIZE && body.len <= TLS_BODY_MAX);
	next_nonce(k, nonce);
	memcpy(tag, body.ptr + inner, TLS_TAG_SIZE);
	must(EVP_CipherInit_ex2(k->cipher, NULL, NULL, nonce, 0, params));
	must(EVP_CipherUpdate(k->cipher, NULL, &n, head, TLS_HEAD_SIZE));
	if (!EVP_CipherUpdate(k->cipher, (uint8_t *)dst, &n,
			      (const uint8_t *)body.ptr, (int)inner) ||
	    EVP_CipherFinal_ex(k->cipher, (uint8_t *)dst + n, &end) <= 0)
		return TLS_ALERT_BAD_RECORD_MAC;
	return content_of(dst, inner, type, len);
}
