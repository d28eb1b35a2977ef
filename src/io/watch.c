/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - readiness of one fd, remembered
 *
 * How it works: the fd is registered once, edge-triggered, for reading and
 * hang-up, and costs no system call afterwards. Whether it can be written to is
 * asked only while somebody waits for that, by a second event: a socket that is
 * always writable would say so with every edge it ever has, and wake the loop
 * for that alone after each answer it was too fast to wait for. What was asked
 * for stays registered until the kernel has told it twice to nobody.
 *
 * The event handlers only note what the kernel said; owners are called by
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

static void on_event(evutil_socket_t fd, short what, void *ctx)
{
	struct watch *w = ctx;

	(void)fd;
	if (what & EV_READ)
		w->ready |= WATCH_READ;
	if (what & EV_CLOSED)
		w->ready |= WATCH_READ | WATCH_HUP;
	watch_queue(w);
}

static void room_forget(struct watch *w)
{
	if (w->room)
		event_free(w->room);
	w->room = NULL;
}

static void on_room(evutil_socket_t fd, short what, void *ctx)
{
	struct watch *w = ctx;

	(void)fd;
	(void)what;
	if (!(w->wanted & WATCH_WRITE) && w->ready & WATCH_WRITE &&
	    ++w->surplus == SURPLUS_MAX)
		room_forget(w);
	w->ready |= WATCH_WRITE;
	watch_queue(w);
}

static int event_register(struct watch *w, short what, event_callback_fn fn,
			  struct event **ret)
{
	int r;

	*ret = event_new(w->loop->base, w->fd, what | EV_ET | EV_PERSIST, fn,
			 w);
	if (!*ret)
		return err_origin(-ENOMEM);
	errno = 0;
	if (!event_add(*ret, NULL))
		return 0;
	r = errno ? -errno : -EINVAL;
	event_free(*ret);
	*ret = NULL;
	return err_origin(r);
}

/* Registering makes the kernel look at once: no edge is missed. */
static void watch_ask_write(struct watch *w)
{
	if (!w->event || w->room ||
	    !(w->wanted & ~w->ready & (unsigned)WATCH_WRITE))
		return;
	w->surplus = 0;
	must(event_register(w, EV_WRITE, on_room, &w->room) == 0);
}

int watch_init(struct watch *w, struct loop *loop, int fd, watch_fn *fn)
{
	*w = (struct watch){ .loop = loop, .fd = fd, .fn = fn };
	list_init(&w->queued);
	if (fd < 0)
		return err_origin(-EBADF);
	return event_register(w, EV_READ | EV_CLOSED, on_event, &w->event);
}

void watch_fini(struct watch *w)
{
	if (!w->event)
		return;
	room_forget(w);
	event_free(w->event);
	w->event = NULL;
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
