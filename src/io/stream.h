/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - a byte stream: TCP or unix socket, with TLS on top when started
 *
 * How it works: reads and writes are non-blocking. stream_read() returns bytes
 * or STREAM_AGAIN; stream_write() accepts bytes into a bounded output queue and
 * sends as much as the kernel takes at stream_flush() (which also happens by
 * itself when the owner returns to the loop). stream_want() asks for a call
 * back. The callback is only ever made from the loop, never from inside a
 * stream function, and may free the stream.
 *
 * No stream holds buffers while it is idle.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/addr.h"
#include "src/base/span.h"

struct loop;
struct stream;
struct ssl_st;	   /* SSL */
struct ssl_ctx_st; /* SSL_CTX */

enum stream_event {
	STREAM_READABLE = 1, /* bytes, end of stream, or an error to read */
	STREAM_WRITABLE = 2, /* the output queue has room (again) */
	STREAM_CONNECTED = 4,
	STREAM_KICKED = 8, /* stream_kick() was called */
};

/* READABLE and WRITABLE are levels: they are told every round while they are
 * wanted and true, so want WRITABLE only while there is something to write.
 * Ends and errors are told as READABLE (errors as WRITABLE too) until
 * stream_read() or stream_write() has returned them once. */

/* One callback for all; events is a mask of what was wanted and is there. */
typedef void stream_fn(struct stream *s, void *ctx, unsigned events);

enum {
	STREAM_AGAIN = -11, /* -EAGAIN */
	STREAM_UNSENT_MAX =
		256 * 1024, /* from here stream_write() says AGAIN */
	STREAM_WRITE_MAX = 16 * 1024 * 1024, /* in one call */
	STREAM_UNREAD_MAX = 1024 * 1024,
};

/* Takes fd (closed on failure too); connected and non-blocking. Its options
 * stay: what is accepted has TCP_NODELAY and keepalive from its listener. */
WUNRES int stream_new(struct loop *loop, int fd, struct stream **ret);
/* Begins a non-blocking connect; STREAM_CONNECTED is delivered once wanted,
 * then stream_error() tells how it went. */
WUNRES int stream_connect(struct loop *loop, const struct addr *to,
			  struct stream **ret);
/* The same where we are the one to speak first, and soon: what is written then
 * says, too, that the connection stands, and no packet does so before it. A
 * server that waits to hear that, to greet, would wait for a fifth of a second.
 */
WUNRES int stream_connect_to_speak(struct loop *loop, const struct addr *to,
				   struct stream **ret);
/* As stream_connect(), by the network device of that name and no other,
 * whatever the routes say by then ("": as they say); -ENODEV when there is
 * none. */
WUNRES int stream_connect_by(struct loop *loop, const struct addr *to,
			     const char *device, struct stream **ret);
/* Closes at once; unsent output is lost. NULL is fine. Returns NULL. Safe in
 * the stream's own callback. */
struct stream *stream_free(struct stream *s);
/* Closes with RST (SO_LINGER 0) instead of FIN. Returns NULL. */
struct stream *stream_reset(struct stream *s);
/* Takes ownership: flushes what is queued, sends TLS close_notify and FIN,
 * waits for the peer at most linger_ms, then frees. Returns NULL. */
struct stream *stream_close(struct stream *s, uint64_t linger_ms);

/* Whom to call; NULL fn = nobody (events stay pending). */
void stream_set_owner(struct stream *s, stream_fn *fn, void *ctx);
void stream_want(struct stream *s, unsigned events); /* replaces the mask */
unsigned stream_wanted(const struct stream *s);
/* Calls the owner from the loop once, with STREAM_KICKED, if that is wanted. */
void stream_kick(struct stream *s);

/* > 0 bytes, 0 end of stream, STREAM_AGAIN, or -errno (-EPROTO: TLS failed,
 * see stream_tls_error()). A failed write does not hide what the peer sent
 * before: its error is returned here once there is nothing left to read.
 * Bulk is fastest with a dst of 64 KiB or more. Not from OpenSSL callbacks. */
