/* SPDX-License-Identifier: Apache-2.0 */
/* envelope.h - the cryptography of the vault: AES-256-GCM, HMAC, scrypt
 *
 * The only file of vault/ that meets OpenSSL. Keys arrive in struct secret;
 * OpenSSL's own copies (key schedules) are cleansed when they are freed. One
 * object serves one thread. Nonces have ENVELOPE_NONCE_SIZE bytes.
 */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct secret;
struct envelope;
struct envelope_mac;

enum {
	ENVELOPE_KEY_SIZE = 32,
	ENVELOPE_NONCE_SIZE = 12,
	ENVELOPE_TAG_SIZE = 16,
	ENVELOPE_MAC_SIZE = 32,
	ENVELOPE_E_FORGED = 1, /* wrong key, wrong place, or changed bytes */
};

/* A key ready for use. 0 or -EIO. */
WUNRES int envelope_new(const struct secret *key, struct envelope **ret);
struct envelope *envelope_free(struct envelope *e);

/* dst: plain.len + ENVELOPE_TAG_SIZE bytes. A nonce is used once per key. */
WUNRES int envelope_seal(struct envelope *e, const uint8_t *nonce,
			 struct span aad, struct span plain, char *dst);
/* dst: sealed.len - ENVELOPE_TAG_SIZE bytes; wiped on failure. 0,
 * ENVELOPE_E_FORGED, -EIO. */
WUNRES int envelope_open(struct envelope *e, const uint8_t *nonce,
			 struct span aad, struct span sealed, char *dst);

/* HMAC-SHA-256 under one key, many times; ret: ENVELOPE_MAC_SIZE bytes. */
WUNRES int envelope_mac_new(const struct secret *key,
			    struct envelope_mac **ret);
struct envelope_mac *envelope_mac_free(struct envelope_mac *m);
WUNRES int envelope_mac_run(struct envelope_mac *m, const struct span *parts,
			    unsigned count, uint8_t *ret);

/* A key for one purpose: HMAC(key, label). */
WUNRES int envelope_derive(const struct secret *key, struct span label,
			   struct secret **ret);
/* 32 bytes by scrypt (RFC 7914), N = 2^log2_n. 0, -ENOMEM, -EIO. */
WUNRES int envelope_scrypt(const struct secret *passphrase, struct span salt,
			   unsigned log2_n, unsigned block, unsigned parallel,
			   struct secret **ret);
/* Never fails: a vault without randomness stops. */
void envelope_random(void *dst, size_t len);
