/* SPDX-License-Identifier: Apache-2.0 */
/* head.h - heads on their way through the proxy
 *
 * All end-to-end fields pass, in their order. What belongs to one connection
 * (RFC 9110 7.6.1: the fields so named and those that Connection names) does
 * not, nor the daemon's own token: who listens on a port of the sandbox is not
 * who may command the daemon. X-Forwarded-For grows by the peer,
 * X-Forwarded-Proto is "http", X-Forwarded-Host is left out (contract 5.10).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/wire/h1.h"

struct addr;
struct buf;
struct httpd_request;
struct target;

/* A request to the server behind; chunked or with a length as the body comes.
 * With `upgrade` its Upgrade passes. 0 or -ENOBUFS. */
WUNRES int head_put_request(struct buf *out, const struct h1_request *head,
			    const struct target *to, const struct addr *peer,
			    bool upgrade);
/* Status, reason and fields for r's reply; the framing is not among them.
 * False: they are more than a reply can have. */
WUNRES bool head_set_reply(struct httpd_request *r,
			   const struct h1_response *head);
/* A 101, with its Upgrade. 0 or -ENOBUFS. */
WUNRES int head_put_switch(struct buf *out, const struct h1_response *head);
