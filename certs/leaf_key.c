/* SPDX-License-Identifier: Apache-2.0 */
/* leaf_key.c - make a P-256 key, give out its public half */

#include "certs/leaf_key.h"

#include <errno.h>

#include "certs/cert.h"
#include "certs/ossl.h"
#include "src/base/buf.h"
#include "src/base/err.h"

int leaf_key_new(struct evp_pkey_st **ret)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");

	if (!key)
		return cert_error(err_origin(-EIO));
	*ret = key;
	return 0;
}

int leaf_spki(const struct evp_pkey_st *key, struct buf *dst)
{
	unsigned char *der = NULL;
	int len = i2d_PUBKEY(key, &der);
	int r;

	if (len <= 0)
		return cert_error(err_origin(-EIO));
	r = buf_put(dst, span_of(der, (size_t)len));
	OPENSSL_free(der);
	return r;
}
