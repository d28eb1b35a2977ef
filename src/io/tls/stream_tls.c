/* SPDX-License-Identifier: Apache-2.0 */
/* stream_tls.c - TLS between the bytes of a stream and its owner, by OpenSSL:
 * handshakes, and what follows them where OpenSSL stays (handover.c)
 *
 * How it works: OpenSSL never sees the socket. Its BIO reads from a window of
 * ciphertext in memory and writes to the end of the stream's output queue,
 * which always has room (the limit is checked before SSL_write()). So OpenSSL
 * has one way to wait only, for more ciphertext, and it never makes a system
 * call: one recv(2) fetches all that is there, one send(2) carries the records
 * of a whole round.
 *
 * The window lies over the loop's scratch memory, filled by one recv(2) sized
 * by what the reader has room for, or over s->input. It exists only inside one
 * function here; what SSL has not taken when that ends is kept in s->input.
 * Once the window is empty and SSL_pending() is 0 there is nothing more to
 * decrypt: SSL holds at most a part of a record.
 *
 * Errors of OpenSSL end here: the queue is drained, the owner gets -EPROTO and
 * a sentence.
 */

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <pthread.h>
#include <stdio.h>

#include "src/base/err.h"
#include "src/io/tls/inside.h"
#include "src/io/tls/provider.h"

enum {
	/* More than any record adds: header, IV, padding, tag. */
	RECORD_OVERHEAD = 512,
	FILL_MIN = TLS_PLAIN_MAX + RECORD_OVERHEAD,
	TLS_ERROR_SIZE = 160,
};

static int window_read(BIO *bio, char *dst, size_t len, size_t *ret)
{
	struct stream *s = BIO_get_data(bio);
	struct span *window = &s->tls->window;
	size_t n = MIN(len, window->len);

	BIO_clear_retry_flags(bio);
	if (!n) {
		BIO_set_retry_read(bio);
		return 0;
	}
	memcpy(dst, window->ptr, n);
	*window = span_from(*window, n);
	*ret = n;
	return 1;
}

static int queue_write(BIO *bio, const char *src, size_t len, size_t *ret)
{
	struct stream *s = BIO_get_data(bio);
	struct tls *tls = s->tls;

	BIO_clear_retry_flags(bio);
	if (!buf_len(&s->output))
		tls->unasked = 0;
	if (!tls->asked)
		tls->unasked += len;
	if (s->out == SIDE_ENDED || tls->unasked > TLS_UNASKED_MAX ||
	    buf_put(&s->output, span_of(src, len)))
		return 0;
	tls->sent = true;
	*ret = len;
	return 1;
}

static long queue_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
	(void)bio;
	(void)num;
	(void)ptr;
	return cmd == BIO_CTRL_FLUSH;
}

/* SSL_get_error() would take somebody else's leftovers for its own. Looking
 * is cheaper than clearing. */
static void errors_clear(void)
{
	if (UNLIKELY(ERR_peek_error()))
		ERR_clear_error();
}

static BIO_METHOD *method;

static void method_init(void)
{
	method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK,
			      "sallyport stream");
	must(method != NULL);
	must(BIO_meth_set_read_ex(method, window_read));
	must(BIO_meth_set_write_ex(method, queue_write));
	must(BIO_meth_set_ctrl(method, queue_ctrl));
}

size_t tls_ask(size_t room)
{
	size_t ask = room + room / TLS_PLAIN_MAX * 64 + RECORD_OVERHEAD;

	return MIN(MAX(ask, (size_t)FILL_MIN), (size_t)SCRATCH_BYTES);
}

/* A window that is not empty: > 0; else as stream_read(). room: how much
 * plaintext is wished for. */
static ssize_t window_fill(struct stream *s, size_t room)
{
	struct tls *tls = s->tls;
	ssize_t n;

	if (tls->window.len)
		return 1;
	/* The window lay over input and SSL took all of it. */
	if (tls->window_is_input)
		buf_fini(&s->input);
	tls->window_is_input = buf_len(&s->input) > 0;
	if (tls->window_is_input) {
		tls->window = buf_peek(&s->input);
		return 1;
	}
	if (s->in == SIDE_ENDED)
		return s->read_error;

	n = stream_receive(s, loop_scratch(s->watch.loop), tls_ask(room));
	if (n > 0)
		tls->window = span_of(s->watch.loop->scratch, (size_t)n);
	return n;
}

