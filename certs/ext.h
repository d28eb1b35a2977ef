/* SPDX-License-Identifier: Apache-2.0 */
/* ext.h - the X.509 extensions that we write; private to certs/
 *
 * All: 0 or -EIO, OpenSSL's queue drained.
 */
#pragma once

#include <stdbool.h>

#include "src/base/addr.h"
#include "src/base/attrib.h"
#include "src/base/span.h"

struct x509_st;

enum ext_usage {
	EXT_USAGE_LEAF, /* digitalSignature */
	EXT_USAGE_CA,	/* keyCertSign, cRLSign */
};

/* 16 random bytes, positive (RFC 5280 4.1.2.2 allows 20). */
WUNRES int ext_serial(struct x509_st *cert);
/* A CA gets pathlen 0. Critical. */
WUNRES int ext_basic(struct x509_st *cert, bool is_ca);
/* Critical. */
WUNRES int ext_key_usage(struct x509_st *cert, enum ext_usage usage);
WUNRES int ext_server_auth(struct x509_st *cert);
/* SHA-1 of the public key bits (RFC 5280 4.2.1.2): a name, not a proof. */
WUNRES int ext_subject_key_id(struct x509_st *cert);
/* Names the issuer's subject key id. */
WUNRES int ext_authority_key_id(struct x509_st *cert, struct x509_st *issuer);
/* Exactly one name: `address` when not NULL, else `host`. critical: the
 * subject is empty (RFC 5280 4.2.1.6). */
WUNRES int ext_alt_name(struct x509_st *cert, struct span host,
			const struct addr *address, bool critical);
