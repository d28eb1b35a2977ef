/* SPDX-License-Identifier: Apache-2.0 */
/* test_loop.c - watches, timers, posts and signals of a loop */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/io/loop.h"

enum { MANY = 100000 };

struct probe {
	struct watch watch;
	unsigned calls, ready;
	bool end_itself;
	struct probe *ends; /* another watch to end in the callback */
};

static void probe_on_ready(struct watch *w, unsigned ready)
{
	struct probe *p = container_of(w, struct probe, watch);
	char bytes[64];

	p->calls++;
	p->ready |= ready;
	if (p->ends)
		watch_fini(&p->ends->watch);
	if (p->end_itself) {
		watch_fini(w);
		return;
	}
	if (ready & WATCH_READ && read(w->fd, bytes, sizeof(bytes)) < 0)
		watch_spent(w, WATCH_READ);
	if (ready & WATCH_WRITE)
		watch_want(w, WATCH_READ);
}

static void pair_new(int fds[2])
{
	assert_int_equal(socketpair(AF_UNIX,
				    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
				    0, fds),
			 0);
}

static void loop__calls_back_while_wanted_and_ready(void **state)
{
	struct probe p = { 0 };
	struct loop *loop;
	int fds[2];

	(void)state;
	pair_new(fds);
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(watch_init(&p.watch, loop, fds[0], probe_on_ready), 0);

	assert_int_equal(write(fds[1], "x", 1), 1);
	loop_run_once(loop, false);
	assert_int_equal(p.calls, 0);
	assert_true(p.watch.ready & WATCH_READ);

	/* Ready already: never from inside, always from the loop. */
	watch_want(&p.watch, WATCH_READ);
	assert_int_equal(p.calls, 0);
	loop_run_once(loop, true);
	assert_int_equal(p.calls, 2); /* the byte, then EAGAIN */
	assert_int_equal(p.ready, WATCH_READ);
	loop_run_once(loop, false);
	assert_int_equal(p.calls, 2);

	assert_int_equal(write(fds[1], "y", 1), 1);
	loop_run_once(loop, true);
	assert_int_equal(p.calls, 4);

	watch_want(&p.watch, WATCH_WRITE);
	loop_run_once(loop, true);
	assert_int_equal(p.calls, 5);

	/* The end is told with the last bytes, and stays known. */
	assert_int_equal(shutdown(fds[1], SHUT_WR), 0);
	loop_run_once(loop, false);
	assert_true(p.watch.ready & WATCH_HUP);

	watch_fini(&p.watch);
	watch_fini(&p.watch);
	assert_null(loop_free(loop));
	fd_close(fds[0]);
	fd_close(fds[1]);
}

static void loop__watches_end_in_callbacks(void **state)
{
	struct probe a = { .end_itself = true }, b = { .end_itself = true };
	struct loop *loop;
	int x[2], y[2];

	(void)state;
	pair_new(x);
	pair_new(y);
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(watch_init(&a.watch, loop, x[0], probe_on_ready), 0);
	assert_int_equal(watch_init(&b.watch, loop, y[0], probe_on_ready), 0);
	a.ends = &b;
	b.ends = &a;
	watch_want(&a.watch, WATCH_WRITE);
	watch_want(&b.watch, WATCH_WRITE);
	loop_run_once(loop, true);
	loop_run_once(loop, false);
	assert_int_equal(a.calls + b.calls, 1);
	loop_free(loop);
	for (int i = 0; i < 2; i++) {
		fd_close(x[i]);
		fd_close(y[i]);
	}
}

static void loop__kick_calls_once(void **state)
{
	struct probe p = { 0 };
	struct loop *loop;
	int fds[2];

	(void)state;
	pair_new(fds);
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(watch_init(&p.watch, loop, fds[0], probe_on_ready), 0);
	watch_want(&p.watch, WATCH_KICK);
	watch_kick(&p.watch);
	watch_kick(&p.watch);
	loop_run_once(loop, true);
	loop_run_once(loop, false);
	assert_int_equal(p.calls, 1);
	assert_int_equal(p.ready, WATCH_KICK);
	watch_fini(&p.watch);
	loop_free(loop);
	fd_close(fds[0]);
	fd_close(fds[1]);
}

/* Until the kernel takes no more. */
static void fill(int fd)
{
	static const char zeros[4096];

	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	assert_int_equal(errno, EAGAIN);
}

static void drain(int fd)
{
	char bytes[4096];

	while (read(fd, bytes, sizeof(bytes)) > 0)
		;
	assert_int_equal(errno, EAGAIN);
}

