/* SPDX-License-Identifier: Apache-2.0 */
/* learned.h - which names our DNS gave a sandbox for an address, until when
 *
 * Asked only where there is no name in the payload: UDP, ICMP, TCP in which
 * the server speaks first. Shared by all workers of the gateway; every call
 * may come from any thread and holds one short lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/addr.h"
#include "src/base/attrib.h"
#include "src/base/span.h"

enum {
	LEARNED_MAX = 2048,	 /* pairs of name and address of a sandbox */
	LEARNED_NAMES_MAX = 128, /* names of one address of a sandbox */
};

struct learned;

/* The table of the node, empty. An address is held hold_s beyond its TTL:
 * clients connect late, pools connect again, and a TTL of 0 is usable at all.
 */
struct learned *learned_new(uint32_t hold_s);
/* No other call may be under way. NULL is fine; returns NULL. */
struct learned *learned_free(struct learned *l);

/* The sandbox `id` was told that host (canonical) has this address (its port
 * is ignored) for ttl_s; held hold_s longer. Over a limit the pair of
 * this sandbox that was told or used longest ago gives way. */
void learned_add(struct learned *l, struct span id, struct span host,
		 const struct addr *address, uint32_t ttl_s, uint64_t now_ms);
/* The names still held for this address, last told or used first: fn for each
 * until it returns true; returns whether one did. Under the lock: fn may not
 * call learned_*(), and host is borrowed for the call. */
bool learned_each(struct learned *l, struct span id, const struct addr *address,
		  uint64_t now_ms, bool (*fn)(void *ctx, struct span host),
		  void *ctx);
/* A flow lives with this address: what is still held for it is held for
 * hold_s from now, at least. */
void learned_use(struct learned *l, struct span id, const struct addr *address,
		 uint64_t now_ms);
/* The sandbox is gone, or its id is another's now. */
void learned_forget(struct learned *l, struct span id);
/* Pairs kept, of all sandboxes; those whose time is over count until they are
 * met. */
size_t learned_count(struct learned *l);
