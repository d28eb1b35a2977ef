/* SPDX-License-Identifier: Apache-2.0 */
/* cert.c - certificates in and out of DER and PEM */

#include "certs/cert.h"

#include <errno.h>
#include <stdio.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include "certs/ossl.h"
#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/log.h"

const char *cert_error_text(char *dst, size_t size)
{
	unsigned long first = ERR_get_error();
	const char *reason = first ? ERR_reason_error_string(first) : NULL;

	(void)snprintf(dst, size, "%s", reason ? reason : "unknown error");
	ERR_clear_error();
	return dst;
}

int cert_error(int r)
{
	char text[128];

	cert_error_text(text, sizeof(text));
	log_debug("OpenSSL refused: %s", text);
	return r;
}

int cert_from_der(struct span der, struct x509_st **ret)
{
	const unsigned char *at = (const unsigned char *)der.ptr;
	CLEANUP(cleanup_x509) X509 *cert = NULL;

	if (!der.len || der.len > CERT_DER_MAX)
		return err_origin(-EINVAL);
	cert = d2i_X509(NULL, &at, (long)der.len);
	if (!cert || at != (const unsigned char *)der.ptr + der.len)
		return cert_error(err_origin(-EINVAL));
	*ret = take_ptr(cert);
	return 0;
}

int cert_to_der(const struct x509_st *cert, struct buf *dst)
{
	int len = i2d_X509(cert, NULL);
	unsigned char *at;
	char *room;
	int r;

	if (len <= 0)
		return cert_error(err_origin(-EIO));
	r = buf_reserve(dst, (size_t)len, &room);
	if (r)
		return r;
	at = (unsigned char *)room;
	if (i2d_X509(cert, &at) != len)
		return cert_error(err_origin(-EIO));
	buf_commit(dst, (size_t)len);
	return 0;
}

int cert_to_pem(const struct x509_st *cert, struct buf *dst)
{
	CLEANUP(cleanup_bio) BIO *bio = BIO_new(BIO_s_mem());
	char *text;
	long len;

	if (!bio || !PEM_write_bio_X509(bio, cert))
		return cert_error(err_origin(-EIO));
	len = BIO_get_mem_data(bio, &text);
	return buf_put(dst, span_of(text, (size_t)len));
}

int cert_der_to_pem(struct span der, struct buf *dst)
{
	CLEANUP(cleanup_x509) X509 *cert = NULL;
	int r = cert_from_der(der, &cert);

	return r ? r : cert_to_pem(cert, dst);
}

const char *cert_subject(const struct x509_st *cert, char *dst, size_t size)
{
	CLEANUP(cleanup_bio) BIO *bio = BIO_new(BIO_s_mem());
	char *text = NULL;
	long len = 0;

	if (bio && X509_NAME_print_ex(bio, X509_get_subject_name(cert), 0,
				      XN_FLAG_ONELINE) >= 0)
		len = BIO_get_mem_data(bio, &text);
	return log_escape(span_of(text, len > 0 ? (size_t)len : 0), dst, size);
}
