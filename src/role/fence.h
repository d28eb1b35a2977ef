/* SPDX-License-Identifier: Apache-2.0 */
/* fence.h - the kernel rules: one nftables table and the routing it needs
 *
 * The table is `inet sallyport`. Every change is one transaction of nft that
 * touches this table only; there is no moment without rules.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/buf.h"

struct config;

enum fence_kind {
	FENCE_CLOSED, /* drop everything from and to sandboxes */
	FENCE_OPEN,   /* bring TCP and DNS to the gateway, drop the rest */
};

/* The nft script that replaces the table, whatever was there. 0, -ENOBUFS. */
WUNRES int fence_script(const struct config *config, enum fence_kind kind,
			bool ipv6, struct buf *out);

/* Routing first, then the table. *ret_ipv6: whether this node has IPv6; if
 * not, IPv6 of sandboxes is dropped. 0 or -errno, said in the log. Blocks
 * while nft runs. */
WUNRES int fence_install(const struct config *config, bool *ret_ipv6);
/* The stopped daemon's table, no routing. 0 or -errno, said in the log. */
WUNRES int fence_close(const struct config *config);
/* No table, no routing: sandboxes have whatever the node lets them have. */
WUNRES int fence_remove(const struct config *config);

/* The table as nft prints it, without counters; empty when there is none. */
WUNRES int fence_read(struct buf *out);
/* Puts routing back where it is missing. Cheap; 0 or -errno. */
WUNRES int fence_route(const struct config *config, bool ipv6);
