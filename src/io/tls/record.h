/* SPDX-License-Identifier: Apache-2.0 */
/* record.h - protection of TLS 1.3 records (RFC 8446 5), one direction
 *
 * What a connection needs of TLS once its handshake is done: keys of a secret,
 * a count of records, and one AEAD operation for each. The AEADs are OpenSSL's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

enum {
	TLS_TYPE_ALERT = 21,
	TLS_TYPE_HANDSHAKE = 22,
	TLS_TYPE_DATA = 23,
};

enum {
	TLS_HEAD_SIZE = 5, /* type, version, length */
	TLS_TAG_SIZE = 16, /* of every suite here */
	TLS_NONCE_SIZE = 12,
	TLS_SECRET_MAX = 48,
	TLS_PLAIN_MAX = 16 * 1024,
	/* What a record adds to its bytes when it is sealed here. */
	TLS_SEAL_SIZE = TLS_HEAD_SIZE + 1 + TLS_TAG_SIZE,
	/* Of a record's length field. */
	TLS_BODY_MAX = TLS_PLAIN_MAX + 256,
};

struct evp_cipher_ctx_st;
struct tls_suite;

struct tls_keys {
	const struct tls_suite *suite;
	struct evp_cipher_ctx_st *cipher;
	uint64_t count; /* records since these keys */
	uint8_t iv[TLS_NONCE_SIZE];
	uint8_t secret[TLS_SECRET_MAX];
	bool seals;
};

/* Bytes of the record at the head of these, its head included; 0: not all of
 * that is there. */
static inline size_t tls_record_size(struct span bytes)
{
	const uint8_t *at = (const uint8_t *)bytes.ptr;

	if (bytes.len < TLS_HEAD_SIZE)
		return 0;
	return TLS_HEAD_SIZE + ((size_t)at[3] << 8U | at[4]);
}

/* Keys of an application traffic secret, under which `count` records went
 * already. suite: a number of RFC 8446 B.4. False: it is unknown, or the secret
 * is not of its length. */
WUNRES bool tls_keys_init(struct tls_keys *k, uint16_t suite,
			  struct span secret, bool seals, uint64_t count);
/* The next keys (RFC 8446 7.2): count begins again. */
void tls_keys_update(struct tls_keys *k);
/* Wipes. Fine when all zero. */
void tls_keys_fini(struct tls_keys *k);

/* One record of at most TLS_PLAIN_MAX bytes, to dst: bytes.len + TLS_SEAL_SIZE
 * of them. */
void tls_seal(struct tls_keys *k, uint8_t type, struct span bytes, char *dst);

/* Opens the record with this head and body (the body's length is that in the
 * head, and more than TLS_TAG_SIZE). dst: body.len - TLS_TAG_SIZE bytes, which
 * may be where the body is. 0, *type and *len (what of dst is the content);
 * else the alert that says what is wrong (RFC 8446 6.2), and dst holds
 * nothing of use. */
WUNRES uint8_t tls_open(struct tls_keys *k, const uint8_t head[TLS_HEAD_SIZE],
			struct span body, char *dst, uint8_t *type,
			size_t *len);

enum {
	TLS_ALERT_CLOSE_NOTIFY = 0,
	TLS_ALERT_UNEXPECTED_MESSAGE = 10,
	TLS_ALERT_BAD_RECORD_MAC = 20,
	TLS_ALERT_RECORD_OVERFLOW = 22,
	TLS_ALERT_DECODE_ERROR = 50,
	TLS_ALERT_USER_CANCELED = 90,
};
