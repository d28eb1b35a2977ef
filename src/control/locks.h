/* SPDX-License-Identifier: Apache-2.0 */
/* locks.h - asks the supervisor to lock sandboxes to their interfaces
 *
 * A sandbox is locked before the gateway learns of it, so there is no moment
 * in which its address is believed and not enforced.
 */
#pragma once

#include <stdint.h>

#include "src/base/list.h"
#include "src/base/span.h"
#include "src/io/loop.h"

struct control;
struct msg_locked;
struct sandbox;

enum {
	LOCK_ANSWER_MS = 10 * 1000,
	LOCKS_AT_ONCE = 64, /* questions on the way while all are restored */
};

/* How a question ended, called from the loop. reply: .status says it. */
typedef void locks_fn(void *ctx, const struct msg_locked *reply);

struct locks {
	struct list questions;
	struct sandbox **restoring; /* in order of ids, or NULL */
	unsigned restore_at, restore_count, restore_open;
	uint64_t round; /* counts restorings */
};

void locks_init(struct locks *l);
/* Open questions end with ENOTCONN. */
void locks_fini(struct control *c);

/* Locks it, and holds its flows to the rate of its policy; without an interface:
 * ends its lock. fn NULL: nobody waits. */
void locks_put(struct control *c, struct sandbox *s, locks_fn *fn, void *ctx);
/* Policies changed: puts the locks again whose rate is another one now. */
void locks_pace(struct control *c);
void locks_drop(struct control *c, struct span id);
/* Locks every sandbox of the registry and ends all other locks; then
 * control_locked(). A restoring that runs is given up for it. */
void locks_restore(struct control *c);

/* A reply of the supervisor. */
void locks_on_reply(struct control *c, uint32_t serial,
		    const struct msg_locked *reply);
