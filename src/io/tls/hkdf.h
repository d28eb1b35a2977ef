/* SPDX-License-Identifier: Apache-2.0 */
/* hkdf.h - HKDF (RFC 5869) as TLS 1.3 uses it (RFC 8446 7.1) */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

enum { TLS_HASH_MAX = 48 };

/* One of OpenSSL's hashes, fetched once. */
struct tls_hash {
	const char *name;
	size_t size, block_size;
	struct evp_md_st *md;
};

/* "SHA256" or "SHA384", in any case; NULL: no suite of TLS 1.3 has it. */
const struct tls_hash *tls_hash_find(struct span name);

/* Of no bytes: h->size bytes, as of each function here that says no length. */
void tls_hash_nothing(const struct tls_hash *h, uint8_t *dst);
/* HKDF-Extract. */
void tls_extract(const struct tls_hash *h, struct span salt, struct span input,
		 uint8_t *dst);
/* HKDF-Expand-Label: `label` has its prefix "tls13 " already. False: a label,
 * context or length that is too long for it. */
WUNRES bool tls_expand(const struct tls_hash *h, struct span secret,
		       struct span label, struct span context, uint8_t *dst,
		       size_t len);
