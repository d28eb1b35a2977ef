/* SPDX-License-Identifier: Apache-2.0 */
/* stream_records.c - a stream's bytes as records of TLS 1.3, behind a handshake
 *
 * How it works: one recv(2) fetches all that is there into the loop's scratch
 * memory; each whole record is opened from there into the reader's own memory.
 * What the reader has no room for is opened where it lies: the rest of it waits
 * in `plain`. A record that is not whole waits in `partial`, and is put before
 * the bytes of the next recv(2) once these end it. Whole records that nobody
 * asked for yet are left in s->input. At rest all three are without memory.
 *
 * Writing seals straight into the output queue. Records are as large as they
 * may be.
 *
 * What is not bytes (RFC 8446 4.6, 6): a ticket is skipped, a key update done
 * and answered, an alert ends the connection. All else is refused with the
 * alert that the RFC names. So is a peer that goes on sending records without
 * bytes.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/err.h"
#include "src/base/secret.h"
#include "src/io/tls/inside.h"

enum {
	IDLE_MAX = 32, /* records without bytes, one after another */
};

/* Below what AES-GCM is safe for, 2^24.5 records (RFC 8446 5.5). */
static const uint64_t update_after = (uint64_t)1 << 24U;

/* -- records of our own --------------------------------------------------- */

/* Queues one. False: nothing more can be sent. */
static bool put_record(struct stream *s, uint8_t type, struct span bytes)
{
	struct tls *tls = s->tls;
	size_t len = bytes.len + TLS_SEAL_SIZE;
	char *room;

	if (!buf_len(&s->output))
		tls->unasked = 0;
	tls->unasked += len;
	if (s->out == SIDE_ENDED || tls->unasked > TLS_UNASKED_MAX ||
	    buf_reserve(&s->output, len, &room))
		return false;
	tls_seal(&tls->records->write, type, bytes, room);
	buf_commit(&s->output, len);
	return true;
}

static bool put_alert(struct stream *s, uint8_t level, uint8_t alert)
{
	const char body[2] = { (char)level, (char)alert };

	return put_record(s, TLS_TYPE_ALERT, span_of(body, sizeof(body)));
}

/* Ours is announced under the old keys. */
static bool update_write(struct stream *s)
{
	static const char message[5] = { SSL3_MT_KEY_UPDATE, 0, 0, 1, 0 };

	if (!put_record(s, TLS_TYPE_HANDSHAKE,
			span_of(message, sizeof(message))))
		return false;
	tls_keys_update(&s->tls->records->write);
	return true;
}

/* The peer did what it may not. */
static void refuse(struct stream *s, uint8_t alert)
{
	tls_note_error(s->tls, "", SSL_alert_desc_string_long(alert));
	(void)put_alert(s, SSL3_AL_FATAL, alert);
	tls_fail(s);
}

/* -- what is not bytes ----------------------------------------------------
 * Each returns 0 or the alert that refuses it. */

static uint8_t take_alert(struct stream *s, struct span body)
{
	uint8_t alert;

	if (body.len != 2)
		return TLS_ALERT_DECODE_ERROR;
	alert = (uint8_t)body.ptr[1];
	if (alert == TLS_ALERT_CLOSE_NOTIFY)
		tls_end_input(s, TLS_END_CLEAN);
	else if (alert != TLS_ALERT_USER_CANCELED) {
		tls_note_error(s->tls, "peer sent alert: ",
			       SSL_alert_desc_string_long(alert));
		tls_fail(s);
	}
	return 0;
}

static uint8_t take_key_update(struct stream *s, uint8_t requested,
			       bool ends_record)
{
	/* What follows it is under other keys (RFC 8446 5.1). */
	if (!ends_record || requested > SSL_KEY_UPDATE_REQUESTED)
		return TLS_ALERT_UNEXPECTED_MESSAGE;
	tls_keys_update(&s->tls->records->read);
	if (requested == SSL_KEY_UPDATE_REQUESTED && s->out == SIDE_OPEN &&
	    !update_write(s))
		return TLS_ALERT_UNEXPECTED_MESSAGE;
	return 0;
}

/* A message's head is whole. */
static uint8_t begin_message(struct tls_records *r)
{
	uint32_t len = (uint32_t)r->message[1] << 16U |
		       (uint32_t)r->message[2] << 8U | r->message[3];

	r->message_left = len;
	if (r->message[0] == SSL3_MT_KEY_UPDATE)
		return len == 1 ? 0 : TLS_ALERT_DECODE_ERROR;
	if (r->message[0] == SSL3_MT_NEWSESSION_TICKET && r->is_client)
		return len ? 0 : TLS_ALERT_DECODE_ERROR;
	return TLS_ALERT_UNEXPECTED_MESSAGE;
}

