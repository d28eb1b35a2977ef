/* SPDX-License-Identifier: Apache-2.0 */
/* inside.h - what the files about TLS on streams share
 *
 *   stream_tls.c      the handshake, and all of a connection under TLS 1.2
 *   provider.c        the derivations of a handshake of TLS 1.3
 *   handover.c        what is overheard there, and who is taken over
 *   stream_records.c  the records behind it, without OpenSSL's connection
 *   record.c          keys, and one record with them
 *   hkdf.c            what keys are derived with
 */
#pragma once

#include <openssl/ssl.h>

#include "src/io/stream_inside.h"
#include "src/io/tls/record.h"

enum {
	/* What a peer may make us queue by itself (flights, answers to
	 * renegotiation or key updates) before it reads any of it. */
	TLS_UNASKED_MAX = 256 * 1024,
	TLS_ALPN_MAX = 16, /* of the names that we offer or take */
	TLS_RECORD_MAX = TLS_HEAD_SIZE + TLS_BODY_MAX,
};

/* How the peer's bytes ended. */
enum tls_end { TLS_END_NONE, TLS_END_CLEAN, TLS_END_CUT };

/* What is known of one direction while OpenSSL has it. */
struct tls_way {
	uint8_t secret[TLS_SECRET_MAX]; /* of its application traffic */
	size_t secret_len;		/* 0: not derived yet */
	uint64_t count;			/* records under it */
};

struct tls_handover {
	struct tls_way read, write;
	bool is_client;
	bool refused; /* something came that only OpenSSL has an eye on */
};

struct tls_records {
	struct tls_keys read, write;
	struct buf partial; /* a record that has not come whole */
	struct buf plain;   /* decrypted, more than the reader took */
	/* Handshake messages go over the bounds of records. */
	uint8_t message[4];    /* type and length of the present one */
	uint8_t message_have;  /* bytes of that */
	uint32_t message_left; /* bytes behind it that are still to come */
	unsigned idle;	       /* records since one carried bytes */
	uint64_t update_at;    /* records under keys of ours */
	bool is_client;
};

struct tls {
	SSL *ssl; /* NULL once records are kept without it: */
	struct tls_records *records;
	struct tls_handover *handover; /* with ssl, while it may end so */

	struct span window; /* ciphertext to be taken */
	bool window_is_input;
	bool cleanses; /* what is read, in OpenSSL's own memory */
	bool unclean;  /* its buffer of records was read and not wiped */
	bool keeps;    /* the buffer of records, during tls_read() */
	bool ready;    /* the handshake was done */
	bool sent;     /* some record was queued */
	bool asked;    /* stream_write() runs */
	bool resumed;
	const char *version; /* OpenSSL's own text */
	char alpn[TLS_ALPN_MAX];
	uint8_t alpn_len;
	size_t unasked; /* bytes queued otherwise since the queue was empty */
	enum tls_end end;
	char *error; /* NULL = none */
};

/* -- stream_tls.c: the window, and ends ------------------------------------ */

/* Notes the first of the connection's errors. */
void tls_note_error(struct tls *tls, const char *kind, const char *text);
/* The end of TLS in both directions. An alert that was queued is sent if the
 * kernel has room. */
void tls_fail(struct stream *s);
/* The peer's bytes ended, by close_notify or by FIN. Ours may still flow. */
void tls_end_input(struct stream *s, enum tls_end end);
/* How much to ask of the kernel, for a reader with so much room. */
size_t tls_ask(size_t room);
/* Before anybody else uses the scratch memory: keeps what nobody has taken. */
void tls_window_settle(struct stream *s);
void tls_ssl_free(struct stream *s);
void tls_free(struct stream *s);

/* -- handover.c ------------------------------------------------------------ */

/* Begins to count, before the handshake's first byte. */
void tls_handover_begin(struct tls *tls);
/* A secret, when the direction's keys change to it. */
void tls_handover_hear(struct tls_handover *h, bool of_client,
		       struct span secret);
/* Takes OpenSSL's place when it is between two records, and the connection is
 * one that stream_records.c can keep. May be tried again and again. */
void tls_handover_take(struct stream *s);
/* Wipes what was overheard. */
void tls_handover_end(struct tls *tls);

/* -- stream_records.c ------------------------------------------------------ */

extern const struct tls_ops tls_records_ops;
/* NULL: the suite is not known here, or a secret was not derived. */
struct tls_records *tls_records_new(uint16_t suite, bool is_client,
				    const struct tls_way *read,
				    const struct tls_way *write);
struct tls_records *tls_records_free(struct tls_records *r);
