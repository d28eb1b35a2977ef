/* SPDX-License-Identifier: Apache-2.0 */
/* lock_desk.h - control's wishes about locks: gathered for a turn of the loop,
 * put into force together, then answered
 */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"
#include "src/role/msg.h"

struct lock;
struct lock_desk;
struct loop;

typedef void lock_desk_fn(void *ctx, uint32_t serial,
			  const struct msg_locked *reply);

/* loop and lock are borrowed; the end of the loop's turns is taken. fn gets the
 * answers. */
struct lock_desk *lock_desk_new(struct loop *loop, struct lock *lock,
				lock_desk_fn *fn, void *ctx);
/* NULL is fine; returns NULL. */
struct lock_desk *lock_desk_free(struct lock_desk *d);

/* MSG_CONTROL_LOCK, _UNLOCK or _LOCKS_END. body: of the type. */
void lock_desk_ask(struct lock_desk *d, uint16_t type, uint32_t serial,
		   const void *body);
/* Another control: what the former wished holds and is not answered. */
void lock_desk_forget(struct lock_desk *d);
