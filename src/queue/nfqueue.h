/* SPDX-License-Identifier: Apache-2.0 */
/* nfqueue.h - packets that the kernel holds until somebody says what becomes
 * of them
 *
 * The only place that meets libnetfilter_queue.
 */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct loop;
struct nfqueue;

struct nfqueue_packet {
	uint32_t id;	   /* for nfqueue_*() below; each packet once */
	uint32_t ifindex;  /* where it came in; 0 = unknown */
	struct span bytes; /* from the network header, cut off behind the
			      headers; borrowed for the call */
};

struct nfqueue_ops {
	void (*packet)(void *ctx, const struct nfqueue_packet *p);
	/* the kernel had no room for one or more; it dropped them */
	void (*lost)(void *ctx);
};

/* Takes the queue of that number, without a loop yet: before the role is
 * confined. 0; -EPERM: somebody else reads it; -EOPNOTSUPP: this kernel has no
 * packet queues; -errno. Needs CAP_NET_ADMIN, as every call here. */
WUNRES int nfqueue_open(uint16_t number, struct nfqueue **ret);
WUNRES int nfqueue_start(struct nfqueue *q, struct loop *loop,
			 const struct nfqueue_ops *ops, void *ctx);
/* What still waits is dropped by the kernel. NULL is fine; returns NULL. */
struct nfqueue *nfqueue_free(struct nfqueue *q);

/* The packet goes on with this mark. */
void nfqueue_accept(struct nfqueue *q, uint32_t id, uint32_t mark);
void nfqueue_drop(struct nfqueue *q, uint32_t id);
