/* SPDX-License-Identifier: Apache-2.0 */
/* bridge.h - the Docker network of all sandboxes, made or found as it must be
 */
#pragma once

struct docker;
struct network;

/* why: NULL when it is there as it must be, else a sentence; borrowed. */
typedef void bridge_fn(void *ctx, const char *why);
void bridge_ensure(struct docker *d, const struct network *n, bridge_fn *fn,
		   void *ctx);
