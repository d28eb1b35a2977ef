/* SPDX-License-Identifier: Apache-2.0 */
/* h2.h - one HTTP/2 connection, either side, over bytes in memory
 *
 * RFC 9113 with HPACK (RFC 7541) and extended CONNECT (RFC 8441). The owner
 * moves bytes: h2_input() takes what was received, h2_output() gives what is
 * to be sent. In between the connection calls the owner's struct h2_ops, only
 * ever from inside h2_input(), h2_output() and h2_drop(). An op may call any
 * function of this header but those three and h2_free().
 *
 * A stream is named by its id. Ids of streams that are gone are harmless: the
 * functions below then do nothing, and return 0 bytes or -ENOENT.
 *
 *   client                          server
 *   h2_request() -> id              ops.head(id, request)
 *   h2_write() h2_end()             ops.data ... ops.trailers, ops.end
 *   ops.head(id, 1xx and final)     h2_interim() h2_respond()
 *   ops.data ... trailers, end      h2_write() h2_end()
 *   ops.closed(id, code)            ops.closed(id, code)
 *
 * Time is the caller's: now_ms is clock_ms() or a test's own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/wire/header.h"

enum h2_side {
	H2_SERVER,
	H2_CLIENT,
};

/* RFC 9113 section 7. */
enum h2_code {
#define H2_CODE(number, id) H2_##id = (number),
#include "src/wire/h2_code.def"
#undef H2_CODE
};

/* "ENHANCE_YOUR_CALM"; "UNKNOWN" for a number without a name. */
const char *h2_code_name(uint32_t code);

/* A request or response head. Received: regular fields have valid lower-case
 * names; Cookie crumbs are joined with "; " into one field; authority is
 * filled from a Host field when there is no :authority, and Host itself is in
 * no list (one that differs from :authority is refused). Views live as long as
 * the op.
 *
 * To be sent: names may have any case. What HTTP/2 may not carry is left out
 * (Connection and its kin, Host, TE other than "trailers"), so that the fields
 * of an HTTP/1.1 message can be given as they are. Credential fields
 * (HEADER_CREDENTIAL) and those marked .sensitive are sent never-indexed. */
struct h2_head {
	struct span method;    /* requests */
	struct span scheme;    /* none for plain CONNECT */
	struct span authority; /* may be empty, as in HTTP/1.0 */
	struct span path;      /* "/..." or "*"; none for plain CONNECT */
	struct span protocol;  /* extended CONNECT: "websocket" */
	uint16_t status;       /* responses */
	struct headers headers;
};

/* An empty one; its fields are not cleared, for that would be 8 KiB. */
static inline void h2_head_init(struct h2_head *h)
{
	h->method = h->scheme = h->authority = SPAN_NONE;
	h->path = h->protocol = SPAN_NONE;
	h->status = 0;
	h->headers.count = 0;
}

/* Zero means the default, given in brackets. */
struct h2_limits {
	uint32_t streams;      /* the peer may open at a time [100] (server) */
	uint32_t header_bytes; /* of a head or trailers; 32 per field more,
				  as RFC 9113 6.5.2 counts [64 KiB] */
	uint32_t queue_bytes;  /* to be sent per stream [64 KiB] */
	uint32_t window;       /* unconsumed received data per stream ... */
	uint32_t window_max;   /* ... growing for bulk up to this, */
	uint32_t conn_window;  /* and per connection [256 KiB, 1 MiB, 1 MiB] */
	uint32_t conn_window_max; /* [4 MiB] */
	uint32_t resets;       /* premature resets at once, refilled by a tenth
				  of it per second [500] */
	uint32_t chores;       /* frames without useful work at once, refilled
				  by as many per second [1000] */
	bool extended_connect; /* a server offers RFC 8441 */
};

/* Any may be NULL. `id` of head(): new on a server. */
struct h2_ops {
	/* A request (server), an interim or the final response (client). `end`
	 * tells that end() follows at once. */
	void (*head)(void *ctx, int32_t id, const struct h2_head *head,
		     bool end);
	/* Borrowed; its window is given back by h2_consumed() only. */
	void (*data)(void *ctx, int32_t id, struct span bytes);
	void (*trailers)(void *ctx, int32_t id, const struct headers *trailers);
	/* The peer will send no more on this stream; all was well. */
	void (*end)(void *ctx, int32_t id);
	/* The stream is gone, always last, once per stream that had a head()
	 * (server) or an h2_request() (client). H2_NO_ERROR after end() and
	 * h2_end(): complete. A client may repeat a request that was closed
	 * with H2_REFUSED_STREAM. */
	void (*closed)(void *ctx, int32_t id, uint32_t code);
	/* A server refused a request before its head was whole and valid: why,
	 * for people. No other op tells of this stream. */
	void (*refused)(void *ctx, int32_t id, const char *why);
	/* The stream's queue had been more than half full and is not now. */
	void (*room)(void *ctx, int32_t id);
	/* The peer takes no further streams; those over last_id are closed
	 * with H2_REFUSED_STREAM next. */
	void (*goaway)(void *ctx, int32_t last_id, uint32_t code);
	/* The peer's settings arrived or changed. */
	void (*settings)(void *ctx);
	/* An h2_ping() was answered. */
	void (*pong)(void *ctx);
};

struct h2;

