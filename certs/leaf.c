/* SPDX-License-Identifier: Apache-2.0 */
/* leaf.c - a certificate for one name, as narrow as it can be
 *
 * One SAN, one purpose (serverAuth), days instead of years, and no pointer to
 * a CRL or an OCSP responder: a client would wait for one that nobody serves.
 * A name longer than an X.520 common name (64 bytes) leaves the subject empty
 * and makes the SAN critical, as RFC 5280 4.2.1.6 wants.
 *
 * The public key is not made an EVP_PKEY. OpenSSL 3.0 looks for a decoder among
 * all it has to make one, and for an encoder to write it down again: that is
 * five times what all the rest of a leaf costs, the signature included. A key
 * of P-256 has one form in DER (RFC 5480; leaf_spki() writes it), so its point
 * is found by where it stands, and is asked to be one of the curve.
 */

#include "certs/leaf.h"

#include <errno.h>
#include <openssl/ec.h>
#include <string.h>
#include <time.h>

#include "certs/ca.h"
#include "certs/cert.h"
#include "certs/ext.h"
#include "certs/leaf_key.h"
#include "certs/ossl.h"
#include "src/base/addr.h"
#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/wire/host.h"

enum {
	COMMON_NAME_MAX = 64,
	DAY_S = 24 * 3600,
	POINT_BYTES = 65, /* not compressed: 4, X, Y */
};

/* What the leaf will be for. */
struct leaf_name {
	struct host host; /* canonical name, or the literal's text */
	struct addr address;
	bool is_address;
};

static int name_parse(struct span name, struct leaf_name *ret, struct diag *d)
{
	char shown[300];

	*ret = (struct leaf_name){ 0 };
	if (addr_parse(name, &ret->address)) {
		ret->is_address = true;
		(void)addr_text(&ret->address, ret->host.text,
				sizeof(ret->host.text));
		ret->host.len = (uint8_t)strlen(ret->host.text);
		return 0;
	}
	if (host_canon(name, &ret->host) &&
	    span_eq(host_span(&ret->host), name))
		return 0;
	return diag_set(d, 0, 0,
			"found the name \"%s\", expected a canonical host name "
			"or an IP address",
			log_escape(name, shown, sizeof(shown)));
}

static bool is_on_curve(struct span point)
{
	EC_GROUP *group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
	EC_POINT *p = group ? EC_POINT_new(group) : NULL;
	bool ok = p &&
		  EC_POINT_oct2point(group, p, (const unsigned char *)point.ptr,
				     point.len, NULL);

	EC_POINT_free(p);
	EC_GROUP_free(group);
	return ok;
}

/* *ret: the point, in spki. */
static int key_parse(struct span spki, struct span *ret, struct diag *d)
{
	/* SEQUENCE { SEQUENCE { id-ecPublicKey, prime256v1 }, BIT STRING, of
	 * which no bit is unused; POINT_CONVERSION_UNCOMPRESSED */
	static const char head[] =
		"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01"
		"\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00"
		"\x04";
	const size_t before = sizeof(head) - 2; /* the point's first byte */

	*ret = SPAN_NONE;
	if (spki.len == before + POINT_BYTES &&
	    span_eq(span_of(spki.ptr, sizeof(head) - 1),
		    span_of(head, sizeof(head) - 1)) &&
	    is_on_curve(span_from(spki, before))) {
		*ret = span_from(spki, before);
		return 0;
	}
	(void)cert_error(-EINVAL);
	return diag_set(d, 0, 0,
			"the public key is no P-256 SubjectPublicKeyInfo in "
			"DER");
}

static bool key_put(X509 *cert, struct span point)
{
	unsigned char *copy =
		OPENSSL_memdup(point.ptr, point.len); /* the certificate's */

	if (copy &&
	    X509_PUBKEY_set0_param(
		    X509_get_X509_PUBKEY(cert),
		    OBJ_nid2obj(NID_X9_62_id_ecPublicKey), V_ASN1_OBJECT,
		    OBJ_nid2obj(NID_X9_62_prime256v1), copy, (int)point.len))
		return true;
	OPENSSL_free(copy);
	return false;
}

static int validity_put(X509 *cert, const X509 *ca, uint64_t now_ms,
			struct diag *d)
{
	time_t now = (time_t)(now_ms / 1000);
	time_t end = now + LEAF_DAYS * DAY_S;
	const ASN1_TIME *ca_end = X509_get0_notAfter(ca);
	int ok;

	if (ASN1_TIME_cmp_time_t(ca_end, now) <= 0)
		return diag_set(d, 0, 0, "the CA certificate has expired");
	ok = ASN1_TIME_set(X509_getm_notBefore(cert), now - LEAF_BACKDATE_S) !=
	     NULL;
	if (ok && ASN1_TIME_cmp_time_t(ca_end, end) < 0)
		ok = X509_set1_notAfter(cert, ca_end);
	else if (ok)
		ok = ASN1_TIME_set(X509_getm_notAfter(cert), end) != NULL;
	return ok ? 0 : cert_error(err_origin(-EIO));
}

static int subject_put(X509 *cert, const struct leaf_name *name)
{
	bool has_name = name->host.len <= COMMON_NAME_MAX;
	const unsigned char *text = (const unsigned char *)name->host.text;

	if (has_name && !X509_NAME_add_entry_by_NID(
				X509_get_subject_name(cert), NID_commonName,
				MBSTRING_ASC, text, name->host.len, -1, 0))
		return cert_error(err_origin(-EIO));
	return ext_alt_name(cert, host_span(&name->host),
			    name->is_address ? &name->address : NULL,
			    !has_name);
}

int leaf_sign(const struct ca *ca, struct span name, struct span spki,
	      uint64_t now_ms, struct buf *dst, struct diag *d)
{
	CLEANUP(cleanup_x509) X509 *cert = X509_new();
	struct leaf_name parsed;
	struct span point;
	int r;

	if (!cert)
		return cert_error(err_origin(-ENOMEM));
	if ((r = name_parse(name, &parsed, d)) ||
	    (r = key_parse(spki, &point, d)) ||
	    (r = validity_put(cert, ca_cert(ca), now_ms, d)) ||
	    (r = ext_serial(cert)) || (r = subject_put(cert, &parsed)) ||
	    (r = ext_basic(cert, false)) ||
	    (r = ext_key_usage(cert, EXT_USAGE_LEAF)) ||
	    (r = ext_server_auth(cert)) ||
	    (r = ext_authority_key_id(cert, ca_cert(ca))))
		return r;
	if (!X509_set_version(cert, X509_VERSION_3) ||
	    !X509_set_issuer_name(cert, X509_get_subject_name(ca_cert(ca))) ||
	    !key_put(cert, point) || !X509_sign(cert, ca_key(ca), EVP_sha256()))
		return cert_error(err_origin(-EIO));
	return cert_to_der(cert, dst);
}