void tls_window_settle(struct stream *s)
{
	struct tls *tls = s->tls;

	if (tls->window_is_input)
		buf_consume(&s->input, buf_len(&s->input) - tls->window.len);
	else if (tls->window.len)
		must(buf_put(&s->input, tls->window) == 0);
	if (!buf_len(&s->input))
		buf_fini(&s->input);
	tls->window = SPAN_NONE;
	tls->window_is_input = false;
}

/* Ciphertext nobody will decrypt. */
static void window_drop(struct stream *s)
{
	s->tls->window = SPAN_NONE;
	s->tls->window_is_input = false;
	buf_fini(&s->input);
}

void tls_note_error(struct tls *tls, const char *kind, const char *text)
{
	if (tls->error)
		return;
	tls->error = must_alloc(TLS_ERROR_SIZE);
	(void)snprintf(tls->error, TLS_ERROR_SIZE, "%s%s", kind,
		       text ? text : "unknown");
}

/* Turns OpenSSL's error queue into one sentence, and drains it. */
static void tls_explain(struct tls *tls)
{
	unsigned long e = ERR_peek_error();
	int reason = ERR_GET_REASON(e);
	long verify = SSL_get_verify_result(tls->ssl);

	if (!e)
		tls_note_error(tls, "", "TLS failed without a reason");
	else if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
		tls_note_error(tls, "certificate refused: ",
			       X509_verify_cert_error_string(verify));
	else if (ERR_GET_LIB(e) == ERR_LIB_SSL &&
		 reason > SSL_AD_REASON_OFFSET &&
		 reason <= SSL_AD_REASON_OFFSET + UINT8_MAX)
		tls_note_error(tls, "peer sent alert: ",
			       SSL_alert_desc_string_long(
				       reason - SSL_AD_REASON_OFFSET));
	else
		tls_note_error(tls, "", ERR_reason_error_string(e));
	ERR_clear_error();
}

void tls_fail(struct stream *s)
{
	if (s->out != SIDE_ENDED)
		(void)stream_flush(s);
	stream_end_output(s);
	stream_end_input(s, s->read_error ? s->read_error : -EPROTO);
	window_drop(s);
}

/* ssl said no; true = only because it needs something first. */
static bool tls_must_wait(struct stream *s, int r)
{
	switch (SSL_get_error(s->tls->ssl, r)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
	/* A callback of the SSL's owner asked for time. */
	case SSL_ERROR_WANT_X509_LOOKUP:
	case SSL_ERROR_WANT_CLIENT_HELLO_CB:
	case SSL_ERROR_WANT_RETRY_VERIFY:
	case SSL_ERROR_WANT_ASYNC:
	case SSL_ERROR_WANT_ASYNC_JOB:
		return true;
	default:
		tls_explain(s->tls);
		return false;
	}
}

static void tls_shutdown(struct stream *s)
{
	if (!s->tls->ready || s->error == -EPROTO)
		return;
	errors_clear();
	(void)SSL_shutdown(s->tls->ssl);
	errors_clear();
}

/* What the owner may ask for when there is no SSL any more. */
static void tls_note_terms(struct tls *tls)
{
	const unsigned char *name;
	unsigned len;

	tls->resumed = SSL_session_reused(tls->ssl);
	tls->version = SSL_get_version(tls->ssl);
	SSL_get0_alpn_selected(tls->ssl, &name, &len);
	if (len <= sizeof(tls->alpn)) {
		memcpy(tls->alpn, name ? name : (const void *)"", len);
		tls->alpn_len = (uint8_t)len;
	}
}

static void tls_handshake_done(struct stream *s)
{
	s->phase = PHASE_OPEN;
	s->tls->ready = true;
	s->tls_pending = SSL_pending(s->tls->ssl) > 0;
	s->news |= NEWS_CONNECTED;
	tls_note_terms(s->tls);
	if (SSL_is_server(s->tls->ssl))
		tls_handover_take(s);
	if (s->out == SIDE_ENDING)
		s->tls_ops->shutdown(s);
}

static void tls_handshake_failed(struct stream *s, const char *why)
{
	if (why)
		tls_note_error(s->tls, "", why);
	s->phase = PHASE_OPEN;
	s->news |= NEWS_CONNECTED;
	tls_fail(s);
}

