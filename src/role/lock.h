/* SPDX-License-Identifier: Apache-2.0 */
/* lock.h - a sandbox sends by its own addresses, enforced where it is plugged
 *
 * Each registered sandbox with an interface has a lock: a device (its
 * interface, or its port of a bridge), its addresses and perhaps its hardware
 * address. Nothing else leaves that device (lock_script.c says what exactly).
 * The rules are in nf_tables' own tables and outlive us.
 *
 * Not thread-safe; nothing blocks but the first installation and a repair,
 * which run nft.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/role/msg.h"

struct config;
struct lock;
struct loop;

/* Puts the rules up, keeping what an earlier life of the daemon locked; tells:
 * they tell of what they drop (drop.h). config and loop are borrowed. 0 or -errno, said in the log. Needs CAP_NET_ADMIN. */
WUNRES int lock_new(struct loop *loop, const struct config *config, bool tells,
		    struct lock **ret);
/* The rules stay. NULL is fine; returns NULL. */
struct lock *lock_free(struct lock *l);
/* Takes the rules away. 0 or -errno, said in the log. */
WUNRES int lock_remove(void);

/* Locks the sandbox m->id, instead of how it was locked before, with the next
 * lock_settle(). reply: status 0 and the device, or EINVAL: the message makes
 * no sense, nothing changes. */
void lock_put(struct lock *l, const struct msg_lock *m,
	      struct msg_locked *reply);
/* Ends the lock of m->id, likewise; one that is not there is fine. */
void lock_drop(struct lock *l, const struct msg_lock *m,
	       struct msg_locked *reply);
/* Puts into force what was put and dropped since the last time, as one change
 * of the kernel's tables. What it returns belongs to lock_fail() of each reply
 * that says 0. */
WUNRES int lock_settle(struct lock *l);
/* r not 0: the rules could not be changed, which the reply says as EIO. */
void lock_fail(int r, struct msg_locked *reply);
/* Control starts anew and will put every sandbox again. */
void lock_expect(struct lock *l);
/* Every sandbox was put since lock_expect(): other locks end. Until the first
 * such call, what is put only is remembered, and what an earlier life locked
 * still holds. */
void lock_complete(struct lock *l, struct msg_locked *reply);

/* The rules stood as installed when last looked at. */
bool lock_is_ok(const struct lock *l);
