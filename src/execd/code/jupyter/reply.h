/* SPDX-License-Identifier: Apache-2.0 */
/* reply.h - a reply of the Jupyter server, read as it comes; pure
 *
 * The server is the sandbox's own, so what it says is the workload's word. Both
 * head and body have a bound, and the result is the same for any splitting.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/base/span.h"
#include "src/wire/h1.h"

enum { REPLY_HEAD_MAX = 32 * 1024, REPLY_BODY_MAX = 1024 * 1024 };

enum reply_progress { REPLY_MORE, REPLY_DONE, REPLY_BAD };

struct reply {
	const char *method; /* of the request; borrowed */
	struct buf in, body;
	struct h1_scan scan;
	struct h1_chunked chunked;
	bool has_head;
	enum h1_body kind;
	uint64_t left;
	unsigned status;
};

void reply_init(struct reply *r, const char *method);
void reply_fini(struct reply *r);
/* Where to put what is read next, at most REPLY_READ bytes, which reply_take()
 * is told of. NULL: it is too long. */
enum { REPLY_READ = 16 * 1024 };
WUNRES char *reply_room(struct reply *r);
/* So many bytes are there now; 0: the connection has ended. DONE: .status and
 * .body are the reply. BAD: it is none, or too long. */
WUNRES enum reply_progress reply_take(struct reply *r, size_t len);