static uint8_t take_handshake(struct stream *s, struct span body)
{
	struct tls_records *r = s->tls->records;
	uint8_t alert = 0;
	size_t n;

	if (!body.len)
		return TLS_ALERT_UNEXPECTED_MESSAGE;
	while (body.len && !alert) {
		if (r->message_have < sizeof(r->message)) {
			r->message[r->message_have++] = (uint8_t)body.ptr[0];
			body = span_from(body, 1);
			if (r->message_have == sizeof(r->message))
				alert = begin_message(r);
			continue;
		}
		n = MIN(body.len, r->message_left);
		if (r->message[0] == SSL3_MT_KEY_UPDATE)
			alert = take_key_update(s, (uint8_t)body.ptr[0],
						body.len == 1);
		body = span_from(body, n);
		r->message_left -= (uint32_t)n;
		if (!r->message_left)
			r->message_have = 0;
	}
	return alert;
}

/* -- heads of records ------------------------------------------------------ */

static uint8_t check_head(struct span bytes)
{
	size_t size = tls_record_size(bytes);

	if (bytes.len && (uint8_t)bytes.ptr[0] != TLS_TYPE_DATA)
		return TLS_ALERT_UNEXPECTED_MESSAGE;
	if (size > TLS_RECORD_MAX)
		return TLS_ALERT_RECORD_OVERFLOW;
	/* Not even the type of what is in it. */
	if (size && size <= TLS_HEAD_SIZE + TLS_TAG_SIZE)
		return TLS_ALERT_BAD_RECORD_MAC;
	return 0;
}

static bool is_whole(struct span bytes)
{
	size_t size = tls_record_size(bytes);

	return size && bytes.len >= size;
}

/* -- the window ----------------------------------------------------------- */

static bool is_over(const struct stream *s)
{
	return s->tls->end || s->read_error == -EPROTO;
}

/* As tls_window_settle(), but that a part of a record is no input. */
static void settle(struct stream *s)
{
	struct tls *tls = s->tls;
	struct buf *partial = &tls->records->partial;

	if (is_over(s)) {
		buf_fini(partial);
		tls->window = SPAN_NONE;
	} else if (!is_whole(tls->window) && !check_head(tls->window)) {
		must(buf_put(partial, tls->window) == 0);
		tls->window = SPAN_NONE;
	}
	tls_window_settle(s);
}

/* More ciphertext, where there is no whole record: as stream_read(). */
static ssize_t fill(struct stream *s, size_t room)
{
	struct tls *tls = s->tls;
	struct buf *partial = &tls->records->partial;
	size_t ask = MIN(tls_ask(room), SCRATCH_BYTES - TLS_RECORD_MAX);
	size_t had, need;
	char *at;
	ssize_t n;

	settle(s);
	if (s->in == SIDE_ENDED)
		return s->read_error;
	/* Before it there is room for what is there of the first. */
	at = (char *)loop_scratch(s->watch.loop) + TLS_RECORD_MAX;
	n = stream_receive(s, at, ask);
	if (n <= 0)
		return n;
	had = buf_len(partial);
	need = MAX(tls_record_size(buf_peek(partial)), (size_t)TLS_HEAD_SIZE);
	if (had + (size_t)n < need) {
		must(buf_put(partial, span_of(at, (size_t)n)) == 0);
		return n;
	}
	memcpy(at - had, buf_peek(partial).ptr, had);
	tls->window = span_of(at - had, had + (size_t)n);
	buf_fini(partial);
	return n;
}

/* -- reading -------------------------------------------------------------- */

/* Opened where it lies; the reader gets what it has room for. */
static size_t hand_out(struct stream *s, struct span bytes, char *dst,
		       size_t len)
{
	struct tls *tls = s->tls;
	size_t n = MIN(len, bytes.len);

	memcpy(dst, bytes.ptr, n);
	if (n < bytes.len)
		must(buf_put(&tls->records->plain, span_from(bytes, n)) == 0);
	if (tls->cleanses)
		secret_wipe((char *)bytes.ptr, bytes.len);
	return n;
}

/* The first record of the window. Bytes for the reader; *alert: it is refused.
 */
static size_t take_record(struct stream *s, char *dst, size_t len,
			  uint8_t *alert)
{
	struct tls *tls = s->tls;
	struct tls_records *r = tls->records;
	struct span record =
		span_of(tls->window.ptr, tls_record_size(tls->window));
	struct span body = span_from(record, TLS_HEAD_SIZE);
	bool direct = len >= body.len - TLS_TAG_SIZE;
	char *to = direct ? dst : (char *)body.ptr;
	size_t n = 0;
	uint8_t type = 0;

	tls->window = span_from(tls->window, record.len);
	*alert = tls_open(&r->read, (const uint8_t *)record.ptr, body, to,
			  &type, &n);
	if (*alert)
		return 0;
	r->idle = type == TLS_TYPE_DATA && n ? 0 : r->idle + 1;
	if (r->idle > IDLE_MAX ||
	    (r->message_have && type != TLS_TYPE_HANDSHAKE))
		*alert = TLS_ALERT_UNEXPECTED_MESSAGE;
	else if (type == TLS_TYPE_DATA)
		return direct ? n : hand_out(s, span_of(to, n), dst, len);
	else if (type == TLS_TYPE_ALERT)
		*alert = take_alert(s, span_of(to, n));
	else if (type == TLS_TYPE_HANDSHAKE)
		*alert = take_handshake(s, span_of(to, n));
	else
		*alert = TLS_ALERT_UNEXPECTED_MESSAGE;
	return 0;
}

