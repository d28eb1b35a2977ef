/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - readiness of one fd, remembered
 *
 * How it works: the fd is registered once, edge-triggered, for reading,
 * writing and hang-up, and costs no system call afterwards. The event handler
 * only notes what the kernel said; owners are called by loop.c between two
 * waits, so any watch may be ended in any callback.
 */

#include <errno.h>
#include <event2/event.h>

#include "src/base/err.h"
#include "src/io/inside.h"

static void watch_queue(struct watch *w)
{
	if ((w->ready & w->wanted) && list_is_empty(&w->queued))
		list_push(&w->loop->queued, &w->queued);
}

static void on_event(evutil_socket_t fd, short what, void *ctx)
{
	struct watch *w = ctx;

	(void)fd;
	if (what & EV_READ)
		w->ready |= WATCH_READ;
	if (what & EV_WRITE)
		w->ready |= WATCH_WRITE;
	if (what & EV_CLOSED)
		w->ready |= WATCH_READ | WATCH_HUP;
	watch_queue(w);
}

int watch_init(struct watch *w, struct loop *loop, int fd, watch_fn *fn)
{
	const short what = EV_READ | EV_WRITE | EV_CLOSED | EV_ET | EV_PERSIST;
	int r;

	*w = (struct watch){ .loop = loop, .fd = fd, .fn = fn };
	list_init(&w->queued);
	w->event = event_new(loop->base, fd, what, on_event, w);
	if (!w->event)
		return err_origin(-ENOMEM);
	if (event_add(w->event, NULL)) {
		r = errno ? -errno : -EINVAL;
		event_free(w->event);
		w->event = NULL;
		return err_origin(r);
	}
	return 0;
}

void watch_fini(struct watch *w)
{
	if (!w->event)
		return;
	event_free(w->event);
	w->event = NULL;
	w->wanted = 0;
	list_remove(&w->queued);
}

void watch_want(struct watch *w, unsigned bits)
{
	w->wanted = bits;
	watch_queue(w);
}

void watch_spent(struct watch *w, unsigned bits)
{
	w->ready &= ~bits;
}

void watch_kick(struct watch *w)
{
	w->ready |= WATCH_KICK;
	watch_queue(w);
}