static void loop__asks_about_writing_while_somebody_waits(void **state)
{
	struct probe p = { 0 };
	struct loop *loop;
	int fds[2];

	(void)state;
	pair_new(fds);
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(watch_init(&p.watch, loop, fds[0], probe_on_ready), 0);
	watch_want(&p.watch, WATCH_READ);
	loop_run_once(loop, false);
	assert_int_equal(p.watch.ready, 0);

	/* Wanted: the kernel looks at once. */
	watch_want(&p.watch, WATCH_WRITE);
	loop_run_once(loop, true);
	assert_int_equal(p.ready, WATCH_WRITE);

	/* It met EAGAIN, and waits. */
	fill(fds[0]);
	watch_spent(&p.watch, WATCH_WRITE);
	watch_want(&p.watch, WATCH_WRITE);
	p.calls = 0;
	loop_run_once(loop, false);
	assert_int_equal(p.calls, 0);
	drain(fds[1]);
	loop_run_once(loop, true);
	assert_int_equal(p.calls, 1);

	/* Room that nobody waits for is told twice, and no more. */
	for (int i = 0; i < 4; i++) {
		assert_int_equal(p.watch.asks_room, i < 2);
		fill(fds[0]);
		drain(fds[1]);
		loop_run_once(loop, false);
	}
	assert_int_equal(p.calls, 1);

	/* Spent while it is wanted, and asked for anew. */
	fill(fds[0]);
	watch_want(&p.watch, WATCH_READ | WATCH_WRITE);
	watch_spent(&p.watch, WATCH_WRITE);
	assert_true(p.watch.asks_room);
	loop_run_once(loop, false);
	assert_int_equal(p.calls, 1);
	drain(fds[1]);
	loop_run_once(loop, true);
	assert_int_equal(p.calls, 2);

	watch_fini(&p.watch);
	loop_free(loop);
	fd_close(fds[0]);
	fd_close(fds[1]);
}

/* Somebody else holds what was closed, and it speaks for a number that is
 * another one's by now. */
