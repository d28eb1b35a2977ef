/* SPDX-License-Identifier: Apache-2.0 */
/* tls_party.h - a certificate made at test time, and SSL objects from it */
#pragma once

#include "tests/unit/io/party.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

struct tls_world {
	SSL_CTX *server, *client; /* client trusts the server's certificate */
	X509 *cert;
	EVP_PKEY *key;
};

static X509 *cert_new(EVP_PKEY *key)
{
	X509 *cert = X509_new();
	X509_NAME *name = X509_get_subject_name(cert);
	X509_EXTENSION *san;

	X509_set_version(cert, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), -60);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
				   (const unsigned char *)"test", -1, -1, 0);
	X509_set_issuer_name(cert, name);
	X509_set_pubkey(cert, key);
	san = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name,
				  "DNS:origin.test");
	X509_add_ext(cert, san, -1);
	X509_EXTENSION_free(san);
	assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
	return cert;
}

/* Contexts of streams', which hand over once the handshake is done; else
 * OpenSSL's own. */
static bool tls_world_hands_over;

static SSL_CTX *ctx_new(bool server, int version)
{
	SSL_CTX *ctx = tls_world_hands_over
			       ? stream_tls_context_new(server)
			       : SSL_CTX_new(server ? TLS_server_method()
						    : TLS_client_method());

	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION);
	if (version) {
		SSL_CTX_set_min_proto_version(ctx, version);
		SSL_CTX_set_max_proto_version(ctx, version);
	}
	return ctx;
}

/* version: 0 = the newest. */
static inline void tls_world_init(struct tls_world *w, int version)
{
	w->key = EVP_EC_gen("P-256");
	assert_non_null(w->key);
	w->cert = cert_new(w->key);
	w->server = ctx_new(true, version);
	w->client = ctx_new(false, version);
	assert_int_equal(SSL_CTX_use_certificate(w->server, w->cert), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(w->server, w->key), 1);
	X509_STORE_add_cert(SSL_CTX_get_cert_store(w->client), w->cert);
	SSL_CTX_set_verify(w->client, SSL_VERIFY_PEER, NULL);
}

static inline void tls_world_fini(struct tls_world *w)
{
	SSL_CTX_free(w->server);
	SSL_CTX_free(w->client);
	X509_free(w->cert);
	EVP_PKEY_free(w->key);
}

static inline SSL *ssl_server(struct tls_world *w)
{
	SSL *ssl = SSL_new(w->server);

	SSL_set_accept_state(ssl);
	return ssl;
}

static inline SSL *ssl_client(struct tls_world *w, const char *name)
{
	SSL *ssl = SSL_new(w->client);

	SSL_set_connect_state(ssl);
	SSL_set_tlsext_host_name(ssl, name);
	SSL_set1_host(ssl, name);
	return ssl;
}
