/* SPDX-License-Identifier: Apache-2.0 */
/* tls.c - the operator's certificate, and connections under it
 *
 * How it works: a context has no certificate of its own; each handshake takes
 * the present one, so that another one takes its place without a connection
 * being lost and without the context's users knowing of it.
 *
 * The rest of the server knows of this file only what httpd_tls_new() tells
 * it: a program that never calls that is linked without OpenSSL.
 */

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/err.h"
#include "src/base/fd.h"
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

/* -- what the operator gave ------------------------------------------------ */

/* The present certificate of a context. Handshakes of several loops take it,
 * one loop exchanges it. */
struct shown {
	pthread_mutex_t lock;
	X509 *certificate;
	STACK_OF(X509) * chain;
	EVP_PKEY *key;
};

static void shown_clear(struct shown *s)
{
	X509_free(s->certificate);
	sk_X509_pop_free(s->chain, X509_free);
	EVP_PKEY_free(s->key);
	s->certificate = NULL;
	s->chain = NULL;
	s->key = NULL;
}

static int fail(const char *what, char *why, size_t why_size)
{
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());

	(void)snprintf(why, why_size, "%s could not be used: %s", what,
		       reason ? reason : "unknown reason");
	ERR_clear_error();
	return -EINVAL;
}

/* A key that asks for a pass phrase has nobody to ask. */
static int no_phrase(char *buf, int size, int rwflag, void *ctx)
{
	(void)buf;
	(void)size;
	(void)rwflag;
	(void)ctx;
	return -1;
}

/* The certificate, and those behind it up to the end of the file. */
static bool read_chain(BIO *bio, struct shown *s)
{
	X509 *next;

	s->certificate = PEM_read_bio_X509_AUX(bio, NULL, no_phrase, NULL);
	s->chain = sk_X509_new_null();
	if (!s->certificate || !s->chain)
		return false;
	while ((next = PEM_read_bio_X509(bio, NULL, no_phrase, NULL)))
		if (!sk_X509_push(s->chain, next)) {
			X509_free(next);
			return false;
		}
	/* the end of the file is an error too: "no start line" */
	if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
		return false;
	ERR_clear_error();
	return true;
}

static int read_all(int certificate, int key, struct shown *s, char *why,
		    size_t why_size)
{
	BIO *bio = BIO_new_fd(certificate, BIO_NOCLOSE);
	bool good = bio && read_chain(bio, s);

	BIO_free(bio);
	if (!good)
		return fail("the certificate", why, why_size);
	bio = BIO_new_fd(key, BIO_NOCLOSE);
	if (bio)
		s->key = PEM_read_bio_PrivateKey(bio, NULL, no_phrase, NULL);
	BIO_free(bio);
	if (!s->key || X509_check_private_key(s->certificate, s->key) != 1)
		return fail("the key", why, why_size);
	return 0;
}

/* Of every handshake. */
static int tls_show(SSL *ssl, void *arg)
{
	struct shown *s = arg;
	int good;

	(void)pthread_mutex_lock(&s->lock);
	good = SSL_use_cert_and_key(ssl, s->certificate, s->key, s->chain, 1);
	(void)pthread_mutex_unlock(&s->lock);
	return good;
}

/* Is it taken? An algorithm or a size that this OpenSSL refuses would else be
 * found by the first client. */
static int try_out(SSL_CTX *tls, const struct shown *s, char *why,
		   size_t why_size)
{
	SSL *ssl = SSL_new(tls);
	int good = ssl && SSL_use_cert_and_key(ssl, s->certificate, s->key,
					       s->chain, 1);

	SSL_free(ssl);
	return good ? 0 : fail("the certificate", why, why_size);
}

int httpd_tls_renew(SSL_CTX *tls, int certificate, int key, char *why,
		    size_t why_size)
{
	struct shown *now = SSL_CTX_get_app_data(tls), next = { 0 };
	bool same;
	int r;

	r = read_all(certificate, key, &next, why, why_size);
	if (!r)
		r = try_out(tls, &next, why, why_size);
	if (r) {
		shown_clear(&next);
		return r;
	}
	(void)pthread_mutex_lock(&now->lock);
	same = now->certificate &&
	       !X509_cmp(now->certificate, next.certificate);
	shown_clear(now);
	now->certificate = next.certificate;
	now->chain = next.chain;
	now->key = next.key;
	(void)pthread_mutex_unlock(&now->lock);
	return same ? HTTPD_TLS_SAME : 0;
}

/* -- contexts -------------------------------------------------------------- */

static int tls_start(struct ssl_ctx_st *tls, struct stream *s)
{
	SSL *ssl = SSL_new(tls);

	if (!ssl)
		return err_origin(-ENOMEM);
	SSL_set_accept_state(ssl);
	return stream_start_tls(s, ssl);
}

static int file_open(const char *what, const char *path, char *why,
		     size_t why_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		(void)snprintf(why, why_size, "%s %s could not be opened: %s",
			       what, path, err_text(errno));
	return fd;
}

static int files_read(SSL_CTX *tls, const char *certificate, const char *key,
		      char *why, size_t why_size)
{
	char reason[256] = "";
	int fd CLEANUP_FD =
		file_open("certificate", certificate, why, why_size);
	int key_fd CLEANUP_FD = -1;
	int r;

	if (fd < 0)
		return -EINVAL;
	key_fd = file_open("key", key, why, why_size);
	if (key_fd < 0)
		return -EINVAL;
	r = httpd_tls_renew(tls, fd, key_fd, reason, sizeof(reason));
	if (r < 0)
		(void)snprintf(why, why_size, "%s (%s, %s)", reason,
			       certificate, key);
	return MIN(r, 0);
}

int httpd_tls_new(const char *certificate, const char *key, char *why,
		  size_t why_size, SSL_CTX **ret)
{
	SSL_CTX *tls = stream_tls_context_new(true);
	struct shown *s = must_alloc(sizeof(*s));
	int r;

	must(!pthread_mutex_init(&s->lock, NULL));
	if (!tls) {
		free(s);
		return err_origin(-ENOMEM);
	}
	(void)SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION);
	(void)SSL_CTX_set_options(tls, SSL_OP_NO_RENEGOTIATION |
					       SSL_OP_CIPHER_SERVER_PREFERENCE |
					       SSL_OP_CLEANSE_PLAINTEXT);
	SSL_CTX_set_alpn_select_cb(tls, tls_choose_alpn, NULL);
	SSL_CTX_set_cert_cb(tls, tls_show, s);
	SSL_CTX_set_app_data(tls, s);
	r = files_read(tls, certificate, key, why, why_size);
	if (r) {
		httpd_tls_free(tls);
		return r;
	}
	httpd_tls_start = tls_start;
	*ret = tls;
	return 0;
}

SSL_CTX *httpd_tls_free(SSL_CTX *tls)
{
	struct shown *s = tls ? SSL_CTX_get_app_data(tls) : NULL;

	SSL_CTX_free(tls);
	if (s) {
		shown_clear(s);
		(void)pthread_mutex_destroy(&s->lock);
		free(s);
	}
	return NULL;
}
