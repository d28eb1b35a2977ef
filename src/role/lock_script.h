/* SPDX-License-Identifier: Apache-2.0 */
/* lock_script.h - the part of the lock's rules that no sandbox changes */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/buf.h"

struct config;

/* The name of our table in the families netdev, inet, arp and bridge. */
#define LOCK_TABLE "sallyport_lock"
/* What a packet carries from the lock at its device to the check behind it. A
 * whole packet of TCP keeps it until the fence has looked (fence_script.c). */
#define LOCK_MARK "0x4c4f434b"
/* The chain every locked device's ingress goes to. */
#define LOCK_CHAIN "lock"
/* How many chains stand in the family netdev without any device. */
enum { LOCK_CHAINS = 9 + 6 };

struct lock_script_how {
	bool tells; /* of what is dropped, by NFLOG (drop.h) */
	bool fresh; /* tables that stand are deleted first */
};

/* nft's script that puts the rules into tables that stand already or not, and
 * leaves elements and devices as they are; one transaction. 0, -ENOBUFS. */
WUNRES int lock_script(const struct config *config,
		       const struct lock_script_how *how, struct buf *out);
/* The script that takes the tables away. */
WUNRES int lock_script_remove(struct buf *out);
