/* SPDX-License-Identifier: Apache-2.0 */
/* cert.h - certificates as bytes: DER and PEM, and OpenSSL's errors
 *
 * No private keys here: every role may use it.
 */
#pragma once

#include <stddef.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;
struct x509_st; /* X509 */

enum {
	CERT_DER_MAX = 16 * 1024, /* one certificate */
	CERT_NAME_SIZE = 256,	  /* text of a subject */
};

/* Exactly one certificate. 0 and a reference the caller owns (X509_free), or
 * -EINVAL. */
WUNRES int cert_from_der(struct span der, struct x509_st **ret);
/* Appends. 0, -ENOBUFS, -EIO. */
WUNRES int cert_to_der(const struct x509_st *cert, struct buf *dst);
WUNRES int cert_to_pem(const struct x509_st *cert, struct buf *dst);
/* DER in, PEM appended: the CA's certificate for a sandbox or an operator. */
WUNRES int cert_der_to_pem(struct span der, struct buf *dst);

/* "CN = ..." for people, cut to fit. Returns dst. */
const char *cert_subject(const struct x509_st *cert, char *dst, size_t size);

/* Takes everything out of OpenSSL's error queue of this thread and puts the
 * first reason into dst ("unknown error" when there was none). Returns dst. */
const char *cert_error_text(char *dst, size_t size);
/* The same, for when nobody reads the reason: logs it at debug level and
 * returns r, which is < 0. */
int cert_error(int r);
