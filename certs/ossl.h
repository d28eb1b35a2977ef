/* SPDX-License-Identifier: Apache-2.0 */
/* ossl.h - cleanup attributes for OpenSSL's objects; private to certs/ */
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "src/base/attrib.h"

#define OSSL_CLEANUP(name, type, fn)                \
	static inline void cleanup_##name(type **p) \
	{                                           \
		fn(*p);                             \
	}

OSSL_CLEANUP(bio, BIO, BIO_free_all)
OSSL_CLEANUP(pkey, EVP_PKEY, EVP_PKEY_free)
OSSL_CLEANUP(x509, X509, X509_free)
OSSL_CLEANUP(general_names, GENERAL_NAMES, GENERAL_NAMES_free)
OSSL_CLEANUP(general_name, GENERAL_NAME, GENERAL_NAME_free)
OSSL_CLEANUP(octets, ASN1_OCTET_STRING, ASN1_OCTET_STRING_free)
OSSL_CLEANUP(bits, ASN1_BIT_STRING, ASN1_BIT_STRING_free)
OSSL_CLEANUP(basic, BASIC_CONSTRAINTS, BASIC_CONSTRAINTS_free)
OSSL_CLEANUP(key_id, AUTHORITY_KEYID, AUTHORITY_KEYID_free)
OSSL_CLEANUP(usages, EXTENDED_KEY_USAGE, EXTENDED_KEY_USAGE_free)
OSSL_CLEANUP(store, X509_STORE, X509_STORE_free)
