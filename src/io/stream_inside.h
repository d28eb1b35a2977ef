/* SPDX-License-Identifier: Apache-2.0 */
/* stream_inside.h - what the files about streams share
 *
 * Nobody outside src/io/ includes this.
 */
#pragma once

#include "src/base/buf.h"
#include "src/io/inside.h"
#include "src/io/pace.h"
#include "src/io/stream.h"

enum stream_phase {
	PHASE_CONNECTING,  /* connect(2) runs; output is queued */
	PHASE_HANDSHAKING, /* TLS owns both directions */
	PHASE_OPEN,	   /* the owner's bytes flow, or an end was met */
};

enum side {
	SIDE_OPEN,
	SIDE_ENDING, /* output only: FIN goes out after the queue */
	SIDE_ENDED,  /* nothing more in this direction */
};

/* What the owner has not been told yet. */
enum news { NEWS_CONNECTED = 1, NEWS_END = 2, NEWS_ERROR = 4, NEWS_KICK = 8 };

struct tls;

/* What a stream under TLS does differently. Reached through the stream and
 * named in src/io/tls alone, so that a program that starts no TLS is linked
 * without OpenSSL. */
struct tls_ops {
	void (*handshake)(struct stream *s);
	ssize_t (*read)(struct stream *s, void *dst, size_t len);
	int (*write)(struct stream *s, struct span bytes);
	void (*shutdown)(struct stream *s);	   /* queues close_notify */
	bool (*is_silent)(const struct stream *s); /* has sent nothing yet */
	void (*free)(struct stream *s);
};

struct stream {
	struct watch watch;
	struct flush flush;
	struct list recent; /* in loop.recent after a short read */
	stream_fn *fn;
	void *ctx;
	unsigned wanted; /* enum stream_event */
	unsigned news;	 /* enum news */
	enum stream_phase phase;
	enum side in, out;
	int fd;
	int error;	/* first one, of any direction */
	int read_error; /* why in ended; 0 = orderly */

	/* input: bytes before those in the kernel: unread ones, or ciphertext
	 * that SSL has not taken. output: bytes for the kernel. Both are
	 * without memory when they are empty. */
	struct buf input, output;
	uint64_t bytes_in, bytes_out;
	struct tls *tls;	       /* NULL = plain */
	const struct tls_ops *tls_ops; /* with tls */
	bool tls_pending;   /* SSL holds decrypted bytes: as of the last read */
	bool keepalive_due; /* it is to be set if the stream lives on */
	bool holds_ack;	    /* that of SYN-ACK goes with our first bytes */
	bool closes;	    /* close(2) says the FIN, unless the loop ends soon */

	struct pace *pace; /* who says how much may be read; NULL = nobody */
	struct list paced; /* in the line of the pace */
	uint64_t share;	   /* was called from the line, to read so much */
	bool paused;	   /* stands in it */

	/* Somebody in this folder owns the stream: called instead of fn, and
	 * the bits of the watch it waits for. */
	void (*hook)(struct stream *s);
	void *hook_ctx;
	unsigned hook_bits;
};

/* Decrypted bytes wait to be read. */
static inline bool stream_has_decrypted(const struct stream *s)
{
	return s->tls_pending && s->in == SIDE_OPEN;
}

/* stream.c: sets what the watch waits for, after any change of state. */
void stream_rearm(struct stream *s);
/* Notes the first error and tells the owner from the loop. */
void stream_fail(struct stream *s, int error);
bool stream_has_room(const struct stream *s);

/* The first bytes of one that holds it are sent. */
void stream_release_ack(struct stream *s);

/* Has the kernel find a peer that vanished without a word. */
void stream_keepalive(struct stream *s);

/* stream_read.c: the stream is looked at when the loop next sweeps. */
void stream_recent(struct stream *s);
/* stream_read.c: one recv(2): as stream_read(). */
ssize_t stream_receive(struct stream *s, void *dst, size_t len);
/* The input is over; 0 or -errno. */
void stream_end_input(struct stream *s, int error);

/* pace.c: how much of len may be read now; 0: the stream waits. Only with
 * s->pace. */
size_t pace_ask(struct stream *s, size_t len);
/* So much was read. */
void pace_pay(struct stream *s, size_t len);
/* Out of the line, charged to nobody any more. */
void pace_leave(struct stream *s);

/* stream_write.c: drops the queue; nothing can be sent any more. */
void stream_end_output(struct stream *s);
/* Output was queued: sent at the end of the round. */
void stream_dirty(struct stream *s);