static size_t take_plain(struct stream *s, char *dst, size_t len)
{
	struct buf *plain = &s->tls->records->plain;
	size_t n = MIN(len, buf_len(plain));

	memcpy(dst, buf_peek(plain).ptr, n);
	buf_consume(plain, n);
	if (buf_len(plain))
		return n;
	if (s->tls->cleanses)
		buf_wipe(plain);
	else
		buf_fini(plain);
	return n;
}

/* Bytes, or why there are none. */
static ssize_t take_records(struct stream *s, char *dst, size_t len)
{
	struct tls *tls = s->tls;
	size_t got = take_plain(s, dst, len);
	uint8_t alert = 0;
	ssize_t n;

	while (got < len && !is_over(s)) {
		alert = check_head(tls->window);
		if (!alert && is_whole(tls->window)) {
			got += take_record(s, dst + got, len - got, &alert);
		} else if (!alert) {
			if (got)
				break;
			n = fill(s, len);
			if (n == 0)
				tls_end_input(s, TLS_END_CUT);
			if (n <= 0)
				return n;
		}
		if (alert)
			refuse(s, alert);
	}
	if (got)
		return (ssize_t)got;
	return s->in == SIDE_ENDED ? s->read_error : STREAM_AGAIN;
}

static ssize_t records_read(struct stream *s, void *dst, size_t len)
{
	struct tls *tls = s->tls;
	ssize_t n;

	if (s->read_error == -EPROTO)
		return s->read_error;
	tls->window = buf_peek(&s->input);
	tls->window_is_input = tls->window.len != 0;
	n = take_records(s, dst, len);
	settle(s);
	s->tls_pending = buf_len(&tls->records->plain) != 0;
	/* An answer to a key update, or an alert. */
	if (buf_len(&s->output))
		flush_later(s->watch.loop, &s->flush);
	return n;
}

/* -- writing -------------------------------------------------------------- */

static int records_write(struct stream *s, struct span bytes)
{
	struct tls_records *records = s->tls->records;
	size_t count = (bytes.len + TLS_PLAIN_MAX - 1) / TLS_PLAIN_MAX;
	struct span piece;
	char *room;
	int r;

	if (records->write.count >= records->update_at)
		(void)update_write(s);
	r = buf_reserve(&s->output, bytes.len + count * TLS_SEAL_SIZE, &room);
	if (r)
		return err_origin(r);
	buf_commit(&s->output, bytes.len + count * TLS_SEAL_SIZE);
	for (; bytes.len; bytes = span_from(bytes, piece.len)) {
		piece = span_of(bytes.ptr,
				MIN(bytes.len, (size_t)TLS_PLAIN_MAX));
		tls_seal(&records->write, TLS_TYPE_DATA, piece, room);
		room += piece.len + TLS_SEAL_SIZE;
	}
	stream_dirty(s);
	return 0;
}

static void records_shutdown(struct stream *s)
{
	if (s->error != -EPROTO)
		(void)put_alert(s, SSL3_AL_WARNING, TLS_ALERT_CLOSE_NOTIFY);
}

static bool records_are_silent(const struct stream *s)
{
	(void)s;
	return false; /* a handshake was had */
}

struct tls_records *tls_records_new(uint16_t suite, bool is_client,
				    const struct tls_way *read,
				    const struct tls_way *write)
{
	struct tls_records *r = must_alloc(sizeof(*r));

	r->is_client = is_client;
	r->update_at = update_after;
	buf_init(&r->partial, TLS_RECORD_MAX);
	buf_init(&r->plain, TLS_BODY_MAX);
	if (tls_keys_init(&r->read, suite,
			  span_of(read->secret, read->secret_len), false,
			  read->count) &&
	    tls_keys_init(&r->write, suite,
			  span_of(write->secret, write->secret_len), true,
			  write->count))
		return r;
	return tls_records_free(r);
}

struct tls_records *tls_records_free(struct tls_records *r)
{
	if (!r)
		return NULL;
	tls_keys_fini(&r->read);
	tls_keys_fini(&r->write);
	buf_fini(&r->partial);
	buf_wipe(&r->plain);
	free(r);
	return NULL;
}

const struct tls_ops tls_records_ops = {
	.read = records_read,
	.write = records_write,
	.shutdown = records_shutdown,
	.is_silent = records_are_silent,
	.free = tls_free,
};
