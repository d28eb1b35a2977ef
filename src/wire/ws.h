/* SPDX-License-Identifier: Apache-2.0 */
/* ws.h - WebSocket frames (RFC 6455): bytes in, frames out, both roles
 *
 * Pure. The parser takes bytes at any split and tells pieces of messages as
 * they come, unmasked; control frames are told whole, between pieces. What
 * RFC 6455 forbids (a reserved bit or opcode, a fragmented or long control
 * frame, a wrong mask, a length not in its shortest form, text that is not
 * UTF-8) is an error with the close code to send.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;

enum ws_opcode {
	WS_CONTINUATION = 0,
	WS_TEXT = 1,
	WS_BINARY = 2,
	WS_CLOSE = 8,
	WS_PING = 9,
	WS_PONG = 10,
};

enum { WS_KEY_SIZE = 24, WS_ACCEPT_SIZE = 28 };

struct ws_event {
	enum ws_opcode opcode; /* of the message, never WS_CONTINUATION */
	struct span bytes;     /* a piece; of a control frame all */
	bool last;	       /* the message is whole with it */
};

struct ws {
	bool is_server; /* then frames that come are masked, ours are not */
	uint64_t message_max; /* bytes of one message; 0: any */
	/* the rest is the parser's */
	uint8_t head[14];
	uint8_t head_len, mask_at;
	bool in_payload, fin, in_message;
	uint8_t opcode, message_opcode;
	uint64_t left, message_len;
	uint8_t mask[4];
	uint8_t control[125];
	uint8_t control_len;
	uint32_t utf8; /* state of the text's check */
};

/* Takes bytes off the front of *in (unmasking in place) until there is one
 * event. 1: *ev is set; 0: more bytes are needed; < 0: -(close code), the
 * connection is lost. */
WUNRES int ws_next(struct ws *w, char **in, size_t *len, struct ws_event *ev);
/* Appends one whole frame. A client's is masked with `mask` (four random
 * bytes). 0 or -ENOBUFS. */
WUNRES int ws_put(struct buf *out, enum ws_opcode opcode, struct span bytes,
		  const uint8_t mask[4]);
/* Sec-WebSocket-Accept for a Sec-WebSocket-Key; false: not 16 bytes of base64.
 */
WUNRES bool ws_accept(struct span key, char dst[WS_ACCEPT_SIZE]);
