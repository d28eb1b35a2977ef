/* SPDX-License-Identifier: Apache-2.0 */
/* conntrack.h - the flows that the kernel forwards because we said so
 *
 * Entries of connection tracking that carry our tag (src/role/flow_mark.h);
 * others are never seen.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/role/msg.h"

struct conntrack;
struct loop;

enum { CONNTRACK_KEY_BYTES = 192 };

/* What the kernel needs to find an entry again: itself and no later one. */
struct conntrack_key {
	uint8_t family; /* AF_INET, AF_INET6 */
	uint16_t len;
	char bytes[CONNTRACK_KEY_BYTES];
};

struct conntrack_entry {
	struct msg_flow flow; /* .again is set */
	struct conntrack_key key;
};

struct conntrack_ops {
	/* One of the entries that conntrack_list() asked for. False: no more
	 * for now, until conntrack_resume(). */
	bool (*entry)(void *ctx, const struct conntrack_entry *e);
	/* That was all. complete is false when the kernel may have left some
	 * out. */
	void (*end)(void *ctx, bool complete);
};

/* Before the role is confined. 0; -EOPNOTSUPP: the kernel has no connection
 * tracking, hence no flows; -errno. Needs CAP_NET_ADMIN, as every call. */
WUNRES int conntrack_open(struct conntrack **ret);
WUNRES int conntrack_start(struct conntrack *c, struct loop *loop,
			   const struct conntrack_ops *ops, void *ctx);
/* NULL is fine; returns NULL. */
struct conntrack *conntrack_free(struct conntrack *c);

/* Begins a list, or begins it anew; ops follow from the loop. 0 or -errno. */
WUNRES int conntrack_list(struct conntrack *c);
void conntrack_resume(struct conntrack *c);

/* Ends a flow: its next packet is one of a new flow. 0, also when it ended by
 * itself meanwhile; -errno: it may live on. */
WUNRES int conntrack_delete(struct conntrack *c, const struct conntrack_key *k);
