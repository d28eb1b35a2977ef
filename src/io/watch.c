/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - readiness of one fd, remembered
 *
 * How it works: the fd is registered once with the loop's epoll, edge-triggered
 * for reading and hang-up, and costs no system call afterwards. Whether it can
 * be written to is asked only while somebody waits for that: a socket that is
 * always writable would say so with every edge it ever has, and wake the loop
 * for that alone after each answer it was too fast to wait for. What was asked
 * for stays registered until the kernel has told it twice to nobody.
 *
 * What the kernel gives back with an event is no pointer but the fd and a
 * serial number, looked up in the loop's table. So an fd that is closed at once
 * need not be taken out of epoll before: should a child that is about to exec
 * still hold it, what it says finds nobody.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "src/base/err.h"
#include "src/io/inside.h"

enum { TABLE_LEAST = 64, SURPLUS_MAX = 2 };

static void watch_queue(struct watch *w)
{
	if ((w->ready & w->wanted) && list_is_empty(&w->queued))
		list_push(&w->loop->queued, &w->queued);
}

static void table_grow(struct loop *loop, unsigned least)
{
	unsigned size =
		MAX(MAX(2 * loop->table_size, least), (unsigned)TABLE_LEAST);
	struct watch **table = must_alloc(size * sizeof(*table));

	if (loop->table)
		memcpy(table, loop->table, loop->table_size * sizeof(*table));
	free(loop->table);
	loop->table = table;
	loop->table_size = size;
}

static void table_put(struct loop *loop, struct watch *w)
{
	unsigned at = (unsigned)w->fd;

	if (at >= loop->table_size)
		table_grow(loop, at + 1);
	loop->table[at] = w;
}

static int watch_control(struct watch *w, int operation, bool write)
{
	struct epoll_event e = {
		.events = EPOLLIN | EPOLLRDHUP | EPOLLET |
			  (write ? (uint32_t)EPOLLOUT : 0),
		.data.u64 = (uint64_t)w->serial << 32 | (uint32_t)w->fd,
	};

	w->asks_write = write;
	w->surplus = 0;
	return epoll_ctl(w->loop->epoll_fd, operation, w->fd, &e) ? -errno : 0;
}

/* Changing it makes the kernel look at once: no edge is missed. */
static void watch_ask_write(struct watch *w)
{
	if (w->serial && !w->asks_write &&
	    w->wanted & ~w->ready & (unsigned)WATCH_WRITE)
		must(watch_control(w, EPOLL_CTL_MOD, true) == 0);
}

static struct watch *watch_of(const struct loop *loop, uint64_t data)
{
	uint32_t at = (uint32_t)data;
	struct watch *w = at < loop->table_size ? loop->table[at] : NULL;

	return w && w->serial == data >> 32 ? w : NULL;
}

void watch_note(struct loop *loop, const struct epoll_event *e)
{
	struct watch *w = watch_of(loop, e->data.u64);

	if (!w)
		return;
	if (e->events == EPOLLOUT && !(w->wanted & WATCH_WRITE) &&
	    w->ready & WATCH_WRITE && ++w->surplus == SURPLUS_MAX)
		must(watch_control(w, EPOLL_CTL_MOD, false) == 0);
	if (e->events & (EPOLLIN | EPOLLERR | EPOLLHUP))
		w->ready |= WATCH_READ;
	if (e->events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
		w->ready |= WATCH_WRITE;
	if (e->events & EPOLLRDHUP)
		w->ready |= WATCH_READ | WATCH_HUP;
	watch_queue(w);
}

int watch_begin(struct watch *w, struct loop *loop, int fd, watch_fn *fn,
		unsigned bits)
{
	int r;

	*w = (struct watch){ .loop = loop, .fd = fd, .fn = fn };
	list_init(&w->queued);
	if (fd < 0)
		return err_origin(-EBADF);
	if (!++loop->serial)
		loop->serial = 1;
	w->serial = loop->serial;
	r = watch_control(w, EPOLL_CTL_ADD, bits & WATCH_WRITE);
	if (r) {
		w->serial = 0;
		return err_origin(r);
	}
	table_put(loop, w);
	w->wanted = bits;
	return 0;
}

int watch_init(struct watch *w, struct loop *loop, int fd, watch_fn *fn)
{
	return watch_begin(w, loop, fd, fn, 0);
}

void watch_leave(struct watch *w)
{
	if (!w->serial)
		return;
	if (w->loop->table[w->fd] == w)
		w->loop->table[w->fd] = NULL;
	w->serial = 0;
	w->wanted = 0;
	list_remove(&w->queued);
}

void watch_fini(struct watch *w)
{
	struct epoll_event none = { 0 };

	if (w->serial)
		(void)epoll_ctl(w->loop->epoll_fd, EPOLL_CTL_DEL, w->fd, &none);
	watch_leave(w);
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