static void loop__what_was_left_finds_nobody(void **state)
{
	struct probe old = { 0 }, new = { 0 };
	struct loop *loop;
	int held, fds[2], other[2];

	(void)state;
	pair_new(fds);
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(watch_init(&old.watch, loop, fds[0], probe_on_ready),
			 0);
	watch_want(&old.watch, WATCH_READ);
	held = dup(fds[0]);
	assert_true(held >= 0);
	watch_fini(&old.watch);
	watch_fini(&old.watch);
	assert_int_equal(close(fds[0]), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	loop_run_once(loop, false);
	assert_int_equal(old.calls, 0);

	pair_new(other);
	assert_int_equal(other[0], fds[0]);
	assert_int_equal(watch_init(&new.watch, loop, other[0], probe_on_ready),
			 0);
	watch_want(&new.watch, WATCH_READ);
	assert_int_equal(write(fds[1], "x", 1), 1);
	loop_run_once(loop, false);
	assert_int_equal(new.calls, 0);
	assert_int_equal(new.watch.ready, 0);
	assert_int_equal(write(other[1], "y", 1), 1);
	loop_run_once(loop, true);
	assert_int_equal(new.ready, WATCH_READ);

	watch_fini(&new.watch);
	loop_free(loop);
	fd_close(held);
	fd_close(fds[1]);
	fd_close(other[0]);
	fd_close(other[1]);
}

static void loop__says_what_it_cannot_watch(void **state)
{
	struct probe p = { 0 };
	struct loop *loop;
	FILE *f = tmpfile();

	(void)state;
	assert_non_null(f);
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(watch_init(&p.watch, loop, -1, probe_on_ready),
			 -EBADF);
	watch_fini(&p.watch);
	assert_int_equal(watch_init(&p.watch, loop, fileno(f), probe_on_ready),
			 -EPERM);
	watch_fini(&p.watch);
	loop_free(loop);
	assert_int_equal(fclose(f), 0);
}

static void greedy_on_ready(struct watch *w, unsigned ready)
{
	(void)w;
	(void)ready;
}

static void timer_on_stop(struct timer *t)
{
	loop_stop(t->loop);
}

static void loop__ready_watches_do_not_starve_timers(void **state)
{
	struct watch w;
	struct timer t;
	struct loop *loop;
	int fds[2];

	(void)state;
	pair_new(fds);
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(watch_init(&w, loop, fds[0], greedy_on_ready), 0);
	watch_want(&w, WATCH_WRITE);
	timer_init(&t, loop, timer_on_stop);
	timer_start(&t, 20);
	loop_run(loop);
	watch_fini(&w);
	loop_free(loop);
	fd_close(fds[0]);
	fd_close(fds[1]);
}

struct alarm {
	struct timer timer;
	struct alarm *stops;
	uint64_t wished_ms, fired_ms;
	unsigned *count, order, calls;
};

static void alarm_on_due(struct timer *t)
{
	struct alarm *a = container_of(t, struct alarm, timer);

	a->calls++;
	a->fired_ms = clock_ms();
	a->order = a->count ? ++*a->count : 0;
	if (a->stops)
		timer_stop(&a->stops->timer);
}

static void alarm_start(struct alarm *a, struct loop *loop, uint64_t delay_ms)
{
	if (!a->timer.fn)
		timer_init(&a->timer, loop, alarm_on_due);
	timer_start(&a->timer, delay_ms);
	a->wished_ms = a->timer.due_ms;
}

static void run_for(struct loop *loop, uint64_t ms)
{
	struct timer t;

	timer_init(&t, loop, timer_on_stop);
	timer_start(&t, ms);
	loop_run(loop);
	timer_stop(&t);
}

static void timer__order_and_precision(void **state)
{
	static const uint64_t delays[] = { 300, 5, 40, 0, 41, 130, 257, 39 };
	struct alarm alarms[ARRAY_LEN(delays)] = { 0 };
	unsigned count = 0;
	struct loop *loop;

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	for (size_t i = 0; i < ARRAY_LEN(delays); i++) {
		alarms[i].count = &count;
		alarm_start(&alarms[i], loop, delays[i]);
	}
	run_for(loop, 360);
	for (size_t i = 0; i < ARRAY_LEN(delays); i++) {
		assert_int_equal(alarms[i].calls, 1);
		assert_true(alarms[i].fired_ms >= alarms[i].wished_ms);
		assert_true(alarms[i].fired_ms < alarms[i].wished_ms + 60);
		for (size_t j = 0; j < ARRAY_LEN(delays); j++)
			if (delays[i] + 5 < delays[j])
				assert_true(alarms[i].order < alarms[j].order);
	}
	loop_free(loop);
}

static void timer__stops_and_restarts(void **state)
{
	struct alarm a = { 0 }, b = { 0 }, later = { 0 }, sooner = { 0 };
	struct loop *loop;

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	/* Both in one slot: the first stops the second. */
	a.stops = &b;
	b.stops = &a;
	alarm_start(&a, loop, 10);
	alarm_start(&b, loop, 10);
	alarm_start(&later, loop, 10);
	alarm_start(&later, loop, 60);
	alarm_start(&sooner, loop, 5000);
	alarm_start(&sooner, loop, 30);
	run_for(loop, 90);
	assert_int_equal(a.calls + b.calls, 1);
	assert_int_equal(later.calls, 1);
	assert_true(later.fired_ms >= later.wished_ms);
	assert_int_equal(sooner.calls, 1);
	assert_true(sooner.fired_ms >= sooner.wished_ms);
	assert_true(sooner.fired_ms < sooner.wished_ms + 40);

	timer_stop(&a.timer);
	alarm_start(&a, loop, 10);
	timer_stop(&a.timer);
	timer_stop(&a.timer);
	run_for(loop, 30);
	assert_int_equal(a.calls + b.calls, 1);
	loop_free(loop);
}

static void alarm_on_due_again(struct timer *t)
{
	struct alarm *a = container_of(t, struct alarm, timer);

	if (++a->calls < 5)
		timer_start(t, 0);
}

static void timer__restarts_in_its_callback(void **state)
{
	struct alarm a = { 0 };
	struct loop *loop;
	int i;

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	timer_init(&a.timer, loop, alarm_on_due_again);
	timer_start(&a.timer, 0);
	for (i = 0; i < 100 && a.calls < 5; i++)
		run_for(loop, 50);
	run_for(loop, 50);
	assert_int_equal(a.calls, 5);
	loop_free(loop);
}

/* Far timers must be placed again without being lost or called early. */
static void timer__far_future(void **state)
{
	struct alarm far = { 0 }, farther = { 0 };
	struct loop *loop;

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	alarm_start(&far, loop, 20ull * 24 * 3600 * 1000);
	alarm_start(&farther, loop, UINT64_MAX);
	run_for(loop, 20);
	assert_int_equal(far.calls + farther.calls, 0);
	assert_true(far.timer.due_ms != 0);
	timer_stop(&far.timer);
	timer_stop(&farther.timer);
	loop_free(loop);
}

static void timer__a_hundred_thousand(void **state)
{
	struct alarm *alarms = calloc(MANY, sizeof(*alarms));
	unsigned count = 0, early = 0, missing = 0, late = 0;
	uint64_t start_us, set_us, again_us;
	struct loop *loop;

	(void)state;
	assert_non_null(alarms);
	assert_int_equal(loop_new(&loop), 0);
	start_us = clock_us();
	for (unsigned i = 0; i < MANY; i++) {
		alarms[i].count = &count;
		alarm_start(&alarms[i], loop, 100 + i % 700);
	}
	set_us = clock_us() - start_us;
	start_us = clock_us();
	for (unsigned i = 0; i < MANY; i += 2)
		alarm_start(&alarms[i], loop, 100 + i % 700);
	again_us = clock_us() - start_us;
	run_for(loop, 1000);
	for (unsigned i = 0; i < MANY; i++) {
		missing += alarms[i].calls != 1;
		early += alarms[i].fired_ms < alarms[i].wished_ms;
		late += alarms[i].fired_ms > alarms[i].wished_ms + 150;
	}
	print_message("start %.0f ns, restart %.0f ns, late %u of %u\n",
		      (double)set_us * 1000 / MANY,
		      (double)again_us * 2000 / MANY, late, MANY);
	assert_int_equal(missing, 0);
	assert_int_equal(early, 0);
	loop_free(loop);
	free(alarms);
}

struct poster {
	struct loop *loop;
	pthread_t thread;
	unsigned next, posted, wrong, *left;
};

struct item {
	struct poster *poster;
	unsigned number;
};

static void item_on_run(void *ctx)
{
	struct item *item = ctx;
	struct poster *p = item->poster;

	p->wrong += item->number != p->next++;
	if (!--*p->left)
		loop_stop(p->loop);
	free(item);
}

static void *poster_run(void *ctx)
{
	struct poster *p = ctx;

	for (unsigned i = 0; i < 20000; i++) {
		struct item *item = calloc(1, sizeof(*item));

		item->poster = p;
		item->number = i;
		loop_post(p->loop, item_on_run, item);
	}
	return NULL;
}

static void loop__posts_of_threads_keep_their_order(void **state)
{
	struct poster posters[4] = { 0 };
	unsigned left = 4 * 20000;
	struct loop *loop;

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	for (int i = 0; i < 4; i++) {
		posters[i].loop = loop;
		posters[i].left = &left;
		assert_int_equal(pthread_create(&posters[i].thread, NULL,
						poster_run, &posters[i]),
				 0);
	}
	loop_run(loop);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(posters[i].thread, NULL), 0);
		assert_int_equal(posters[i].wrong, 0);
	}
	assert_int_equal(left, 0);
	loop_free(loop);
}

