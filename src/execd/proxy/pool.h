/* SPDX-License-Identifier: Apache-2.0 */
/* pool.h - connections to servers of the sandbox that may be used again
 *
 * A connection is kept for POOL_IDLE_MS, at most POOL_MAX of them; one that
 * its server closes (or writes to without being asked) is forgotten at once.
 */
#pragma once

#include <stdint.h>

#include "src/base/list.h"

struct loop;
struct stream;

enum { POOL_MAX = 64, POOL_IDLE_MS = 10 * 1000 };

struct pool {
	struct loop *loop;
	struct list idle; /* newest first */
	unsigned count;
};

void pool_init(struct pool *p, struct loop *loop);
void pool_fini(struct pool *p);
/* Takes s, which is connected to the port and owes and is owed nothing. */
void pool_give(struct pool *p, uint16_t port, struct stream *s);
/* The caller's, or NULL. Its server may have closed it at this moment. */
struct stream *pool_take(struct pool *p, uint16_t port);
