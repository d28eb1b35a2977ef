/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - readiness of one fd, remembered
 *
 * How it works: the fd is registered once, edge-triggered, for reading and
 * hang-up, and costs no system call afterwards. Whether it can be written to is
 * asked only while somebody waits for that, which registers it anew: a socket
 * that is always writable would say so with every edge it ever has, and wake
 * the loop for that alone after each answer it was too fast to wait for. What
 * was asked for stays so until the kernel has woken the loop twice to tell it
 * to nobody. A connection that is being made asks from the start.
 *
 * The event handler only notes what the kernel said; owners are called by
 * loop.c between two waits, so any watch may be ended in any callback.
 */

#include <errno.h>
#include <event2/event.h>

#include "src/base/err.h"
#include "src/io/inside.h"

enum { SURPLUS_MAX = 2 };

static void watch_queue(struct watch *w)
{
	if ((w->ready & w->wanted) && list_is_empty(&w->queued))
		list_push(&w->loop->queued, &w->queued);
}

static void on_event(evutil_socket_t fd, short what, void *ctx);

/* The kernel looks at once: no edge is missed. */
static int watch_register(struct watch *w, bool room)
{
	const short what = EV_READ | EV_CLOSED | EV_ET | EV_PERSIST;
	int r;

	if (w->event)
		event_free(w->event);
	w->asks_room = room;
	w->surplus = 0;
	w->event = event_new(w->loop->base, w->fd,
			     (short)(room ? what | EV_WRITE : what), on_event,
			     w);
	if (!w->event)
		return err_origin(-ENOMEM);
	errno = 0;
	if (!event_add(w->event, NULL))
		return 0;
	r = errno ? -errno : -EINVAL;
	event_free(take_ptr(w->event));
	return err_origin(r);
}

static void on_event(evutil_socket_t fd, short what, void *ctx)
{
	struct watch *w = ctx;
	const bool surplus = what == (EV_WRITE | EV_ET) &&
			     w->ready & WATCH_WRITE &&
			     !(w->wanted & WATCH_WRITE);

	(void)fd;
	if (what & EV_READ)
		w->ready |= WATCH_READ;
	if (what & EV_CLOSED)
		w->ready |= WATCH_READ | WATCH_HUP;
	if (what & EV_WRITE)
		w->ready |= WATCH_WRITE;
	if (surplus && ++w->surplus == SURPLUS_MAX)
		must(watch_register(w, false) == 0);
	watch_queue(w);
}

static void watch_ask_write(struct watch *w)
{
	if (w->event && !w->asks_room &&
	    w->wanted & ~w->ready & (unsigned)WATCH_WRITE)
		must(watch_register(w, true) == 0);
}

int watch_init_wanting(struct watch *w, struct loop *loop, int fd, watch_fn *fn,
		       unsigned bits)
{
	*w = (struct watch){
		.loop = loop, .fd = fd, .fn = fn, .wanted = bits
	};
	list_init(&w->queued);
	if (fd < 0)
		return err_origin(-EBADF);
	return watch_register(w, bits & WATCH_WRITE);
}

int watch_init(struct watch *w, struct loop *loop, int fd, watch_fn *fn)
{
	return watch_init_wanting(w, loop, fd, fn, 0);
}

void watch_fini(struct watch *w)
{
	if (!w->event)
		return;
	event_free(take_ptr(w->event));
	w->wanted = 0;
	list_remove(&w->queued);
}

void watch_want(struct watch *w, unsigned bits)
{
	w->wanted = bits;
	watch_ask_write(w);
	watch_queue(w);
}

void watch_spent(struct watch *w, unsigned bits)
{
	w->ready &= ~bits;
	watch_ask_write(w);
}

void watch_kick(struct watch *w)
{
	w->ready |= WATCH_KICK;
	watch_queue(w);
}
