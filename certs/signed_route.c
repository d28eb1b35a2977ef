/* SPDX-License-Identifier: Apache-2.0 */
/* signed_route.c - the signature of a shared link
 *
 * The signed text is "v1\nshort\n{id}\n{port}\n{expires}\n". What is hashed is
 * secret and text, each behind its length in four bytes, most significant
 * first; of the SHA-256 the first four bytes are written in hex and the key's
 * id behind them. 32 bits are few: who serves such links must count failures.
 */

#include "certs/signed_route.h"

#include <openssl/evp.h>
#include <stdio.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/secret.h"

enum { TEXT_MAX = 512, SECRET_MAX = 4096, HASH_BYTES = 4, BASE = 36 };

static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";

/* Lower case, no leading zero, no overflow. */
static bool expires_parse(struct span text, uint64_t *ret)
{
	uint64_t v = 0;
	const char *at;
	size_t i;

	if (!text.len || text.len > SIGNED_EXPIRES_SIZE || text.ptr[0] == '0')
		return false;
	for (i = 0; i < text.len; i++) {
		at = memchr(digits, text.ptr[i], BASE);
		if (!at || __builtin_mul_overflow(v, (uint64_t)BASE, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(at - digits), &v))
			return false;
	}
	*ret = v;
	return true;
}

static void expires_write(uint64_t v, char dst[SIGNED_EXPIRES_SIZE + 1])
{
	char reversed[SIGNED_EXPIRES_SIZE];
	size_t n = 0, i;

	do {
		reversed[n++] = digits[v % BASE];
		v /= BASE;
	} while (v && n < sizeof(reversed));
	for (i = 0; i < n; i++)
		dst[i] = reversed[n - 1 - i];
	dst[n] = '\0';
}

static struct span key_find(const struct signed_keys *keys, char id)
{
	size_t i;

	for (i = 0; id && i < SIGNED_KEYS_MAX; i++)
		if (keys->keys[i].id == id)
			return keys->keys[i].secret;
	return SPAN_NONE;
}

static int put_block(struct buf *out, struct span bytes)
{
	const unsigned char len[4] = { (unsigned char)(bytes.len >> 24),
				       (unsigned char)(bytes.len >> 16),
				       (unsigned char)(bytes.len >> 8),
				       (unsigned char)bytes.len };
	int r = buf_put(out, span_of(len, sizeof(len)));

	return r ? r : buf_put(out, bytes);
}

/* Eight hex digits. False: the id is too long to be one. */
static bool hash_route(struct span secret, struct span id, uint16_t port,
		       struct span expires, char hex[2 * HASH_BYTES + 1])
{
	struct buf inner CLEANUP(buf_wipe) = BUF_INIT(SECRET_MAX + TEXT_MAX);
	unsigned char hash[EVP_MAX_MD_SIZE];
	struct span bytes;
	char text[TEXT_MAX];
	int n;

	n = snprintf(text, sizeof(text), "v1\nshort\n%.*s\n%u\n%.*s\n",
		     SPAN_FMT(id), port, SPAN_FMT(expires));
	if (n < 0 || (size_t)n >= sizeof(text) || put_block(&inner, secret) ||
	    put_block(&inner, span_of(text, (size_t)n)))
		return false;
	bytes = buf_peek(&inner);
	must(EVP_Digest(bytes.ptr, bytes.len, hash, NULL, EVP_sha256(), NULL));
	for (n = 0; n < HASH_BYTES; n++)
		(void)snprintf(hex + 2 * n, 3, "%02x", hash[n]);
	return true;
}

bool signed_route_check(const struct signed_keys *keys, struct span id,
			uint16_t port, struct span expires,
			struct span signature, uint64_t now_s)
{
	char hex[2 * HASH_BYTES + 1];
	struct span secret;
	uint64_t end;

	if (signature.len != SIGNED_ROUTE_SIZE ||
	    !expires_parse(expires, &end) || now_s > end)
		return false;
	secret = key_find(keys, signature.ptr[2 * HASH_BYTES]);
	if (!secret.len || !hash_route(secret, id, port, expires, hex))
		return false;
	return secret_eq(span_of(hex, 2 * HASH_BYTES),
			 span_of(signature.ptr, 2 * HASH_BYTES));
}

bool signed_route_make(const struct signed_keys *keys, char key_id,
		       struct span id, uint16_t port, uint64_t expires_s,
		       char expires[SIGNED_EXPIRES_SIZE + 1],
		       char signature[SIGNED_ROUTE_SIZE + 1])
{
	struct span secret = key_find(keys, key_id);

	expires_write(expires_s, expires);
	if (!secret.len ||
	    !hash_route(secret, id, port, span_str(expires), signature))
		return false;
	signature[2 * HASH_BYTES] = key_id;
	signature[SIGNED_ROUTE_SIZE] = '\0';
	return true;
}
