/* SPDX-License-Identifier: Apache-2.0 */
/* ext.c - X.509 extensions, built as objects and not from text
 *
 * OpenSSL's text configuration ("subjectAltName=DNS:...") would let a name
 * with a comma say more than one thing; objects cannot.
 */

#include "certs/ext.h"

#include <errno.h>

#include <openssl/objects.h>
#include <openssl/rand.h>

#include "certs/cert.h"
#include "certs/ossl.h"
#include "src/base/err.h"

enum { SERIAL_BYTES = 16, KEY_USAGE_CERT_SIGN = 5, KEY_USAGE_CRL_SIGN = 6 };

static int done(int ok)
{
	return ok ? 0 : cert_error(err_origin(-EIO));
}

int ext_serial(struct x509_st *cert)
{
	unsigned char bytes[SERIAL_BYTES];
	BIGNUM *number = NULL;
	int ok = RAND_bytes(bytes, sizeof(bytes)) == 1;

	bytes[0] = (bytes[0] & 0x7f) | 0x40; /* positive, of full length */
	if (ok)
		number = BN_bin2bn(bytes, sizeof(bytes), NULL);
	ok = number &&
	     BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert)) != NULL;
	BN_free(number);
	return done(ok);
}

int ext_basic(struct x509_st *cert, bool is_ca)
{
	CLEANUP(cleanup_basic)
	BASIC_CONSTRAINTS *basic = BASIC_CONSTRAINTS_new();

	if (!basic)
		return done(0);
	if (is_ca) {
		basic->ca = 0xff;
		basic->pathlen = ASN1_INTEGER_new();
		if (!basic->pathlen || !ASN1_INTEGER_set(basic->pathlen, 0))
			return done(0);
	}
	return done(
		X509_add1_ext_i2d(cert, NID_basic_constraints, basic, 1, 0));
}

int ext_key_usage(struct x509_st *cert, enum ext_usage usage)
{
	CLEANUP(cleanup_bits) ASN1_BIT_STRING *bits = ASN1_BIT_STRING_new();
	int ok = bits != NULL;

	if (ok && usage == EXT_USAGE_LEAF)
		ok = ASN1_BIT_STRING_set_bit(bits, 0, 1);
	if (ok && usage == EXT_USAGE_CA)
		ok = ASN1_BIT_STRING_set_bit(bits, KEY_USAGE_CERT_SIGN, 1) &&
		     ASN1_BIT_STRING_set_bit(bits, KEY_USAGE_CRL_SIGN, 1);
	return done(ok && X509_add1_ext_i2d(cert, NID_key_usage, bits, 1, 0));
}

int ext_server_auth(struct x509_st *cert)
{
	CLEANUP(cleanup_usages)
	EXTENDED_KEY_USAGE *usages = EXTENDED_KEY_USAGE_new();

	/* objects of the table are static: the stack may free them */
	return done(usages &&
		    sk_ASN1_OBJECT_push(usages, OBJ_nid2obj(NID_server_auth)) &&
		    X509_add1_ext_i2d(cert, NID_ext_key_usage, usages, 0, 0));
}

int ext_subject_key_id(struct x509_st *cert)
{
	CLEANUP(cleanup_octets)
	ASN1_OCTET_STRING *id = ASN1_OCTET_STRING_new();
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned len;

	return done(
		id && X509_pubkey_digest(cert, EVP_sha1(), digest, &len) &&
		ASN1_OCTET_STRING_set(id, digest, (int)len) &&
		X509_add1_ext_i2d(cert, NID_subject_key_identifier, id, 0, 0));
}

int ext_authority_key_id(struct x509_st *cert, struct x509_st *issuer)
{
	CLEANUP(cleanup_key_id) AUTHORITY_KEYID *id = AUTHORITY_KEYID_new();

	if (!id)
		return done(0);
	/* X509_get0_subject_key_id() would want a signed issuer, and a new CA
	 * is its own, unsigned yet */
	id->keyid = X509_get_ext_d2i(issuer, NID_subject_key_identifier, NULL,
				     NULL);
	return done(id->keyid &&
		    X509_add1_ext_i2d(cert, NID_authority_key_identifier, id, 0,
				      0));
}

/* One GENERAL_NAME of either kind; NULL on failure. */
static GENERAL_NAME *alt_name_new(struct span host, const struct addr *address)
{
	CLEANUP(cleanup_general_name) GENERAL_NAME *name = GENERAL_NAME_new();
	size_t skip = address && addr_is_v4(address) ? 12 : 0;
	ASN1_STRING *value =
		address ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();
	int ok;

	if (!name || !value) {
		ASN1_STRING_free(value);
		return NULL;
	}
	GENERAL_NAME_set0_value(name, address ? GEN_IPADD : GEN_DNS, value);
	if (address)
		ok = ASN1_STRING_set(value, address->ip + skip,
				     (int)(sizeof(address->ip) - skip));
	else
		ok = ASN1_STRING_set(value, host.ptr, (int)host.len);
	return ok ? take_ptr(name) : NULL;
}

int ext_alt_name(struct x509_st *cert, struct span host,
		 const struct addr *address, bool critical)
{
	CLEANUP(cleanup_general_names)
	GENERAL_NAMES *names = GENERAL_NAMES_new();
	GENERAL_NAME *name = names ? alt_name_new(host, address) : NULL;

	if (!name)
		return done(0);
	if (!sk_GENERAL_NAME_push(names, name)) {
		GENERAL_NAME_free(name);
		return done(0);
	}
	return done(X509_add1_ext_i2d(cert, NID_subject_alt_name, names,
				      critical, 0));
}
