/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c - turns of the event loop
 *
 * How it works: a turn waits in epoll until something happened or a timer is
 * due, then runs, in this order: signals, timers that are due, posted work, and
 * up to LOOP_ROUNDS rounds of watches that are wanted and ready. After each
 * round the output that its callbacks queued is sent, so several small writes
 * make one packet. Then comes the owner's turn-end function. If watches are
 * still ready the next turn does not wait, but timers and posts get their
 * share.
 *
 * What epoll says is only noted with the watches; nobody is called before all
 * of it is. That is why everything may be ended anywhere.
 */

#include "src/io/loop.h"

#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/io/inside.h"

enum { LOOP_ROUNDS = 4, EVENTS_PER_WAIT = 128 };

struct post {
	struct post *next;
	void (*fn)(void *ctx);
	void *ctx;
};

/* The counter is never read: edge-triggered, each write is a new event. It
 * belongs to no watch, so that it wakes and does nothing else. */
static int loop_init_wake(struct loop *loop)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };

	loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->wake_fd < 0 ||
	    epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->wake_fd, &e))
		return err_origin(-errno);
	return 0;
}

static int loop_init(struct loop *loop)
{
	loop->now_ms = clock_ms();
	loop->wake_fd = -1;
	list_init(&loop->queued);
	list_init(&loop->flushes);
	list_init(&loop->signals);
	list_init(&loop->residents);
	list_init(&loop->recent);
	wheel_init(&loop->wheel, loop->now_ms);

	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0)
		return err_origin(-errno);
	return loop_init_wake(loop);
}

int loop_new(struct loop **ret)
{
	struct loop *loop = must_alloc(sizeof(*loop));
	int r;

	r = loop_init(loop);
	if (r) {
		loop_free(loop);
		return r;
	}
	*ret = loop;
	return 0;
}

static struct post *posts_take(struct loop *loop)
{
	struct post *p, *next, *oldest = NULL;

	if (!atomic_load_explicit(&loop->posts, memory_order_relaxed))
		return NULL;
	p = atomic_exchange_explicit(&loop->posts, NULL, memory_order_acquire);
	for (; p; p = next) {
		next = p->next;
		p->next = oldest;
		oldest = p;
	}
	return oldest;
}

void loop_end_soon(struct loop *loop)
{
	loop->is_ending = true;
}

bool loop_has_unsent(const struct loop *loop)
{
	list_for_each(it, &loop->residents)
	{
		const struct resident *r =
			container_of(it, struct resident, link);

		if (r->is_unsent && r->is_unsent(r))
			return true;
	}
	return false;
}

struct loop *loop_free(struct loop *loop)
{
	struct resident *r;
	struct post *p;

	if (!loop)
		return NULL;
	while ((r = list_first(&loop->residents, struct resident, link)))
		r->evict(r);
	signals_end(loop);
	for (p = posts_take(loop); p;) {
		struct post *next = p->next;

		free(p);
		p = next;
	}
	for (unsigned i = 0; i < loop->pipe_count; i++) {
		fd_close(loop->pipes[i][0]);
		fd_close(loop->pipes[i][1]);
	}
	fd_close(loop->wake_fd);
	fd_close(loop->epoll_fd);
	free(loop->table);
	free(loop->scratch);
	free(loop->chan_scratch);
	free(loop);
	return NULL;
}

char *loop_scratch(struct loop *loop)
{
	if (!loop->scratch)
		loop->scratch = must_alloc(SCRATCH_BYTES);
	return loop->scratch;
}

/* How long the wheel lets us sleep: ms, -1 without an end. */
static int loop_patience(const struct loop *loop)
{
	uint64_t next = loop->wheel.next_ms, now;

	if (next == UINT64_MAX)
		return -1;
	now = clock_ms(); /* this turn may have been long */
	return next > now ? (int)MIN(next - now, (uint64_t)INT_MAX) : 0;
}

static void loop_wait(struct loop *loop, bool may_sleep)
{
	struct epoll_event events[EVENTS_PER_WAIT];
	int n = epoll_wait(loop->epoll_fd, events, EVENTS_PER_WAIT,
			   may_sleep ? loop_patience(loop) : 0);

	for (int i = 0; i < n; i++)
		watch_note(loop, &events[i]);
}

static void loop_run_posts(struct loop *loop)
{
	struct post *next;

	for (struct post *p = posts_take(loop); p; p = next) {
		next = p->next;
		p->fn(p->ctx);
		free(p);
	}
}

/* One call for each watch that is wanted and ready. It stays in the queue for
 * the next round, which drops it if it is no longer: nothing is touched after
 * its callback. */
static void loop_run_watches(struct loop *loop)
{
	struct list batch;
	struct watch *w;
	unsigned bits;

	list_move_all(&batch, &loop->queued);
	while ((w = list_first(&batch, struct watch, queued))) {
		list_remove(&w->queued);
		bits = w->ready & w->wanted;
		if (!bits)
			continue;
		w->ready &= ~(unsigned)WATCH_KICK;
		list_push(&loop->queued, &w->queued);
		w->fn(w, bits);
		/* w may be gone */
	}
}

static void loop_run_flushes(struct loop *loop)
{
	struct list batch;
	struct flush *f;

	list_move_all(&batch, &loop->flushes);
	while ((f = list_first(&batch, struct flush, link))) {
		list_remove(&f->link);
		f->fn(f);
	}
}

static bool loop_is_busy(const struct loop *loop)
{
	return !list_is_empty(&loop->queued) || !list_is_empty(&loop->flushes);
}

static void loop_turn(struct loop *loop, bool wait)
{
	loop_wait(loop, wait && !loop_is_busy(loop));
	loop->now_ms = clock_ms();
	loop->in_turn = true;
	signals_run(loop);
	wheel_expire(loop);
	loop_run_posts(loop);
	for (int i = 0; i < LOOP_ROUNDS && loop_is_busy(loop); i++) {
		loop_run_watches(loop);
		loop_run_flushes(loop);
	}
	if (loop->turn_end) {
		loop->turn_end(loop->turn_end_ctx);
		loop_run_flushes(loop);
	}
	loop->in_turn = false;
}

void loop_run(struct loop *loop)
{
	while (!atomic_load_explicit(&loop->stop, memory_order_acquire))
		loop_turn(loop, true);
	atomic_store(&loop->stop, false);
}

void loop_run_once(struct loop *loop, bool wait)
{
	loop_turn(loop, wait);
}

void loop_wake(const struct loop *loop)
{
	const uint64_t one = 1;

	(void)!write(loop->wake_fd, &one, sizeof(one));
}

void loop_stop(struct loop *loop)
{
	atomic_store(&loop->stop, true);
	loop_wake(loop);
}

uint64_t loop_now_ms(const struct loop *loop)
{
	return loop->now_ms;
}

void loop_post(struct loop *loop, void (*fn)(void *ctx), void *ctx)
{
	struct post *p = must_alloc(sizeof(*p));
	struct post *newest;

	p->fn = fn;
	p->ctx = ctx;
	newest = atomic_load_explicit(&loop->posts, memory_order_relaxed);
	do
		p->next = newest;
	while (!atomic_compare_exchange_weak_explicit(&loop->posts, &newest, p,
						      memory_order_release,
						      memory_order_relaxed));
	/* Whoever found the list empty wakes the loop, for all after it. */
	if (!newest)
		loop_wake(loop);
}

void loop_on_turn_end(struct loop *loop, void (*fn)(void *ctx), void *ctx)
{
	loop->turn_end = fn;
	loop->turn_end_ctx = ctx;
}