/* One step; true = there is more ciphertext to go on with. */
static bool tls_handshake_step(struct stream *s)
{
	ssize_t n;
	int r;

	errors_clear();
	tls_provider_tell(s->tls->handover);
	r = SSL_do_handshake(s->tls->ssl);
	tls_provider_tell(NULL);
	if (r == 1) {
		tls_handshake_done(s);
		return false;
	}
	if (!tls_must_wait(s, r)) {
		tls_handshake_failed(s, NULL);
		return false;
	}
	if (!SSL_want_read(s->tls->ssl))
		return false;
	n = window_fill(s, 0);
	if (n > 0)
		return true;
	if (n == 0)
		tls_handshake_failed(s, "peer closed amid the handshake");
	else if (n != STREAM_AGAIN)
		tls_handshake_failed(s, err_text((int)n));
	return false;
}

static void tls_handshake(struct stream *s)
{
	while (tls_handshake_step(s))
		;
	tls_window_settle(s);
	if (buf_len(&s->output) || s->out == SIDE_ENDING)
		flush_later(s->watch.loop, &s->flush);
}

void tls_end_input(struct stream *s, enum tls_end end)
{
	s->tls->end = end;
	if (s->in == SIDE_OPEN)
		stream_end_input(s, 0);
	window_drop(s);
}

/* SSL_read() said no. 0: go on with more ciphertext, 1: no more. */
static int tls_read_stopped(struct stream *s, int r)
{
	if (SSL_get_error(s->tls->ssl, r) == SSL_ERROR_ZERO_RETURN) {
		tls_end_input(s, TLS_END_CLEAN);
		return 1;
	}
	if (tls_must_wait(s, r))
		return s->tls->window.len != 0;
	tls_fail(s);
	return 1;
}

/* Where it is asked for, OpenSSL wipes what was decrypted in its buffer of
 * records: each piece as it is read, and all of the buffer before it is freed.
 * Its way to wipe costs as much as decrypting, so one of the two is left out:
 * of small reads the second, of a series of whole records the first. At rest
 * both are on: whatever frees the buffer then, wipes it. */
static void tls_cleanse(struct tls *tls, bool on)
{
	if (tls->cleanses && on)
		(void)SSL_set_options(tls->ssl, SSL_OP_CLEANSE_PLAINTEXT);
	else if (tls->cleanses)
		(void)SSL_clear_options(tls->ssl, SSL_OP_CLEANSE_PLAINTEXT);
}

/* OpenSSL gives its buffer of records back by itself after each record. From
 * here to tls_release() it keeps one for all: when more than one comes, and
 * where the buffer is to be wiped before it goes. */
static void tls_keep(struct tls *tls)
{
	if (!tls->keeps)
		(void)SSL_clear_mode(tls->ssl, SSL_MODE_RELEASE_BUFFERS);
	tls->keeps = true;
}

/* between: SSL is between two records. */
static void tls_release(struct tls *tls, bool between)
{
	if (!tls->keeps)
		return;
	if (between) {
		tls_cleanse(tls, tls->unclean);
		if (SSL_free_buffers(tls->ssl))
			tls->unclean = false;
	}
	tls_cleanse(tls, true);
	(void)SSL_set_mode(tls->ssl, SSL_MODE_RELEASE_BUFFERS);
	tls->keeps = false;
}

/* At most one record, the first byte of which is a record's first. */
static bool window_is_one_record(struct span window)
{
	size_t size = tls_record_size(window);

	return size && window.len <= size;
}

static ssize_t tls_read_records(struct stream *s, char *dst, size_t len)
{
	struct tls *tls = s->tls;
	size_t got = 0;
	ssize_t n;
	int r = 0;

	while (got < len && !tls->end) {
		if (!tls->window.len && !s->tls_pending) {
			if (got)
				break;
			n = window_fill(s, len);
			if (n == 0)
				tls_end_input(s, TLS_END_CUT);
			if (n <= 0) {
				tls_release(tls, false);
				return n;
			}
			if (tls->cleanses && n > TLS_PLAIN_MAX)
				tls->unclean = true;
			if (tls->cleanses || !window_is_one_record(tls->window))
				tls_keep(tls);
			tls_cleanse(tls, !tls->unclean);
		}
		errors_clear();
		r = SSL_read(tls->ssl, dst + got,
			     (int)MIN(len - got, (size_t)INT32_MAX));
		s->tls_pending = SSL_pending(tls->ssl) > 0;
		if (r > 0)
			got += (size_t)r;
		else if (tls_read_stopped(s, r))
			break;
	}
	tls_release(tls, r > 0 && !tls->window.len && !s->tls_pending);
	if (got)
		return (ssize_t)got;
	return s->in == SIDE_ENDED ? s->read_error : STREAM_AGAIN;
}