/* limits may be NULL; ops and ctx are borrowed for the connection's life. */
WUNRES int h2_new(enum h2_side side, const struct h2_limits *limits,
		  const struct h2_ops *ops, void *ctx, struct h2 **ret);
/* No op is called. NULL is fine. Returns NULL. */
struct h2 *h2_free(struct h2 *h);
/* The transport is lost: closed() for every stream that is open. What was
 * already gathered to be sent (a GOAWAY after an error) is still given. */
void h2_drop(struct h2 *h, uint32_t code);

/* Takes all bytes. 0, or a connection error: -EPROTO (the peer broke the
 * protocol or was abusive; GOAWAY is queued, so write what h2_output() gives,
 * then close) or -ENOMEM. After an error further input is ignored with the same
 * error (-ECONNABORTED after h2_drop()); open streams are told by h2_drop(). */
WUNRES int h2_input(struct h2 *h, uint64_t now_ms, struct span bytes);
/* Why h2_input() failed, for people; "" when it did not. */
const char *h2_error(const struct h2 *h);
/* The code of the GOAWAY that was sent for it. */
uint32_t h2_error_code(const struct h2 *h);

/* The bytes to send next, at most about 80 KiB; empty when there are none. They
 * are borrowed until the next call of any function of h, and will not be given
 * again. Call it after every input and after every batch of calls below, until
 * it is empty or the socket is full: what is not called for stays queued, in
 * bounded memory. */
WUNRES struct span h2_output(struct h2 *h, uint64_t now_ms);
/* Would h2_output() give something? */
bool h2_wants_write(const struct h2 *h);
/* False: stop reading, for good when h2_is_over(), else until output was
 * taken (a peer that asks and does not read gets no more answers). */
bool h2_wants_read(const struct h2 *h);
/* Everything was said: shut down and no stream open, or failed. Write what is
 * left and close. */
bool h2_is_over(const struct h2 *h);

/* > 0 the stream's id, -EAGAIN when the peer allows no further stream now (try
 * again after a closed() or settings()), -ESHUTDOWN when it will never, -EINVAL
 * when the head lacks what a request needs, -EOPNOTSUPP for extended CONNECT
 * that the peer does not offer. With `end` no body follows. */
WUNRES int h2_request(struct h2 *h, const struct h2_head *head, bool end,
		      void *stream_data);
/* How many requests h2_request() would take now. */
unsigned h2_request_room(const struct h2 *h);
/* The final response: 0, -ENOENT, -EINVAL (status, or a second one). */
int h2_respond(struct h2 *h, int32_t id, const struct h2_head *head, bool end);
/* A 1xx other than 101, before the final response. */
int h2_interim(struct h2 *h, int32_t id, const struct h2_head *head);

/* Bytes that h2_write() takes now; 0 before the head and after the end. */
size_t h2_room(const struct h2 *h, int32_t id);
/* Queues a copy: 0, -ENOENT, -ENOBUFS over h2_room() (nothing is taken), -EPIPE
 * before the head or after h2_end(). */
WUNRES int h2_write(struct h2 *h, int32_t id, struct span bytes);
/* No more from us, after what is queued: trailers (copied, or NULL). 0,
 * -ENOENT, -EPIPE. A server whose response ended before the request did tells
 * the client to stop sending (RST_STREAM NO_ERROR), but for CONNECT. */
int h2_end(struct h2 *h, int32_t id, const struct headers *trailers);
/* Ends the stream at once, both ways; queued data is lost. closed() follows. */
void h2_reset(struct h2 *h, int32_t id, uint32_t code);
/* As h2_end(), but so that the peer sees it broken off: RST_STREAM with this
 * code after what is queued. Before the head: h2_reset(). */
void h2_break(struct h2 *h, int32_t id, uint32_t code);
/* n bytes of data() were used: opens the windows of stream and connection.
 * What a stream still owes when it closes is given back by itself. */
void h2_consumed(struct h2 *h, int32_t id, size_t n);

void h2_set_stream_data(struct h2 *h, int32_t id, void *stream_data);
/* Valid inside closed() too; NULL for an unknown id. */
void *h2_stream_data(const struct h2 *h, int32_t id);
/* Since when has the stream had bytes queued, or an end, of which none could be
 * sent? 0: it has none. For the owner's timer against windows that never open.
 */
uint64_t h2_stalled_since(const struct h2 *h, int32_t id);
/* Since when has a head been arriving that is not whole? 0: none is. */
uint64_t h2_head_since(const struct h2 *h);

/* GOAWAY with a code: open streams are cut off, nothing more is read. */
void h2_goaway(struct h2 *h, uint32_t code);
/* Takes no new streams and lets the open ones finish: a notice first, the final
 * GOAWAY when called again (a round trip or a second later, say). On a client
 * the first call is final. */
void h2_shutdown(struct h2 *h);
int h2_ping(struct h2 *h);

unsigned h2_peer_max_streams(const struct h2 *h);
bool h2_peer_extended_connect(const struct h2 *h);
bool h2_peer_settings_seen(const struct h2 *h);
/* Those that the owner knows and that are not closed. */
unsigned h2_open_streams(const struct h2 *h);
/* May it carry new requests (client): no GOAWAY either way, ids left? */
bool h2_is_open(const struct h2 *h);
/* Heap bytes the connection holds now, queues included. */
size_t h2_memory(const struct h2 *h);
