/* SPDX-License-Identifier: Apache-2.0 */
/* forward_pool.h - connections to servers that may be used again
 *
 * It is known by address, port and the network device it was made by ("": the
 * one that the routes chose). A connection is kept for FORWARD_POOL_IDLE_MS, at
 * most FORWARD_POOL_MAX of them; one that its server closes (or writes to
 * without being asked) is forgotten at once.
 */
#pragma once

#include <stdint.h>

#include "src/base/addr.h"
#include "src/base/list.h"

struct loop;
struct stream;

enum { FORWARD_POOL_MAX = 64, FORWARD_POOL_IDLE_MS = 10 * 1000 };

struct forward_pool {
	struct loop *loop;
	struct list idle; /* newest first */
	unsigned count;
};

void forward_pool_init(struct forward_pool *p, struct loop *loop);
void forward_pool_fini(struct forward_pool *p);
/* Takes s, which is connected to that address and port, and owes and is owed
 * nothing. */
void forward_pool_give(struct forward_pool *p, const struct addr *to,
		       const char *device, struct stream *s);
/* The caller's, or NULL. Its server may have closed it at this moment. */
struct stream *forward_pool_take(struct forward_pool *p, const struct addr *to,
				 const char *device);
/* Closes those to one address, whatever the port. */
void forward_pool_forget(struct forward_pool *p, const struct addr *ip,
			 const char *device);
