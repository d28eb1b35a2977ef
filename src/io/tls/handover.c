/* SPDX-License-Identifier: Apache-2.0 */
/* handover.c - from OpenSSL's connection to keys of our own
 *
 * Why: a handshake is the work of OpenSSL. What follows is one AEAD operation
 * for each record, for which OpenSSL keeps 13 KiB of connection, and copies
 * each byte once more each way. Of a connection under TLS 1.3 these files keep
 * two keys, as a kernel does that is given a connection (ktls).
 *
 * How it works: while OpenSSL shakes hands, the two secrets of application
 * traffic are overheard where they are derived (provider.h), and each
 * record under them is counted. Client sessions are resumed by tickets, which
 * come behind the handshake, so a connection of ours stays with OpenSSL until
 * the first bytes of the server were read; that of a client goes at once.
 *
 * What stays with OpenSSL: TLS 1.2; a suite that is not known here; records
 * that were agreed to be small (RFC 6066 4); a connection whose keys changed
 * before it was taken over.
 */

#include <stdlib.h>

#include "src/base/err.h"
#include "src/base/secret.h"
#include "src/io/tls/inside.h"
#include "src/io/tls/provider.h"

void tls_handover_hear(struct tls_handover *h, bool of_client,
		       struct span secret)
{
	struct tls_way *w = of_client == h->is_client ? &h->write : &h->read;

	must(secret.len <= sizeof(w->secret));
	memcpy(w->secret, secret.ptr, secret.len);
	w->secret_len = secret.len;
	w->count = 0;
}

/* Records, by their heads; and the one message that changes keys later. */
static void on_message(int written, int version, int type, const void *bytes,
		       size_t len, SSL *ssl, void *arg)
{
	struct tls_handover *h = arg;
	struct tls_way *w = written ? &h->write : &h->read;
	int first = len ? *(const uint8_t *)bytes : -1;

	(void)version;
	(void)ssl;
	if (type == SSL3_RT_HEADER && first == TLS_TYPE_DATA && w->secret_len)
		w->count++;
	else if (type == SSL3_RT_HANDSHAKE && first == SSL3_MT_KEY_UPDATE)
		h->refused = true;
}

void tls_handover_begin(struct tls *tls)
{
	tls->handover = must_alloc(sizeof(*tls->handover));
	tls->handover->is_client = !SSL_is_server(tls->ssl);
	SSL_set_msg_callback(tls->ssl, on_message);
	SSL_set_msg_callback_arg(tls->ssl, tls->handover);
}

void tls_handover_end(struct tls *tls)
{
	if (!tls->handover)
		return;
	SSL_set_msg_callback(tls->ssl, NULL);
	secret_wipe(tls->handover, sizeof(*tls->handover));
	free(tls->handover);
	tls->handover = NULL;
}

static struct tls_records *records_of(const SSL *ssl,
				      const struct tls_handover *h)
{
	uint16_t suite = (uint16_t)SSL_CIPHER_get_protocol_id(
		SSL_get_current_cipher(ssl));

	if (SSL_version(ssl) != TLS1_3_VERSION || h->refused ||
	    SSL_SESSION_get_max_fragment_length(SSL_get_session(ssl)))
		return NULL;
	return tls_records_new(suite, h->is_client, &h->read, &h->write);
}

/* Has OpenSSL a part of a record, or a record that nobody has read? "RH": what
 * it reads next is a head. */
static bool is_between_records(const SSL *ssl)
{
	return !SSL_has_pending(ssl) && !strcmp(SSL_rstate_string(ssl), "RH");
}

void tls_handover_take(struct stream *s)
{
	struct tls *tls = s->tls;

	if (!tls->handover || !is_between_records(tls->ssl))
		return;
	tls->records = records_of(tls->ssl, tls->handover);
	tls_handover_end(tls);
	if (!tls->records)
		return;
	tls_ssl_free(s);
	s->tls_pending = false;
	s->tls_ops = &tls_records_ops;
}

struct ssl_ctx_st *stream_tls_context_new(bool server)
{
	tls_provider_init();
	return SSL_CTX_new_ex(NULL, TLS_PROVIDER_QUERY,
			      server ? TLS_server_method()
				     : TLS_client_method());
}
