/* SPDX-License-Identifier: Apache-2.0 */
/* leaf_key.h - the one key that all leaves of a gateway certify
 *
 * It is made in the gateway and never leaves it; the vault role sees its
 * public half only.
 */
#pragma once

#include "src/base/attrib.h"

struct buf;
struct evp_pkey_st; /* EVP_PKEY */

enum { LEAF_SPKI_MAX = 256 };

/* A fresh P-256 key; the caller frees it with EVP_PKEY_free(). 0 or -EIO. */
WUNRES int leaf_key_new(struct evp_pkey_st **ret);
/* Appends the SubjectPublicKeyInfo, DER: the tail of MSG_GATEWAY_SIGN. */
WUNRES int leaf_spki(const struct evp_pkey_st *key, struct buf *dst);
