/* SPDX-License-Identifier: Apache-2.0 */
/* head.h - requests on their way through the proxy
 *
 * As src/httpd/forward_head.h says, and without the daemon's own token: who
 * listens on a port of the sandbox is not who may command the daemon.
 * X-Forwarded-For grows by the peer, X-Forwarded-Proto is "http",
 * X-Forwarded-Host is left out (contract 5.10).
 */
#pragma once

#include "src/base/attrib.h"
#include "src/wire/h1.h"

struct addr;
struct buf;
struct target;

/* 0 or -ENOBUFS. */
WUNRES int head_put_request(struct buf *out, const struct h1_request *head,
			    const struct target *to, const struct addr *peer);
