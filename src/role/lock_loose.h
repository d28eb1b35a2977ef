/* SPDX-License-Identifier: Apache-2.0 */
/* lock_loose.h - sandboxes of a bridge whose port nobody said */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/list.h"
#include "src/base/map.h"
#include "src/role/msg.h"

struct loose_box;

/* The lock `at`, which names a port, holds from now on, or no longer. */
typedef void lock_loose_fn(void *ctx, const struct msg_lock *at, bool add);

struct lock_loose {
	lock_loose_fn *fn;
	void *ctx;
	struct map ports; /* name -> struct loose_port */
	struct list boxes;
};

void lock_loose_init(struct lock_loose *all, lock_loose_fn *fn, void *ctx);
/* Says nothing to fn. */
void lock_loose_fini(struct lock_loose *all);

/* A port was seen at that bridge, or at none (""). */
void lock_loose_port(struct lock_loose *all, const char *port,
		     const char *bridge);
/* One more sandbox has that port for its own, or one fewer. */
void lock_loose_own(struct lock_loose *all, const char *port, bool add);
/* A sandbox of the bridge what->iface, for lock_loose_drop(). */
struct loose_box *lock_loose_put(struct lock_loose *all,
				 const struct msg_lock *what);
/* Frees it; returns NULL. NULL is fine. */
struct loose_box *lock_loose_drop(struct lock_loose *all, struct loose_box *box);
