/* SPDX-License-Identifier: Apache-2.0 */
/* client_ctx.c - TLS towards sandboxes */

#include "gateway/tls/client_ctx.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>

#include "gateway/tls/suites.h"
#include "src/base/err.h"
#include "src/io/stream.h"

/* What the origin speaks, where the client lets us choose; the other is bridged
 * for a client that speaks nothing else. One that offers only what we do not
 * speak is told so by the alert that RFC 7301 asks for. */
static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
		   const unsigned char *in, unsigned in_len, void *ctx)
{
	static const unsigned char newest[] = "\x02h2\x08http/1.1";
	static const unsigned char oldest[] = "\x08http/1.1\x02h2";
	bool h2 = SSL_get_app_data(ssl) != NULL;

	(void)ctx;
	if (SSL_select_next_proto((unsigned char **)out, out_len,
				  h2 ? newest : oldest, sizeof(newest) - 1, in,
				  in_len) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	return SSL_TLSEXT_ERR_OK;
}

int client_ctx_new(struct ssl_ctx_st **ret)
{
	SSL_CTX *ctx = stream_tls_context_new(true);

	if (!ctx || !SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) ||
	    !SSL_CTX_set1_groups_list(ctx, "X25519:P-256:P-384") ||
	    !SSL_CTX_set_ciphersuites(ctx, TLS_SUITES))
		return err_origin(-EIO);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION |
					 SSL_OP_NO_COMPRESSION |
					 SSL_OP_CIPHER_SERVER_PREFERENCE |
					 SSL_OP_PRIORITIZE_CHACHA);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_num_tickets(ctx, 1);
	SSL_CTX_set_alpn_select_cb(ctx, on_alpn, NULL);
	*ret = ctx;
	return 0;
}

/* sandbox NUL name, hashed to the 32 bytes that a session may carry. */
static bool ssl_tie(SSL *ssl, struct span sandbox, struct span name)
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	unsigned char id[EVP_MAX_MD_SIZE];
	unsigned len = 0;
	bool ok;

	ok = md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) &&
	     EVP_DigestUpdate(md, sandbox.ptr, sandbox.len) &&
	     EVP_DigestUpdate(md, "", 1) &&
	     EVP_DigestUpdate(md, name.ptr, name.len) &&
	     EVP_DigestFinal_ex(md, id, &len) &&
	     SSL_set_session_id_context(ssl, id, len);
	EVP_MD_CTX_free(md);
	return ok;
}

struct ssl_st *client_ssl_new(struct ssl_ctx_st *ctx, struct x509_st *leaf,
			      struct evp_pkey_st *key, struct span sandbox,
			      struct span name, bool h2)
{
	static char speaks_h2; /* only its address matters */
	SSL *ssl = SSL_new(ctx);

	if (!ssl)
		return NULL;
	SSL_set_accept_state(ssl);
	SSL_set_app_data(ssl, h2 ? &speaks_h2 : NULL);
	if (!SSL_use_certificate(ssl, leaf) || !SSL_use_PrivateKey(ssl, key) ||
	    !ssl_tie(ssl, sandbox, name)) {
		SSL_free(ssl);
		return NULL;
	}
	return ssl;
}
