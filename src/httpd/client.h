/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - a small blocking HTTP/1.1 client for the command line
 *
 * One connection per call. Talks to our own API: a unix socket, or TCP on
 * plain loopback. Replies are bounded by the buffer given.
 */
#pragma once

#include "src/base/addr.h"
#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;

/* Where the API is: socket_path when not NULL, else address. */
struct httpd_target {
	const char *socket_path;
	struct addr address;
	const char *token;   /* NULL, or sent as "Authorization: Bearer" */
	unsigned timeout_ms; /* of connect and of each silence; 0 = 30 s */
};

/* body.ptr NULL = no body; else it is sent as application/json. *status and
 * the body (appended to reply) are set on 0. Otherwise -errno: -ECONNREFUSED
 * or -ENOENT (nobody listens), -ETIMEDOUT, -EPROTO (not HTTP), -ENOBUFS (reply
 * larger than the buffer's maximum). */
WUNRES int httpd_client_call(const struct httpd_target *target,
			     const char *method, const char *path,
			     struct span body, unsigned *status,
			     struct buf *reply);

/* GET whose body is handed to fn piece by piece as it arrives; fn returns
 * false to stop. No silence limit when timeout_ms is 0. When the status is not
 * 200, fn is not called and the body is appended to reply. */
typedef bool httpd_piece_fn(void *ctx, struct span piece);
WUNRES int httpd_client_stream(const struct httpd_target *target,
			       const char *path, unsigned *status,
			       httpd_piece_fn *fn, void *ctx,
			       struct buf *reply);

/* Percent-encodes one path segment or query value into dst (a struct buf). */
WUNRES int httpd_client_encode(struct buf *dst, struct span text);
