/* SPDX-License-Identifier: Apache-2.0 */
/* head.h - requests on their way through the proxy
 *
 * As src/httpd/forward_head.h says, and without the daemon's own token: who
 * listens on a port of the sandbox is not who may command the daemon.
 * X-Forwarded-For grows by the peer, X-Forwarded-Proto is "http",
 * X-Forwarded-Host is left out (contract 5.10). What the node's gateway asks
 * for passes as it said it: it is no hop that anybody should see.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/wire/h1.h"

struct addr;
struct buf;
struct target;

/* Fields that do not go on; of trailers too. */
bool head_drops(const struct header *h);
/* peer NULL: the gateway. 0 or -ENOBUFS. */
WUNRES int head_put_request(struct buf *out, const struct h1_request *head,
			    const struct target *to, const struct addr *peer);
