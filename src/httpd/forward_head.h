/* SPDX-License-Identifier: Apache-2.0 */
/* forward_head.h - which fields of a head are passed on, and how it is written
 *
 * All end-to-end fields pass, in their order. What belongs to one connection
 * (RFC 9110 7.6.1: the fields so named and those that Connection names) does
 * not, and the framing is written anew.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/wire/h1.h"

struct buf;
struct httpd_request;

/* What a request becomes. */
struct forward_edit {
	struct span path; /* the target; a "/" is put in front where it lacks */
	struct span host; /* of a request without Host (HTTP/1.0) */
	struct span lines; /* further fields, each with its CRLF */
	/* Is this field left out as well? NULL: no other is. */
	bool (*drops)(const struct header *h);
};

/* The head for the server: chunked or with a length as the body comes. An
 * Upgrade passes. 0 or -ENOBUFS. */
WUNRES int forward_put_request(struct buf *out, const struct h1_request *head,
			       const struct forward_edit *edit);
/* Status, reason and fields for r's reply; the framing is not among them.
 * False: they are more than a reply can have. */
WUNRES bool forward_set_reply(struct httpd_request *r,
			      const struct h1_response *head);
/* The fields of an interim reply. 0 or -ENOBUFS. */
WUNRES int forward_put_interim(struct buf *out, const struct h1_response *head);
/* Those of lines (raw, each with CRLF) that are not left out; drops may be
 * NULL. 0 or -ENOBUFS. */
WUNRES int forward_put_trailers(struct buf *out, struct span lines,
				bool (*drops)(const struct header *h));
/* A 101 with its Upgrade, and further lines. 0 or -ENOBUFS. */
WUNRES int forward_put_switch(struct buf *out, const struct h1_response *head,
			      struct span lines);
