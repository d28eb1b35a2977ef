/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c - turns of the event loop
 *
 * How it works: a turn waits in libevent until something happened, then runs,
 * in this order: signals, timers that are due, posted work, and up to
 * LOOP_ROUNDS rounds of watches that are wanted and ready. After each round
 * the output that its callbacks queued is sent, so several small writes make
 * one packet. Then comes the owner's turn-end function. If watches are still
 * ready the next turn does not wait, but timers and posts get their share.
 *
 * Time is a descriptor too (timerfd), set when the wheel has something sooner
 * than it is set for. A time limit of the wait itself would be set and taken
 * back with every wait, and each of these makes the kernel set the processor's
 * timer, for which a virtual machine has to ask its host: where something is
 * due within milliseconds, as it is while an audit record waits, that is 10 us
 * of each turn.
 *
 * libevent's own callbacks only note facts; no foreign code runs inside
 * event_base_loop(). That is why everything may be ended anywhere.
 */

#include "src/io/loop.h"

#include <errno.h>
#include <event2/event.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/io/inside.h"

enum { LOOP_ROUNDS = 4 };

struct post {
	struct post *next;
	void (*fn)(void *ctx);
	void *ctx;
};

struct loop_signal {
	struct list link; /* in loop.signals */
	struct event *event;
	void (*fn)(void *ctx);
	void *ctx;
	bool pending;
};

/* Neither this counter nor that of the timer is ever read: edge-triggered, each
 * write is a new event, and so is each time that the timer was set for. */
static void on_wake(evutil_socket_t fd, short what, void *ctx)
{
	(void)fd;
	(void)what;
	(void)ctx;
}

static void on_tick(evutil_socket_t fd, short what, void *ctx)
{
	struct loop *loop = ctx;

	(void)fd;
	(void)what;
	loop->armed_ms = UINT64_MAX;
}

static void on_signal(evutil_socket_t signal, short what, void *ctx)
{
	struct loop_signal *s = ctx;

	(void)signal;
	(void)what;
	s->pending = true;
}

/* epoll, no locks (a loop is one thread's), nothing from the environment. */
static struct event_base *base_new(void)
{
	struct event_config *cfg = event_config_new();
	struct event_base *base = NULL;

	if (!cfg)
		return NULL;
	if (!event_config_set_flag(cfg, EVENT_BASE_FLAG_NOLOCK |
						EVENT_BASE_FLAG_IGNORE_ENV) &&
	    !event_config_require_features(cfg, EV_FEATURE_ET |
							EV_FEATURE_EARLY_CLOSE))
		base = event_base_new_with_config(cfg);
	event_config_free(cfg);
	return base;
}

static struct event *event_of(struct loop *loop, int fd, event_callback_fn fn)
{
	struct event *e = event_new(loop->base, fd,
				    EV_READ | EV_PERSIST | EV_ET, fn, loop);

	if (e && !event_add(e, NULL))
		return e;
	if (e)
		event_free(e);
	return NULL;
}

static int loop_init(struct loop *loop)
{
	loop->now_ms = clock_ms();
	loop->armed_ms = UINT64_MAX;
	loop->wake_fd = loop->tick_fd = -1;
	list_init(&loop->queued);
	list_init(&loop->flushes);
	list_init(&loop->signals);
	list_init(&loop->residents);
	list_init(&loop->recent);
	wheel_init(&loop->wheel, loop->now_ms);

	loop->base = base_new();
	if (!loop->base)
		return err_origin(-ENOMEM);
	loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	loop->tick_fd =
		timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (loop->wake_fd < 0 || loop->tick_fd < 0)
		return err_origin(-errno);
	loop->wake = event_of(loop, loop->wake_fd, on_wake);
	loop->tick = event_of(loop, loop->tick_fd, on_tick);
	return loop->wake && loop->tick ? 0 : err_origin(-ENOMEM);
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

static void loop_free_signals(struct loop *loop)
{
	list_for_each(it, &loop->signals)
	{
		struct loop_signal *s =
			container_of(it, struct loop_signal, link);

		event_free(s->event);
		free(s);
	}
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
	loop_free_signals(loop);
	for (p = posts_take(loop); p;) {
		struct post *next = p->next;

		free(p);
		p = next;
	}
	for (unsigned i = 0; i < loop->pipe_count; i++) {
		fd_close(loop->pipes[i][0]);
		fd_close(loop->pipes[i][1]);
	}
	if (loop->wake)
		event_free(loop->wake);
	if (loop->tick)
		event_free(loop->tick);
	if (loop->base)
		event_base_free(loop->base);
	fd_close(loop->wake_fd);
	fd_close(loop->tick_fd);
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

/* Makes libevent wake up in time for the wheel, unless it will anyway. */
static void loop_arm(struct loop *loop)
{
	uint64_t next = loop->wheel.next_ms;
	const struct itimerspec due = {
		.it_value = { .tv_sec = (time_t)(next / 1000),
			      .tv_nsec = (long)(next % 1000 * 1000000) },
	};

	if (next >= loop->armed_ms)
		return;
	must(timerfd_settime(loop->tick_fd, TFD_TIMER_ABSTIME, &due, NULL) ==
	     0);
	loop->armed_ms = next;
}

static void loop_run_signals(struct loop *loop)
{
	list_for_each(it, &loop->signals)
	{
		struct loop_signal *s =
			container_of(it, struct loop_signal, link);

		if (!s->pending)
			continue;
		s->pending = false;
		s->fn(s->ctx);
	}
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
	int flags = EVLOOP_ONCE;

	if (!wait || loop_is_busy(loop))
		flags |= EVLOOP_NONBLOCK;
	loop_arm(loop);
	(void)event_base_loop(loop->base, flags);

	loop->now_ms = clock_ms();
	loop->in_turn = true;
	loop_run_signals(loop);
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

static void loop_wake(struct loop *loop)
{
	const uint64_t one = 1;

	(void)!write(loop->wake_fd, &one, sizeof(one));
}

void loop_stop(struct loop *loop)
{
	atomic_store(&loop->stop, true);
	loop_wake(loop);
}

uint64_t loop_now_ms(struct loop *loop)
{
	if (!loop->in_turn) /* what is cached is as old as the last turn */
		loop->now_ms = clock_ms();
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

int loop_on_signal(struct loop *loop, int signal, void (*fn)(void *ctx),
		   void *ctx)
{
	struct loop_signal *s = must_alloc(sizeof(*s));

	s->fn = fn;
	s->ctx = ctx;
	s->event = evsignal_new(loop->base, signal, on_signal, s);
	if (!s->event || event_add(s->event, NULL)) {
		if (s->event)
			event_free(s->event);
		free(s);
		return err_origin(-EINVAL);
	}
	list_init(&s->link);
	list_push(&loop->signals, &s->link);
	return 0;
}
