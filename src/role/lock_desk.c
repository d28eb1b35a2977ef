/* SPDX-License-Identifier: Apache-2.0 */
/* lock_desk.c - one settlement of the lock for all wishes of a turn */

#include "src/role/lock_desk.h"

#include <stdlib.h>

#include "src/base/err.h"
#include "src/io/loop.h"
#include "src/role/lock.h"

struct wish {
	uint32_t serial;
	struct msg_locked reply;
};

struct lock_desk {
	struct loop *loop;
	struct lock *lock;
	lock_desk_fn *fn;
	void *ctx;
	struct wish *wishes; /* not settled yet */
	size_t count, room;
};

static void desk_settle(struct lock_desk *d)
{
	struct wish *wishes = d->wishes;
	size_t count = d->count, i;
	int r = lock_settle(d->lock);

	d->wishes = NULL;
	d->count = d->room = 0;
	for (i = 0; i < count; i++) {
		lock_fail(r, &wishes[i].reply);
		d->fn(d->ctx, wishes[i].serial, &wishes[i].reply);
	}
	free(wishes);
}

static void on_turn_end(void *ctx)
{
	struct lock_desk *d = ctx;

	if (d->count)
		desk_settle(d);
}

static struct msg_locked *wish_add(struct lock_desk *d, uint32_t serial)
{
	if (d->count == d->room) {
		d->room = MAX(2 * d->room, (size_t)8);
		d->wishes =
			must_realloc(d->wishes, d->room * sizeof(*d->wishes));
	}
	d->wishes[d->count].serial = serial;
	return &d->wishes[d->count++].reply;
}

void lock_desk_ask(struct lock_desk *d, uint16_t type, uint32_t serial,
		   const void *body)
{
	struct msg_locked reply;

	switch (type) {
	case MSG_CONTROL_LOCK:
		lock_put(d->lock, body, wish_add(d, serial));
		return;
	case MSG_CONTROL_UNLOCK:
		lock_drop(d->lock, body, wish_add(d, serial));
		return;
	default:
		desk_settle(d);
		lock_complete(d->lock, &reply);
		d->fn(d->ctx, serial, &reply);
	}
}

/* They are settled with the first wish of the new one at the latest: by its
 * LOCKS_END. */
void lock_desk_forget(struct lock_desk *d)
{
	d->count = 0;
}

struct lock_desk *lock_desk_new(struct loop *loop, struct lock *lock,
				lock_desk_fn *fn, void *ctx)
{
	struct lock_desk *d = must_alloc(sizeof(*d));

	d->loop = loop;
	d->lock = lock;
	d->fn = fn;
	d->ctx = ctx;
	loop_on_turn_end(loop, on_turn_end, d);
	return d;
}

struct lock_desk *lock_desk_free(struct lock_desk *d)
{
	if (!d)
		return NULL;
	loop_on_turn_end(d->loop, NULL, NULL);
	free(d->wishes);
	free(d);
	return NULL;
}
