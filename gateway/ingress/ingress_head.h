/* SPDX-License-Identifier: Apache-2.0 */
/* ingress_head.h - a request's head as the inside of a sandbox gets it
 *
 * All end-to-end fields pass (src/httpd/forward_head.h) but for what is not the
 * sandbox's to know: the API key, which some clients send everywhere; tokens of
 * other ports; the routing fields of the ingress; and whatever Forwarded,
 * X-Forwarded-*, X-Real-IP or X-Sallyport-* a client made up. X-Forwarded-For,
 * -Proto, -Host and -Prefix are written anew.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"

struct buf;
struct h1_request;
struct header;
struct httpd_peer;
struct ingress_route;

/* Which fields do not go to a port; of trailers too. */
bool (*ingress_head_drops(uint16_t port))(const struct header *h);
/* token "": to the port itself. Else to execd, which passes it on to that port
 * of the sandbox's loopback. 0 or -ENOBUFS. */
WUNRES int ingress_put_head(struct buf *out, const struct h1_request *head,
			    const struct ingress_route *route,
			    const struct httpd_peer *peer, const char *token);
