/* SPDX-License-Identifier: Apache-2.0 */
/* drops.h - what was dropped without the gateway, told to the gateway
 *
 * By the kernel's rules (src/role/drop.h), by the kernel's queue when it was
 * full, and by this role. A packet that the kernel tells of is one message;
 * of what it only counted (no packet log in this kernel, or somebody else
 * reads the group) there is one message for each reason, with the number.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/role/msg.h"

struct config;
struct drops;
struct loop;

struct drops_ops {
	void (*drop)(void *ctx, const struct msg_drop *d);
	void (*sums)(void *ctx, const struct msg_drops *sums);
};

/* Before the role is confined. What this kernel has not, is said in the log
 * and done without: this never fails. */
struct drops *drops_open(const struct config *config);
WUNRES int drops_start(struct drops *d, struct loop *loop,
		       const struct drops_ops *ops, void *ctx);
/* NULL is fine; returns NULL. */
struct drops *drops_free(struct drops *d);

/* Who was told the sums is gone: they are told again. */
void drops_repeat(struct drops *d);
/* A packet came from the kernel's queue. */
void drops_received(struct drops *d);
/* It is dropped; flow: as far as it is known, or NULL. */
void drops_put(struct drops *d, enum drop_reason reason, uint32_t ifindex,
	       const struct msg_flow *flow);
