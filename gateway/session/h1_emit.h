/* SPDX-License-Identifier: Apache-2.0 */
/* h1_emit.h - write HTTP/1.1 heads: kept fields in order and case, then ours */
#pragma once

#include <stdbool.h>

#include "gateway/pipeline/request.h"
#include "src/base/attrib.h"
#include "src/wire/h1.h"

struct buf;

/* The head for the origin. Needs the grant. Hop-by-hop fields, fields that
 * Connection names, and every field that injection sets are left out; framing
 * is ours; injection is last. 0 or -ENOBUFS. The caller wipes out. */
struct grant;
WUNRES int h1_emit_request(const struct request *req,
			   const struct h1_request *head,
			   const struct grant *grant, struct buf *out);

/* How the response is framed for the client. */
struct h1_reply {
	bool chunked;  /* else as the head says, or until close */
	bool close;    /* say Connection: close */
	bool keep_old; /* say Connection: keep-alive (HTTP/1.0) */
	bool upgrade;  /* a 101 */
	bool interim;  /* any other 1xx */
};

/* The head for the client, redacted when the request was injected. 0, or
 * -ENOBUFS and out is as it was. */
struct response;
WUNRES int h1_emit_response(struct request *req, const struct response *head,
			    const struct h1_reply *how, struct buf *out);