WUNRES ssize_t stream_read(struct stream *s, void *dst, size_t len);
/* Puts bytes back in front of what stream_read() returns next. Plain bytes
 * only (before TLS is started); they are copied. 0, -ENOBUFS over
 * STREAM_UNREAD_MAX, -EINVAL under TLS. */
WUNRES int stream_unread(struct stream *s, struct span bytes);
/* Takes all of bytes or nothing: 0, STREAM_AGAIN when the queue is over its
 * limit (WRITABLE comes when it is half empty) or the TLS handshake is not
 * done, -EPIPE after stream_shutdown_write(), -EMSGSIZE over STREAM_WRITE_MAX,
 * or -errno of an earlier send. Before a connect is done bytes are queued. */
WUNRES int stream_write(struct stream *s, struct span bytes);
/* How many bytes are queued and not yet taken by the kernel. */
size_t stream_unsent(const struct stream *s);
/* Sends now what is queued: 0 all gone, STREAM_AGAIN some left, -errno. */
int stream_flush(struct stream *s);
/* After the queue is sent: FIN (and close_notify under TLS). */
void stream_shutdown_write(struct stream *s);
/* First error of connect, read or write; 0 = none. -errno. */
int stream_error(const struct stream *s);

int stream_fd(const struct stream *s);
struct loop *stream_loop(const struct stream *s);
uint64_t stream_bytes_in(const struct stream *s); /* on the wire */
uint64_t stream_bytes_out(const struct stream *s);

/* Starts TLS; takes ssl (connect or accept state already set by the caller).
 * Bytes given to stream_unread() are the first the handshake sees. The
 * handshake proceeds on read, write and want; STREAM_CONNECTED is delivered
 * when it is done or failed. */
WUNRES int stream_start_tls(struct stream *s, struct ssl_st *ssl);
/* A context for servers or clients; NULL: OpenSSL says why not. Handshakes with
 * it are cheaper than others, and once one of TLS 1.3 is done its stream does
 * without an SSL (src/io/tls/handover.c). */
struct ssl_ctx_st *stream_tls_context_new(bool server);
/* NULL: the stream is plain, or does without. */
struct ssl_st *stream_ssl(const struct stream *s);
bool stream_is_tls(const struct stream *s);
/* Of a handshake that is done: what was agreed on; the version is static. */
bool stream_tls_ready(const struct stream *s);
struct span stream_tls_alpn(const struct stream *s); /* empty: none */
const char *stream_tls_version(const struct stream *s);
bool stream_tls_resumed(const struct stream *s);
/* Text of the last TLS failure (certificate verify result or alert); "" when
 * there was none. */
const char *stream_tls_error(const struct stream *s);
/* The peer's bytes ended without close_notify: what was read may be cut. */
bool stream_tls_truncated(const struct stream *s);
/* Closes with a fatal alert of this code (RFC 8446 6.2), unencrypted, when the
 * stream is plain or TLS has sent nothing yet. Later OpenSSL lets only itself
 * send alerts: then close_notify (or FIN amid a handshake) must do. Returns
 * NULL. */
struct stream *stream_close_alert(struct stream *s, uint8_t alert);

/* Moves both directions with splice(2) until both sides ended or failed, then
 * frees both streams and calls done (bytes a->b, b->a, first error). Plain
 * streams only (else -EINVAL, and both stay the caller's); what was unread or
 * queued goes first. After idle_ms (0 = never) without a byte either way:
 * -ETIMEDOUT. On an error both sides see a reset. *ret is valid until done,
 * which is not called when the loop is freed first. The process ignores SIGPIPE
 * from then on. */
typedef void splice_fn(void *ctx, uint64_t a_to_b, uint64_t b_to_a, int error);
struct splice;
WUNRES int stream_splice(struct stream *a, struct stream *b, uint64_t idle_ms,
			 splice_fn *done, void *ctx, struct splice **ret);
/* Ends it now (policy changed) with error; done is called from the loop. */
void splice_cancel(struct splice *sp, int error);
/* The same, and done is never called. */
void splice_forget(struct splice *sp);
/* That were moved until now, both ways together. */
uint64_t splice_bytes(const struct splice *sp);
