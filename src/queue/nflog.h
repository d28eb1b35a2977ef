/* SPDX-License-Identifier: Apache-2.0 */
/* nflog.h - headers of packets that the kernel dropped by our rules
 *
 * A group of the kernel's packet log (NFLOG); src/role/drop.h has the rules
 * that write to it. Nothing depends on it but records.
 */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct loop;
struct nflog;

struct nflog_packet {
	struct span prefix; /* as the rule says */
	uint32_t ifindex;   /* where it came in, of a bridge the port; 0 = ? */
	uint16_t ethertype;
	struct span bytes; /* from the network header; borrowed for the call */
};

typedef void nflog_fn(void *ctx, const struct nflog_packet *p);

/* Takes the group: before the role is confined. 0; -EPERM: somebody else reads
 * it; -EOPNOTSUPP: this kernel has no packet log; -errno. Needs CAP_NET_ADMIN.
 */
WUNRES int nflog_open(uint16_t group, struct nflog **ret);
WUNRES int nflog_start(struct nflog *n, struct loop *loop, nflog_fn *fn,
		       void *ctx);
/* NULL is fine; returns NULL. */
struct nflog *nflog_free(struct nflog *n);
