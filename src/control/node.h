/* SPDX-License-Identifier: Apache-2.0 */
/* node.h - what the gateway must know about this node, as JSON
 *
 *   {"pins": {"name": ["ip"]}, "hosts": {"name": ["ip"]},
 *    "upstreams": ["ip:port"], "own": ["ip/prefix"]}
 *
 * Pins are the configuration's; hosts are the entries of the hosts file under
 * canonical names; upstreams the configured name servers, or those of
 * /etc/resolv.conf; own every address of this node's interfaces.
 */
#pragma once

#include "src/base/attrib.h"

struct buf;
struct config;

enum { NODE_TEXT_MAX = 16 * 1024 * 1024, NODE_POLL_MS = 10 * 1000 };

/* Reads the present facts; what cannot be read is empty. Blocks for local
 * files only. 0 or -ENOBUFS. */
WUNRES int node_emit(const struct config *config, struct buf *out);
