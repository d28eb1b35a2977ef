/* SPDX-License-Identifier: Apache-2.0 */
/* fence_queue.h - how marked packets come to the queue role; for fence*.c */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/role/msg.h"

struct config;

/* What this node can do: QUEUE_NATIVE where nft has the statement (tried
 * without changing anything), QUEUE_XTABLES where iptables could make its rule,
 * which then stands; else QUEUE_NONE. Blocks while the tools run. */
enum queue_kind fence_queue_install(const struct config *config, bool ipv6);
/* Takes our rules of iptables away, where there are some. */
void fence_queue_remove(const struct config *config);
/* Do the rules of iptables stand? True for the other kinds: the table is
 * looked at by itself. */
bool fence_queue_stands(const struct config *config, enum queue_kind kind,
			bool ipv6);

/* Ends every flow that has our tag, in the kernel's connection tracking. 0, or
 * -errno; a kernel without connection tracking has no flows. */
WUNRES int fence_queue_forget(void);
