/* SPDX-License-Identifier: Apache-2.0 */
/* httpd.h - a small HTTP/1.1 server for APIs, on a loop
 *
 * A server has a table of routes and any number of listeners (unix sockets,
 * TCP with TLS). Each request is authorised, its whole body is read (bounded),
 * and then its handler is called. The handler replies at once or later: the
 * request belongs to it until httpd_reply*() or httpd_stream_end(), and stays
 * valid until then even when the client has gone.
 *
 * A route whose body is HTTPD_BODY_STREAMED is called at the end of the head
 * and reads the body itself, piece by piece, as fast as it can use it.
 *
 * One request at a time per connection; pipelined ones wait. Every reply
 * carries X-Request-ID (the client's, or a fresh one).
 *
 * TLS is in a file of its own (tls.c): a program that never calls
 * httpd_tls_new() links no OpenSSL.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/addr.h"
#include "src/base/attrib.h"
#include "src/base/span.h"

struct arena;
struct buf;
struct httpd;
struct httpd_request;
struct loop;
struct ssl_ctx_st; /* SSL_CTX */

enum {
	HTTPD_BODY_MAX = 1024 * 1024,
	HTTPD_HEAD_MAX = 16 * 1024,
	HTTPD_CONNECTIONS_MAX = 512,
	HTTPD_PARAMS_MAX = 4,
	HTTPD_STREAM_MAX = 1024 * 1024, /* unsent bytes of a streamed reply */
};

enum httpd_auth {
	HTTPD_AUTH_REQUIRED, /* zero: httpd_ops.authorise decides */
	HTTPD_AUTH_OPEN,
};

enum httpd_body {
	HTTPD_BODY_WHOLE, /* zero: read before the handler is called */
	HTTPD_BODY_STREAMED,
};

typedef void httpd_handler(void *ctx, struct httpd_request *r);

/* method "GET" answers HEAD too, "*" answers every method. path:
 * "/v1/things/{id}"; a parameter is one whole segment. "{rest*}" as the last
 * one takes all that is left, or nothing, raw (httpd_param() does not decode
 * it). The first route that fits a request is taken. */
struct httpd_route {
	const char *method;
	const char *path;
	enum httpd_auth auth;
	httpd_handler *fn;
	enum httpd_body body;
};

/* Who is at the other end. */
struct httpd_peer {
	bool is_unix;
	uid_t uid; /* unix: SO_PEERCRED; else -1 */
	pid_t pid;
	struct addr address; /* TCP */
	bool tls;
};

struct httpd_ops {
	/* 0 = yes, else the status to refuse with (401, 403). */
	unsigned (*authorise)(void *ctx, const struct httpd_request *r);
	/* The JSON body of that refusal; NULL: {"code", "message"}. */
	const char *(*refusal)(void *ctx, unsigned status);
	/* May be NULL. A head was read, and nothing of it looked at: headers
	 * that every reply is to have may be set. */
	void (*begin)(void *ctx, struct httpd_request *r);
	/* Errors are text/plain, the sentence alone and a newline, and so is
	 * what .refusal says; not {"code", "message"}. */
	bool text_errors;
};

/* 0 = the default of that limit. A connection too many takes the place of one
 * that has no request, rather of one that was never authorised; when there is
 * none it is closed. */
struct httpd_limits {
	unsigned connections; /* HTTPD_CONNECTIONS_MAX */
	size_t body;	      /* HTTPD_BODY_MAX, of a WHOLE body */
	uint64_t silence_ms;  /* 30 s, of a streamed body */
};

/* routes, ops and ctx are borrowed until httpd_free(). */
WUNRES int httpd_new(struct loop *loop, const struct httpd_route *routes,
		     unsigned route_count, const struct httpd_ops *ops,
		     void *ctx, struct httpd **ret);
/* Before anybody listens. */
void httpd_set_limits(struct httpd *h, const struct httpd_limits *limits);
/* Closes every connection at once. Unanswered requests stay valid; replies to
 * them go nowhere. */
struct httpd *httpd_free(struct httpd *h);

/* Takes a bound, listening fd. tls NULL = plain; else one of httpd_tls_new(),
 * borrowed. */
WUNRES int httpd_listen_fd(struct httpd *h, int fd, struct ssl_ctx_st *tls);
/* Takes fd: a connection that was accepted elsewhere, without TLS here, for one
 * request. */
void httpd_serve(struct httpd *h, int fd, const struct httpd_peer *peer);
/* Binds and listens: replaces a dead socket at path, refuses one that answers
 * (-EADDRINUSE). mode as for chmod(2). */
