/* SPDX-License-Identifier: Apache-2.0 */
/* hkdf.c - HMAC of a few short texts, on OpenSSL's hashes */

#include "src/io/tls/hkdf.h"

#include <openssl/evp.h>
#include <pthread.h>

#include "src/base/err.h"
#include "src/base/secret.h"

enum {
	BLOCK_MAX = 128,
	LABEL_MAX = 255, /* and of the context: one byte tells the length */
	INFO_MAX = 2 + 1 + LABEL_MAX + 1 + LABEL_MAX,
	ROUNDS_MAX = 255,
};

static struct tls_hash hashes[] = {
	{ "SHA256", 32, 64, NULL },
	{ "SHA384", 48, 128, NULL },
};

static void hashes_fetch(void)
{
	for (size_t i = 0; i < ARRAY_LEN(hashes); i++) {
		hashes[i].md = EVP_MD_fetch(NULL, hashes[i].name, NULL);
		must(hashes[i].md != NULL);
	}
}

const struct tls_hash *tls_hash_find(struct span name)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, hashes_fetch);
	if (span_eq_nocase(name, SPAN("SHA2-256")))
		name = SPAN("SHA256"); /* OpenSSL's other name of it */
	if (span_eq_nocase(name, SPAN("SHA2-384")))
		name = SPAN("SHA384");
	for (size_t i = 0; i < ARRAY_LEN(hashes); i++)
		if (span_eq_nocase(name, span_str(hashes[i].name)))
			return &hashes[i];
	return NULL;
}

static void hash_parts(EVP_MD_CTX *md, const struct tls_hash *h,
		       const struct span *parts, size_t count, uint8_t *dst)
{
	must(EVP_DigestInit_ex2(md, h->md, NULL));
	for (size_t i = 0; i < count; i++)
		must(EVP_DigestUpdate(md, parts[i].ptr, parts[i].len));
	must(EVP_DigestFinal_ex(md, dst, NULL));
}

void tls_hash_nothing(const struct tls_hash *h, uint8_t *dst)
{
	must(EVP_Digest("", 0, dst, NULL, h->md, NULL));
}

/* RFC 2104. dst may be what a part is. */
static void hmac(const struct tls_hash *h, struct span key, struct span a,
		 struct span b, struct span c, uint8_t *dst)
{
	uint8_t inner[BLOCK_MAX], outer[BLOCK_MAX], hashed[TLS_HASH_MAX];
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	size_t i;

	must(md != NULL);
	if (key.len > h->block_size) {
		hash_parts(md, h, &key, 1, hashed);
		key = span_of(hashed, h->size);
	}
	for (i = 0; i < h->block_size; i++) {
		uint8_t byte = i < key.len ? (uint8_t)key.ptr[i] : 0;

		inner[i] = byte ^ 0x36;
		outer[i] = byte ^ 0x5c;
	}
	hash_parts(md, h,
		   (struct span[]){ span_of(inner, h->block_size), a, b, c }, 4,
		   hashed);
	hash_parts(md, h,
		   (struct span[]){ span_of(outer, h->block_size),
				    span_of(hashed, h->size) },
		   2, dst);
	EVP_MD_CTX_free(md); /* wipes */
	secret_wipe(inner, sizeof(inner));
	secret_wipe(outer, sizeof(outer));
	secret_wipe(hashed, sizeof(hashed));
}

void tls_extract(const struct tls_hash *h, struct span salt, struct span input,
		 uint8_t *dst)
{
	hmac(h, salt, input, SPAN_NONE, SPAN_NONE, dst);
}

/* One byte of length, and the bytes. */
static size_t put_short(uint8_t *dst, struct span bytes)
{
	dst[0] = (uint8_t)bytes.len;
	if (bytes.len)
		memcpy(dst + 1, bytes.ptr, bytes.len);
	return 1 + bytes.len;
}

bool tls_expand(const struct tls_hash *h, struct span secret, struct span label,
		struct span context, uint8_t *dst, size_t len)
{
	uint8_t info[INFO_MAX], round[TLS_HASH_MAX], number = 0;
	size_t info_len = 2, n, had = 0;

	if (label.len > LABEL_MAX || context.len > LABEL_MAX ||
	    len > ROUNDS_MAX * h->size)
		return false;
	info[0] = (uint8_t)(len >> 8U);
	info[1] = (uint8_t)len;
	info_len += put_short(info + info_len, label);
	info_len += put_short(info + info_len, context);
	for (; len; len -= n, dst += n) {
		number++;
		hmac(h, secret, span_of(round, had), span_of(info, info_len),
		     span_of(&number, 1), round);
		had = h->size;
		n = MIN(len, h->size);
		memcpy(dst, round, n);
	}
	secret_wipe(round, sizeof(round));
	return true;
}
