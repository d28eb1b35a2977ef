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
#include "src/role/msg.h"

struct config;

#define FENCE_TABLE "inet sallyport"

/* What this node can do, found when the rules are installed. */
struct fence_rules {
	bool ipv6;	       /* else IPv6 of sandboxes is dropped */
	enum queue_kind queue; /* how UDP and ICMP come to a decision */
	bool tells;	       /* of what is dropped, by NFLOG (drop.h) */
};

/* The nft script that replaces the table, whatever was there: TCP and DNS to
 * the gateway, UDP and ICMP as they are decided. rules NULL: everything from
 * and to sandboxes is dropped. 0, -ENOBUFS. */
WUNRES int fence_script(const struct config *config,
			const struct fence_rules *rules, struct buf *out);

/* Routing first, then the way to the queue, then the table. 0 or -errno, said
 * in the log. Blocks while the tools run. */
WUNRES int fence_install(const struct config *config, struct fence_rules *ret);
/* No flow that was allowed before goes on: for a start, where nobody knows
 * what policy said since. 0 or -errno, said in the log. */
WUNRES int fence_forget_flows(void);

/* Allowed UDP and ICMP need a node that forwards; whether it does is the
 * operator's to say. */
enum { FENCE_FORWARDS_V4 = 1, FENCE_FORWARDS_V6 = 2 };
unsigned fence_forwards(void);

/* The stopped daemon's table, no routing. 0 or -errno, said in the log. */
WUNRES int fence_close(const struct config *config);
/* No table, no routing: sandboxes have whatever the node lets them have. */
WUNRES int fence_remove(const struct config *config);

/* The table as nft prints it, without counters and members of sets; empty when
 * there is none. */
WUNRES int fence_read(struct buf *out);
/* Puts routing back where it is missing. Cheap; 0 or -errno. */
WUNRES int fence_route(const struct config *config, bool ipv6);
