/* SPDX-License-Identifier: Apache-2.0 */
/* message.h - messages of a Jupyter kernel, as its server sends them
 *
 * Pure. The server's WebSocket carries all channels of a kernel, one JSON text
 * per message (protocol 5.x, "messaging in Jupyter"): header, parent_header,
 * metadata, content, channel. Every message that a request causes names it in
 * parent_header.msg_id; the kernel has finished when its execute_reply has
 * come and the kernel told that it is idle again, in either order.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;
struct json;

enum message_kind {
	MESSAGE_OTHER, /* zero: not for us */
	MESSAGE_STREAM,
	MESSAGE_RESULT,	 /* execute_result and display_data */
	MESSAGE_ERROR,	 /* on iopub */
	MESSAGE_REPLY,	 /* execute_reply */
	MESSAGE_BUSY,	 /* status of our request */
	MESSAGE_IDLE,	 /* the same */
	MESSAGE_RESTART, /* status of the kernel itself: it died */
};

struct message {
	struct json *root; /* message_fini() */
	enum message_kind kind;
	const struct json *content;
	struct span text; /* of a stream */
	bool is_stderr;	  /* the same */
	uint64_t count;	  /* of a result or reply; 0: none */
	bool failed;	  /* of a reply */
};

/* Messages whose parent is another request are MESSAGE_OTHER. 0; -EINVAL: not
 * JSON, or no message. */
WUNRES int message_parse(struct span text, struct span request,
			 struct message *ret);
void message_fini(struct message *m);

/* Appends an execute_request: its id, of the session, with the code. 0 or
 * -ENOBUFS. */
WUNRES int message_execute(struct buf *out, struct span id, struct span session,
			   struct span code);

/* The name of the kernel for a language, from the body of GET /api/kernelspecs:
 * one whose language it is, or whose name it is. Of several the server's
 * default is the last choice, for images give their own kernels to languages.
 * SPAN_NONE: none. Borrowed from specs. */
struct span message_kernel(const struct json *specs, struct span language);