WUNRES int httpd_listen_unix(struct httpd *h, const char *path, mode_t mode);
WUNRES int httpd_listen_tcp(struct httpd *h, const struct addr *at,
			    struct ssl_ctx_st *tls);
/* The sockets alone, for programs that bind before they lose privileges. The
 * fd, or -errno. */
WUNRES int httpd_bind_unix(const char *path, mode_t mode);
WUNRES int httpd_bind_tcp(const struct addr *at);
/* A server context from PEM files: TLS 1.2 at least, ALPN http/1.1. 0; -EINVAL
 * with a sentence in `why`. */
WUNRES int httpd_tls_new(const char *certificate, const char *key, char *why,
			 size_t why_size, struct ssl_ctx_st **ret);
/* The same files as they are now, open and at their beginning: handshakes that
 * begin later show them. From any thread. 0; HTTPD_TLS_SAME: it is the
 * certificate that was shown; -EINVAL with a sentence in `why`: the former one
 * stays. */
enum { HTTPD_TLS_SAME = 1 };
WUNRES int httpd_tls_renew(struct ssl_ctx_st *tls, int certificate, int key,
			   char *why, size_t why_size);
/* After who listens with it. NULL is fine; returns NULL. */
struct ssl_ctx_st *httpd_tls_free(struct ssl_ctx_st *tls);

/* No new connections, no further requests; idle connections close. done is
 * called (from the loop) when the last request is answered. */
void httpd_drain(struct httpd *h, void (*done)(void *ctx), void *ctx);
/* The same, but streamed replies go on; who calls this asks
 * httpd_connection_count() for the end. */
void httpd_finish(struct httpd *h);
unsigned httpd_connection_count(const struct httpd *h);

/* -- a request ------------------------------------------------------------ */

struct span httpd_method(const struct httpd_request *r);
struct span httpd_path(const struct httpd_request *r); /* raw, no query */
struct span httpd_body(const struct httpd_request *r);
struct span httpd_request_id(const struct httpd_request *r);
const struct httpd_peer *httpd_peer(const struct httpd_request *r);
/* SPAN_NONE when there is no such header. */
struct span httpd_header(const struct httpd_request *r, struct span name);
/* Value of {name} in the route's path, percent-decoded. */
struct span httpd_param(const struct httpd_request *r, const char *name);
/* Value of the first name=value in the query, decoded ('+' is a space);
 * SPAN_NONE when absent, or when it is no proper percent-encoding. */
struct span httpd_query(struct httpd_request *r, const char *name);
/* The same of names that may come several times: how many, and each. */
unsigned httpd_query_count(const struct httpd_request *r, const char *name);
struct span httpd_query_at(struct httpd_request *r, const char *name,
			   unsigned index);
/* Percent-decodes into the arena, with a NUL behind; plus: '+' is a space.
 * False: a bad escape, one of NUL, or no memory. */
bool httpd_decode(struct arena *a, struct span text, bool plus,
		  struct span *ret);
/* Free for the handler (its own state of an asynchronous request). */
void httpd_set_user(struct httpd_request *r, void *user);
void *httpd_user(const struct httpd_request *r);

/* -- replies: each ends the request --------------------------------------- */

void httpd_reply(struct httpd_request *r, unsigned status, const char *type,
		 struct span body);
/* application/json. */
void httpd_reply_json(struct httpd_request *r, unsigned status,
		      struct span body);
/* {"code": ..., "message": ...} */
void httpd_reply_error(struct httpd_request *r, unsigned status,
		       const char *code, const char *fmt, ...) PRINTF(4, 5);
/* 204 */
void httpd_reply_empty(struct httpd_request *r);
/* 200 with Content-Length: 0, for contracts that want it so. */
void httpd_reply_ok(struct httpd_request *r);
/* An extra header for the coming reply; the texts are copied. Several of one
 * name are sent as several. A header that every reply has (Date, Content-Type,
 * Cache-Control, X-Content-Type-Options, X-Request-ID) is replaced by it, and
 * left out when value is SPAN_NONE. Not for those of the framing. A name or a
 * value that no header can have is ignored. */
void httpd_set_header(struct httpd_request *r, const char *name,
		      struct span value);

/* The reason phrase of the coming reply, instead of the usual one. Copied; one
 * that no status line can have is ignored. */
void httpd_set_reason(struct httpd_request *r, struct span reason);
/* An interim reply (102, 103) before the coming one: lines are its fields, each
 * with its CRLF. Not to a client of HTTP/1.0, which knows none; nothing that
 * was set for the reply is in it. */