static void count_up(void *ctx)
{
	++*(unsigned *)ctx;
}

static void loop__signals_and_turn_end(void **state)
{
	unsigned signals = 0, turns = 0;
	struct loop *loop;

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(loop_on_signal(loop, SIGUSR1, count_up, &signals), 0);
	loop_on_turn_end(loop, count_up, &turns);
	assert_int_equal(kill(getpid(), SIGUSR1), 0);
	loop_run_once(loop, true);
	assert_int_equal(signals, 1);
	assert_int_equal(turns, 1);
	loop_stop(loop);
	loop_run(loop);
	loop_post(loop, count_up, &turns); /* dropped, not leaked */
	loop_free(loop);
	assert_int_equal(turns, 1);
	assert_null(loop_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loop__calls_back_while_wanted_and_ready),
		cmocka_unit_test(loop__watches_end_in_callbacks),
		cmocka_unit_test(loop__kick_calls_once),
		cmocka_unit_test(loop__asks_about_writing_while_somebody_waits),
		cmocka_unit_test(loop__what_was_left_finds_nobody),
		cmocka_unit_test(loop__says_what_it_cannot_watch),
		cmocka_unit_test(loop__ready_watches_do_not_starve_timers),
		cmocka_unit_test(loop__posts_of_threads_keep_their_order),
		cmocka_unit_test(loop__signals_and_turn_end),
		cmocka_unit_test(timer__order_and_precision),
		cmocka_unit_test(timer__stops_and_restarts),
		cmocka_unit_test(timer__restarts_in_its_callback),
		cmocka_unit_test(timer__far_future),
		cmocka_unit_test(timer__a_hundred_thousand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
