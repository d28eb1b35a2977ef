/* SPDX-License-Identifier: Apache-2.0 */
/* drain.c - pipes of programs that are over, while something still writes
 *
 * How it works: a list for the whole process, oldest first. A writer that never
 * rests gets one read per turn and, after PAUSE_BYTES of them, a pause: what is
 * dropped should not cost the daemon its core.
 */

#include "src/execd/process/drain.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/list.h"
#include "src/io/loop.h"

enum {
	READ_BYTES = 64 * 1024,
	PAUSE_BYTES = 4 * 1024 * 1024,
	PAUSE_MS = 10,
};

struct drain {
	struct list link;
	struct watch watch;
	struct timer pause;
	int fd;
	size_t since_pause;
};

static struct list drains = LIST_INIT(drains);
static unsigned count;

static void drain_free(struct drain *d)
{
	list_remove(&d->link);
	count--;
	timer_stop(&d->pause);
	watch_fini(&d->watch);
	(void)fd_close(d->fd);
	free(d);
}

static void on_readable(struct watch *w, unsigned ready)
{
	struct drain *d = container_of(w, struct drain, watch);
	static char dropped[READ_BYTES];
	ssize_t n;

	(void)ready;
	n = read(d->fd, dropped, sizeof(dropped));
	if (n < 0 && errno == EINTR)
		return;
	if (n < 0 && errno == EAGAIN) {
		watch_spent(w, WATCH_READ);
		return;
	}
	if (n <= 0) {
		drain_free(d);
		return;
	}
	d->since_pause += (size_t)n;
	if (d->since_pause >= PAUSE_BYTES) {
		d->since_pause = 0;
		watch_want(w, 0);
		timer_start(&d->pause, PAUSE_MS);
	}
}

static void on_pause_over(struct timer *t)
{
	struct drain *d = container_of(t, struct drain, pause);

	watch_want(&d->watch, WATCH_READ);
}

void drain_give(struct loop *loop, int fd)
{
	struct drain *d = must_alloc(sizeof(*d));

	if (watch_init(&d->watch, loop, fd, on_readable)) {
		(void)fd_close(fd);
		free(d);
		return;
	}
	d->fd = fd;
	timer_init(&d->pause, loop, on_pause_over);
	list_init(&d->link);
	list_push(&drains, &d->link);
	if (++count > DRAINS_MAX)
		drain_free(list_first(&drains, struct drain, link));
	watch_want(&d->watch, WATCH_READ);
}

unsigned drain_count(void)
{
	return count;
}

void drain_free_all(void)
{
	while (!list_is_empty(&drains))
		drain_free(list_first(&drains, struct drain, link));
}