static ssize_t tls_read(struct stream *s, void *dst, size_t len)
{
	ssize_t n;

	if (s->read_error == -EPROTO)
		return s->read_error;
	n = tls_read_records(s, dst, len);
	tls_window_settle(s);
	/* What a server says first are its tickets; here it is past that. */
	if (n > 0 && !s->tls->end)
		tls_handover_take(s);
	/* An answer to a key update, or an alert. */
	if (buf_len(&s->output))
		flush_later(s->watch.loop, &s->flush);
	return n;
}

static int tls_write(struct stream *s, struct span bytes)
{
	size_t records = bytes.len / TLS_PLAIN_MAX + 1;
	char *room;
	int r;

	/* In one step, so that the records are not moved while they grow. */
	r = buf_reserve(&s->output, bytes.len + records * RECORD_OVERHEAD,
			&room);
	if (r)
		return err_origin(r);
	errors_clear();
	s->tls->asked = true;
	r = SSL_write(s->tls->ssl, bytes.ptr, (int)bytes.len);
	s->tls->asked = false;
	if (r > 0) {
		stream_dirty(s);
		return 0;
	}
	if (tls_must_wait(s, r))
		return STREAM_AGAIN;
	tls_fail(s);
	return s->error;
}

static bool tls_is_silent(const struct stream *s)
{
	return !s->tls->sent;
}

void tls_ssl_free(struct stream *s)
{
	SSL *ssl = s->tls->ssl;

	/* A session stays resumable though the peer may never have answered
	 * our close_notify; not after a failure. */
	if (ssl && s->error != -EPROTO)
		SSL_set_shutdown(ssl,
				 SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(ssl);
	s->tls->ssl = NULL;
}

void tls_free(struct stream *s)
{
	struct tls *tls = s->tls;

	tls_handover_end(tls);
	tls_ssl_free(s);
	tls_records_free(tls->records);
	free(tls->error);
	free(tls);
	s->tls = NULL;
	s->tls_pending = false;
}

static const struct tls_ops ops = {
	.handshake = tls_handshake,
	.read = tls_read,
	.write = tls_write,
	.shutdown = tls_shutdown,
	.is_silent = tls_is_silent,
	.free = tls_free,
};

int stream_start_tls(struct stream *s, struct ssl_st *ssl)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	BIO *bio;

	if (s->tls) {
		SSL_free(ssl);
		return err_origin(-EINVAL);
	}
	(void)pthread_once(&once, method_init);
	bio = BIO_new(method);
	must(bio != NULL);
	BIO_set_data(bio, s);
	BIO_set_init(bio, 1);

	s->tls = must_alloc(sizeof(*s->tls));
	s->tls->ssl = ssl;
	s->tls->cleanses = SSL_get_options(ssl) & SSL_OP_CLEANSE_PLAINTEXT;
	s->tls_ops = &ops;
	SSL_set_bio(ssl, bio, bio);
	SSL_set_read_ahead(ssl, 0);
	SSL_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS |
				  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	tls_handover_begin(s->tls);
	if (s->phase == PHASE_OPEN)
		s->phase = PHASE_HANDSHAKING;
	stream_rearm(s);
	watch_kick(&s->watch);
	return 0;
}

struct ssl_st *stream_ssl(const struct stream *s)
{
	return s->tls ? s->tls->ssl : NULL;
}

bool stream_is_tls(const struct stream *s)
{
	return s->tls != NULL;
}

struct span stream_tls_alpn(const struct stream *s)
{
	return s->tls ? span_of(s->tls->alpn, s->tls->alpn_len) : SPAN_NONE;
}

const char *stream_tls_version(const struct stream *s)
{
	return s->tls && s->tls->version ? s->tls->version : "";
}

bool stream_tls_resumed(const struct stream *s)
{
	return s->tls && s->tls->resumed;
}

bool stream_tls_ready(const struct stream *s)
{
	return s->tls && s->tls->ready;
}

const char *stream_tls_error(const struct stream *s)
{
	return s->tls && s->tls->error ? s->tls->error : "";
}

bool stream_tls_truncated(const struct stream *s)
{
	return s->tls && s->tls->end == TLS_END_CUT;
}
