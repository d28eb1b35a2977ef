/* SPDX-License-Identifier: Apache-2.0 */
/* lock_set.h - the elements of the lock's sets, counted by owners */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/map.h"
#include "src/role/msg.h"
#include "src/role/nfnl.h"

struct lock_set {
	struct map counts; /* set and key -> how many own it */
};

void lock_set_init(struct lock_set *s);
void lock_set_fini(struct lock_set *s);

/* Everything that the lock m puts into sets, added or taken back; what enters
 * or leaves a set thereby goes into the transaction n (NULL: none runs yet). */
void lock_set_own(struct lock_set *s, struct nfnl *n, const struct msg_lock *m,
		  bool add);
/* A port of a sandbox bridge that is nobody's. */
void lock_set_port(struct lock_set *s, struct nfnl *n, const char *port,
		   bool add);
/* Makes every set hold exactly what is counted. */
void lock_set_refill(const struct lock_set *s, struct nfnl *n);

/* The table of the chains at devices. */
extern const struct nfnl_table lock_netdev;
