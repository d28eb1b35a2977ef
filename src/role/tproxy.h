/* SPDX-License-Identifier: Apache-2.0 */
/* tproxy.h - the rules that give packets to our sockets, as nft reads them */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/buf.h"

struct config;

/* Lines for a chain of an inet table: port 53 of UDP and of TCP to the DNS
 * server, the rest of TCP to the proxy; what finds its socket is accepted.
 * before: what a line begins with; marking: what else is done to the packet, or
 * "". 0, -ENOBUFS. */
WUNRES int tproxy_put(struct buf *out, const struct config *config, bool ipv6,
		      const char *before, const char *marking);
