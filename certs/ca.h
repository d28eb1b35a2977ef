/* SPDX-License-Identifier: Apache-2.0 */
/* ca.h - the node's certificate authority; vault role only
 *
 * ECDSA P-256, self-signed, ten years, may sign leaves and nothing else
 * (pathlen 0). Its key leaves this folder only as DER inside a struct secret,
 * on its way into a sealed record.
 */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct ca;
struct diag;
struct evp_pkey_st;
struct secret;
struct x509_st;

enum { CA_DAYS = 3650 };

/* A new one, valid from an hour before now_ms (wall clock). 0 or -EIO. */
WUNRES int ca_new(uint64_t now_ms, struct ca **ret);
/* From what ca_key_der() and ca_cert_der() gave. 0, or -EINVAL with d: not a
 * key or certificate, the two do not belong together, no CA, expired. */
WUNRES int ca_load(struct span key_der, struct span cert_der, uint64_t now_ms,
		   struct ca **ret, struct diag *d);
/* NULL is fine; returns NULL. */
struct ca *ca_free(struct ca *ca);

/* Borrowed, as long as the CA. */
struct span ca_cert_der(const struct ca *ca);
/* PKCS#8, not encrypted. 0 and a secret the caller frees, or -errno. */
WUNRES int ca_key_der(const struct ca *ca, struct secret **ret);

/* For leaf.c: borrowed. */
struct evp_pkey_st *ca_key(const struct ca *ca);
struct x509_st *ca_cert(const struct ca *ca);
