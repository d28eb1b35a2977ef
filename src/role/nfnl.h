/* SPDX-License-Identifier: Apache-2.0 */
/* nfnl.h - a transaction of nf_tables as netlink messages, without nft
 *
 * For what changes with every sandbox: elements of sets and chains at devices.
 * Running nft for it would cost ten milliseconds each. What stands still is
 * written as nft's text instead (fence.c, lock_script.c).
 *
 * Messages are put one after another; nfnl_commit() gives them to the kernel,
 * which takes all or none. A message that does not fit sets .full, and the
 * commit then fails.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/base/span.h"

struct nfnl {
	struct buf bytes;
	unsigned count; /* messages between the first and the last */
	bool full;
};

/* family: NFPROTO_*. */
struct nfnl_table {
	uint8_t family;
	const char *name;
};

void nfnl_init(struct nfnl *n);
void nfnl_fini(struct nfnl *n);

/* key: as the set's type lays it out, each part padded to 4 bytes. Adding what
 * is there is fine; removing what is not fails the transaction (ENOENT). */
void nfnl_element(struct nfnl *n, const struct nfnl_table *t, const char *set,
		  struct span key, bool add);
/* The same for a set whose elements are limits: bytes per second at most, "over"
 * matches. 0: the element is removed. One that is there keeps its rate. */
void nfnl_element_limit(struct nfnl *n, const struct nfnl_table *t,
			const char *set, struct span key, uint64_t bytes_per_s);
/* Removes every element. */
void nfnl_flush_set(struct nfnl *n, const struct nfnl_table *t,
		    const char *set);
/* A base chain at the ingress of a device: drops, but first goes to `target`.
 * What stood in it is replaced. */
void nfnl_ingress(struct nfnl *n, const struct nfnl_table *t, const char *chain,
		  const char *device, const char *target);
void nfnl_remove_chain(struct nfnl *n, const struct nfnl_table *t,
		       const char *chain);
/* Removes a chain without rules and its table without other chains; if there is
 * more in either, the transaction fails (EBUSY). */
void nfnl_remove_empty(struct nfnl *n, const struct nfnl_table *t,
		       const char *chain);

/* A socket for transactions; its port id in *ret_port is what notifications of
 * our own changes carry. The descriptor or -errno. Needs CAP_NET_ADMIN. */
WUNRES int nfnl_open(uint32_t *ret_port);
/* Runs and empties the transaction; an empty one is fine. 0; -ENOENT: something
 * named is not there (a device, too); -errno. Nothing was changed then. */
WUNRES int nfnl_commit(struct nfnl *n, int fd);

/* Calls fn with the name of every chain of the table. 0 (also without such a
 * table) or -errno. */
WUNRES int nfnl_each_chain(int fd, const struct nfnl_table *t,
			   void (*fn)(void *ctx, const char *chain), void *ctx);