void httpd_interim(struct httpd_request *r, unsigned status, struct span lines);
/* fn is called once, from the loop, when the client closes (or only ends its
 * side) before the reply begins; end the request then by any reply. For
 * handlers that may have to wait for long. */
void httpd_on_gone(struct httpd_request *r,
		   void (*fn)(void *user, struct httpd_request *r));

/* -- streamed replies ----------------------------------------------------- */

/* gone is called once, when the client closes; call httpd_stream_end() then
 * (it may be called from there). */
void httpd_stream_start(struct httpd_request *r, unsigned status,
			const char *type,
			void (*gone)(void *user, struct httpd_request *r));
/* 0: all was taken, however long; -EAGAIN when HTTPD_STREAM_MAX bytes are
 * unsent (nothing was taken); -EPIPE when the client has gone. */
WUNRES int httpd_stream_write(struct httpd_request *r, struct span bytes);
void httpd_stream_end(struct httpd_request *r);

/* Fields behind the last piece, each with its CRLF (copied, H1_TRAILER_MAX at
 * most); before the end. Where the reply has no chunks there is no place for
 * them, and they are dropped. */
void httpd_stream_set_trailers(struct httpd_request *r, struct span lines);

/* As httpd_stream_start(), with a Content-Length instead of chunks. Exactly so
 * many bytes are written before httpd_stream_end(): more must not be, and after
 * fewer the end is as httpd_stream_abort(). Of a HEAD request nothing is sent.
 */
void httpd_stream_start_sized(struct httpd_request *r, unsigned status,
			      const char *type, uint64_t length,
			      void (*gone)(void *user,
					   struct httpd_request *r));
/* How many bytes are written and not yet sent. */
size_t httpd_stream_unsent(const struct httpd_request *r);
/* fn is called from the loop each time the unsent bytes fall under half of
 * HTTPD_STREAM_MAX after having been over it, and once after this call (so who
 * has more to write, and has written for long enough in one turn, calls this
 * again). A reply that nobody reads is never given up for silence while a room
 * function is set: the handler decides. */
void httpd_stream_on_room(struct httpd_request *r,
			  void (*fn)(void *user, struct httpd_request *r));
/* Another number of bytes than half of HTTPD_STREAM_MAX for "room", at most
 * that; for the life of this reply. */
void httpd_stream_set_room(struct httpd_request *r, size_t bytes);
/* The reply cannot be finished: closes the connection so that the client sees
 * it was cut. Ends the request. */
void httpd_stream_abort(struct httpd_request *r);

/* -- streamed bodies ------------------------------------------------------ */

enum httpd_piece {
	HTTPD_PIECE,	 /* bytes of the body; borrowed for the call */
	HTTPD_PIECE_END, /* it was whole; called once, without bytes */
	HTTPD_PIECE_CUT, /* the client left, fell silent or broke the framing;
			    called once, while the body is paused too */
};

/* Reads the body of a HTTPD_BODY_STREAMED route: fn is called from the loop for
 * each piece (up to 256 KiB) and once for the end. "100 Continue" is sent now
 * if it was asked for. fn may reply at any time: what is left of the body is
 * then read and dropped, up to 1 MiB, or the connection is closed. A client
 * that leaves while the body is not read is noticed when it is read again. */
typedef void httpd_body_fn(void *user, struct httpd_request *r,
			   enum httpd_piece kind, struct span bytes);
void httpd_body_read(struct httpd_request *r, httpd_body_fn *fn);
/* No further piece until httpd_body_resume(); nothing is read meanwhile. */
void httpd_body_pause(struct httpd_request *r);
void httpd_body_resume(struct httpd_request *r);
/* The fields behind a body that came in chunks, each with its CRLF; none that
 * frames or routes a message is among them (header.def). Whole from
 * HTTPD_PIECE_END on, until the reply. */
struct span httpd_body_trailers(const struct httpd_request *r);
/* Content-Length; -1: chunked; 0: no body. */
int64_t httpd_body_length(const struct httpd_request *r);

/* -- another protocol ----------------------------------------------------- */

/* The head as it came, for who forwards it. Valid until the reply. */
struct h1_request;
const struct h1_request *httpd_head(const struct httpd_request *r);
/* Takes the connection out of the server: what the client sent behind the head
 * (and behind the pieces of a body that were told) is readable from the stream,
 * nothing was answered, and the request is over (r and its texts are invalid).
 * NULL: the client has gone, or has sent more already under TLS; r is over too.
 */
struct stream *httpd_take_stream(struct httpd_request *r);
