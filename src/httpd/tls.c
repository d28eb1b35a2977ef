/* SPDX-License-Identifier: Apache-2.0 */
/* tls.c - the operator's certificate, and connections under it
 *
 * The rest of the server knows of this file only what httpd_tls_new() tells
 * it: a program that never calls that is linked without OpenSSL.
 */

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>

#include "src/base/err.h"
#include "src/httpd/request.h"
#include "src/io/stream.h"

static int tls_choose_alpn(SSL *ssl, const unsigned char **out,
			   unsigned char *out_len, const unsigned char *in,
			   unsigned in_len, void *arg)
{
	static const unsigned char ours[] = "\x08http/1.1";
	unsigned char *chosen;

	(void)ssl;
	(void)arg;
	if (SSL_select_next_proto(&chosen, out_len, ours, sizeof(ours) - 1, in,
				  in_len) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static int tls_fail(SSL_CTX *tls, const char *what, const char *file, char *why,
		    size_t why_size)
{
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());

	(void)snprintf(why, why_size, "%s %s could not be used: %s", what, file,
		       reason ? reason : "unknown reason");
	ERR_clear_error();
	SSL_CTX_free(tls);
	return -EINVAL;
}

static int tls_start(struct ssl_ctx_st *tls, struct stream *s)
{
	SSL *ssl = SSL_new(tls);

	if (!ssl)
		return err_origin(-ENOMEM);
	SSL_set_accept_state(ssl);
	return stream_start_tls(s, ssl);
}

int httpd_tls_new(const char *certificate, const char *key, char *why,
		  size_t why_size, SSL_CTX **ret)
{
	SSL_CTX *tls = SSL_CTX_new(TLS_server_method());

	if (!tls)
		return err_origin(-ENOMEM);
	(void)SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION);
	(void)SSL_CTX_set_options(tls, SSL_OP_NO_RENEGOTIATION |
					       SSL_OP_CIPHER_SERVER_PREFERENCE |
					       SSL_OP_CLEANSE_PLAINTEXT);
	SSL_CTX_set_alpn_select_cb(tls, tls_choose_alpn, NULL);
	if (SSL_CTX_use_certificate_chain_file(tls, certificate) != 1)
		return tls_fail(tls, "certificate", certificate, why, why_size);
	if (SSL_CTX_use_PrivateKey_file(tls, key, SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_check_private_key(tls) != 1)
		return tls_fail(tls, "key", key, why, why_size);
	httpd_tls_start = tls_start;
	*ret = tls;
	return 0;
}

SSL_CTX *httpd_tls_free(SSL_CTX *tls)
{
	SSL_CTX_free(tls);
	return NULL;
}
