/* SPDX-License-Identifier: Apache-2.0 */
/* drop.h - why the kernel drops a packet by itself, and how it tells
 *
 * Most packets of a sandbox are decided by the gateway. Those that cannot be
 * anything but refused are dropped by our rules, without a question: a chain
 * for each reason counts the packet, gives its headers to the log group that
 * the queue role reads (NFLOG), and drops it. Of one sandbox so many of one
 * reason are told in a second, so that neither a flood nor a neighbour hides
 * another kind of attempt; the counters count all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;
struct config;

/* X(id, name): the name is the log's prefix; chain and counter are
 * "drop_" name. */
#define DROP_REASONS(X)                                                      \
	X(PROTOCOL, "protocol")	  /* neither TCP, UDP nor ICMP */            \
	X(FRAGMENT, "fragment")	  /* that the kernel did not put together */ \
	X(SOURCE, "source")	  /* not an address of the sandbox's own */  \
	X(MAC, "mac")		  /* not its hardware address */             \
	X(NEIGHBOUR, "neighbour") /* ARP, ND about what is not its own */    \
	X(FRAME, "frame")	  /* neither IP nor ARP */                   \
	X(OPTIONS, "options")	  /* source routes and their kin */          \
	X(ROUTER, "router")	  /* what only routers and servers send */   \
	X(ISOLATED, "isolated")	  /* from port to port of a bridge */        \
	X(GROUP, "group")	  /* to many: multicast, broadcast */        \
	X(NO_FLOW, "no_flow")	  /* in the middle of what never began */    \
	X(LIMIT, "limit")	  /* too many a second, or at a time */      \
	X(NODE, "node")		  /* to the node's own addresses */          \
	X(UNDECIDED, "undecided") /* nobody was there to decide */           \
	/* by the queue role */                                              \
	X(MALFORMED, "malformed") /* no flow could be read from it */        \
	X(QUEUE_FULL, "queue_full")

enum drop_reason {
#define DROP_ENUM(id, name) DROP_##id,
	DROP_REASONS(DROP_ENUM)
#undef DROP_ENUM
		DROP_NUM,
};

enum {
	DROP_TELL_PER_SECOND = 5, /* of one sandbox and reason */
	DROP_TELL_BURST = 20,
	DROP_TELL_BYTES = 128, /* of a packet, from its network header on */
};

/* What counters are called: DROP_PREFIX and a reason; and those of packets that
 * were given to the queue, and that came around it. */
#define DROP_PREFIX	      "drop_"
#define DROP_COUNTER_QUEUED   "queued"
#define DROP_COUNTER_UNQUEUED "unqueued"

const char *drop_name(enum drop_reason reason);
/* DROP_NUM: no such reason. */
enum drop_reason drop_find(struct span name);

/* Whose limit a packet that is told of counts against. */
enum drop_telling {
	DROP_TELL_NOTHING,    /* this kernel has no NFLOG */
	DROP_TELL_BY_DEVICE,  /* where it came in */
	DROP_TELL_BY_STATION, /* and, by Ethernet, from which address: behind a
				 bridge all its ports are one device. Of the
				 families IP is in (inet) alone */
};

/* A list of reasons ends with DROP_NUM. */
/* Counters and sets that the chains need, as lines of a table's block. 0,
 * -ENOBUFS. */
WUNRES int drop_put_objects(struct buf *out, const enum drop_reason *reasons,
			    enum drop_telling telling);
WUNRES int drop_put_chains(struct buf *out, const struct config *config,
			   const enum drop_reason *reasons,
			   enum drop_telling telling);

/* Can the rules tell of packets, in all the families that we have tables in?
 * Runs nft, which changes nothing. */
bool drop_may_tell(const struct config *config);
