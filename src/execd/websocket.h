/* SPDX-License-Identifier: Apache-2.0 */
/* websocket.h - one WebSocket connection over a stream, either side (RFC 6455)
 *
 * As a server: in a handler, websocket_check() answers whoever did not ask for
 * a WebSocket; then websocket_accept() takes the connection over. The request
 * is over with it.
 *
 * As a client: stream_connect() to the server, websocket_connect() at once (it
 * waits for the connection itself), then .open is called when the server has
 * agreed, or .closed when anything went wrong.
 *
 * Once it is open: .message tells what comes, websocket_send() takes whole
 * messages. Callbacks come from the loop only, never from inside a function of
 * this file, and may close the connection. Pings are answered and sent without
 * the owner; a peer from which nothing comes for silence_ms is lost. A peer
 * that reads slowly fills a bounded queue, then websocket_send() takes no more
 * until .room.
 *
 * The owner ends it with websocket_close(), after which nothing is called any
 * more; or the peer does, and .closed is the last that is heard of it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"
#include "src/wire/ws.h"

struct httpd_request;
struct loop;
struct stream;
struct websocket;

enum {
	WEBSOCKET_PING_MS = 30 * 1000,
	WEBSOCKET_SILENCE_MS = 60 * 1000,
	WEBSOCKET_OPEN_MS = 30 * 1000, /* a client's connect and handshake */
	WEBSOCKET_LINGER_MS = 5 * 1000,
	/* From so many unsent bytes on websocket_send() takes no more. */
	WEBSOCKET_UNSENT_MAX = 192 * 1024,
	WEBSOCKET_MESSAGE_MAX = 1024 * 1024,
	/* What websocket_send() takes at once. */
	WEBSOCKET_SEND_MAX = 15 * 1024 * 1024,
};

enum websocket_code {
	WEBSOCKET_NORMAL = 1000,
	WEBSOCKET_GOING_AWAY = 1001,
	WEBSOCKET_PROTOCOL = 1002,
	WEBSOCKET_NO_STATUS = 1005, /* never sent: Close had no code */
	WEBSOCKET_ABNORMAL = 1006,  /* never sent: the connection broke */
	WEBSOCKET_TOO_BIG = 1009,
	WEBSOCKET_INTERNAL = 1011,
	WEBSOCKET_TRY_LATER = 1013,
};

/* 0 = the default of that limit. */
struct websocket_limits {
	uint64_t ping_ms, silence_ms;
	/* Bytes of one message that comes; more is close code 1009. */
	uint64_t message_max;
	/* .message is told whole messages (then message_max is the memory);
	 * otherwise pieces as they come. */
	bool whole;
};

struct websocket_ops {
	/* A client's handshake is done. NULL for a server. */
	void (*open)(void *ctx);
	/* WS_TEXT or WS_BINARY; bytes are borrowed for the call. `last`: the
	 * message is complete with them. */
	void (*message)(void *ctx, enum ws_opcode opcode, struct span bytes,
			bool last);
	/* websocket_send() will take something again. May be NULL. */
	void (*room)(void *ctx);
	/* It is over and freed when this returns: the peer's close code,
	 * WEBSOCKET_ABNORMAL when the connection broke or never opened; `why`
	 * is a sentence for the log (borrowed). */
	void (*closed)(void *ctx, unsigned code, const char *why);
};

/* Did r ask for a WebSocket, of version 13? False: answered (400 or 426). */
WUNRES bool websocket_check(struct httpd_request *r);
/* Takes the request; after websocket_check(). limits may be NULL; they are
 * copied, ops and ctx are borrowed. 0, or -EPIPE (the client has gone; r is
 * over). */
WUNRES int websocket_accept(struct httpd_request *r,
			    const struct websocket_limits *limits,
			    const struct websocket_ops *ops, void *ctx,
			    struct websocket **ret);

/* What a client asks for. */
struct websocket_target {
	struct span host;    /* of the Host header: "127.0.0.1:8888" */
	struct span path;    /* with query */
	struct span headers; /* whole further lines, each with CRLF; may be
				empty */
};
/* Takes s (freed on failure too). target is copied. 0, -EINVAL (something in
 * target cannot stand in a head) or -ENOBUFS. */
WUNRES int websocket_connect(struct stream *s,
			     const struct websocket_target *target,
			     const struct websocket_limits *limits,
			     const struct websocket_ops *ops, void *ctx,
			     struct websocket **ret);

/* One whole message of WS_TEXT or WS_BINARY: 0; -EAGAIN (nothing was taken;
 * .room will be called); -EMSGSIZE over WEBSOCKET_SEND_MAX; -EPIPE: not open,
 * or lost, .closed will follow. */
WUNRES int websocket_send(struct websocket *w, enum ws_opcode opcode,
			  struct span bytes);
/* Bytes that were taken and have not left yet. */
size_t websocket_unsent(const struct websocket *w);
/* Reads nothing from the peer until it is let go; silence is not counted
 * meanwhile. */
void websocket_hold(struct websocket *w, bool held);
/* Sends what is queued, then Close with this code and reason (at most 123
 * bytes), and frees w. NULL is fine. Returns NULL. */
struct websocket *websocket_close(struct websocket *w, unsigned code,
				  const char *reason);
