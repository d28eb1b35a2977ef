/* SPDX-License-Identifier: Apache-2.0 */
/* lock_device.h - the chains at the ingress of locked devices */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/attrib.h"
#include "src/base/map.h"
#include "src/role/msg.h"
#include "src/role/nfnl.h"

struct link;

struct lock_devices {
	struct map by_name; /* -> struct device */
	struct nfnl change;
	int fd;		      /* nfnl_open()'s, borrowed */
	bool live;	      /* chains are attached as devices come */
	struct link *waiting; /* of lock_device_wait() */
	size_t waiting_count, waiting_room;
};

/* Where m is locked: its port, or its interface. */
const char *lock_device_name(const struct msg_lock *m);

void lock_devices_init(struct lock_devices *all, int fd);
void lock_devices_fini(struct lock_devices *all);

/* One more sandbox is locked at m's device, or one fewer; with the last the
 * chain goes. */
void lock_device_own(struct lock_devices *all, const struct msg_lock *m);
void lock_device_disown(struct lock_devices *all, const struct msg_lock *m);
/* An interface is there, or is no longer: attaches the chain to one that is
 * locked. */
void lock_device_link(struct lock_devices *all, const struct link *link);
/* The same of one that is there, with the next lock_devices_settle(): one
 * transaction for many. */
void lock_device_wait(struct lock_devices *all, const struct link *link);
void lock_devices_settle(struct lock_devices *all);

/* Puts into the transaction n that every locked device that is there has its
 * chain, and no other has one. 0 or -errno. */
WUNRES int lock_devices_refill(struct lock_devices *all, struct nfnl *n);
/* How many have their chain. */
size_t lock_devices_attached(const struct lock_devices *all);
