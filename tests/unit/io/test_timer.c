/* SPDX-License-Identifier: Apache-2.0 */
/* test_timer.c - the wheel against a simple model, in virtual time
 *
 * Time is moved by hand, through weeks, in small and large steps. A timer must
 * fire in the first step that passes its slot, never before its due time, and
 * be late by at most 1/64 of what was asked for.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/timerfd.h>

#include "src/base/err.h"
#include "src/io/inside.h"

enum { TIMERS = 300, STEPS = 20000 };

struct model {
	struct timer timer;
	uint64_t started_ms, due_ms; /* due_ms 0 = must not fire */
	unsigned fired;
};

static uint64_t seed = 88172645463325252ull;
static uint64_t previous_ms, previous_due_ms;
static unsigned early, late, unasked, disorder;

static uint64_t pick(uint64_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 11) % n;
}

/* Spread over all levels: from 1 ms to about 35 days. */
static uint64_t pick_delay(void)
{
	return pick(1ull << (1 + pick(31)));
}

static void model_on_due(struct timer *t)
{
	struct model *m = container_of(t, struct model, timer);
	uint64_t now = t->loop->now_ms, at = t->loop->wheel.now_ms;
	uint64_t slack = (m->due_ms - m->started_ms) / 64 + 1;

	m->fired++;
	unasked += !m->due_ms;
	early += now < m->due_ms;
	/* It would have fired in the step before, had it been in time. */
	late += previous_ms > m->due_ms + slack;
	disorder += at < previous_due_ms;
	previous_due_ms = at;
	m->due_ms = 0;
	if (!pick(3)) {
		/* Amid a jump the wheel has to reach over the rest of it. */
		m->started_ms = at;
		timer_start(t, pick_delay());
		m->due_ms = t->due_ms;
	}
}

static void model_change(struct model *m, struct loop *loop)
{
	if (!pick(4)) {
		timer_stop(&m->timer);
		m->due_ms = 0;
		return;
	}
	timer_start(&m->timer, pick_delay());
	m->started_ms = loop->now_ms;
	m->due_ms = m->timer.due_ms;
}

static void timer__agrees_with_a_model(void **state)
{
	static struct model models[TIMERS];
	unsigned fired = 0, lost = 0;
	struct loop *loop;

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	loop->in_turn = true; /* time is ours */
	for (int i = 0; i < TIMERS; i++)
		timer_init(&models[i].timer, loop, model_on_due);
	for (int step = 0; step < STEPS; step++) {
		for (uint64_t n = pick(6); n; n--)
			model_change(&models[pick(TIMERS)], loop);
		previous_ms = loop->now_ms;
		loop->now_ms += pick(1ull << (1 + pick(24)));
		wheel_expire(loop);
	}
	for (int i = 0; i < TIMERS; i++) {
		uint64_t left = models[i].due_ms;
		uint64_t slack = (left - models[i].started_ms) / 64 + 1;

		fired += models[i].fired;
		lost += left && left + slack < loop->now_ms;
		assert_int_equal(left, models[i].timer.due_ms);
		timer_stop(&models[i].timer);
	}
	assert_true(fired > 5000);
	assert_int_equal(lost, 0);
	assert_int_equal(early, 0);
	assert_int_equal(late, 0);
	assert_int_equal(unasked, 0);
	assert_int_equal(disorder, 0);
	loop_free(loop);
}

/* Restarting further away must not touch the wheel. */
static void timer__restart_is_a_store(void **state)
{
	struct loop *loop;
	struct timer t;
	uint64_t slot;

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	loop->in_turn = true;
	timer_init(&t, loop, model_on_due);
	timer_start(&t, 30000);
	slot = t.slot_ms;
	for (int i = 0; i < 100; i++) {
		loop->now_ms += 200;
		timer_start(&t, 30000);
		assert_int_equal(t.slot_ms, slot);
		assert_int_equal(t.due_ms, loop->now_ms + 30000);
	}
	timer_stop(&t);
	loop_free(loop);
}

/* What is left of them is the bit of their slot. */
static void timer__that_was_stopped_wakes_nobody(void **state)
{
	struct timer stopped[TIMERS], lives;
	struct loop *loop;
	uint64_t first;

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	loop->in_turn = true;
	for (int i = 0; i < TIMERS; i++) {
		timer_init(&stopped[i], loop, model_on_due);
		timer_start(&stopped[i], 10 + 3 * (uint64_t)i);
	}
	timer_init(&lives, loop, model_on_due);
	timer_start(&lives, 60000);
	first = loop->wheel.next_ms;
	for (int i = 0; i < TIMERS; i++)
		timer_stop(&stopped[i]);
	loop->now_ms = first; /* it was set for that */
	wheel_expire(loop);
	assert_int_equal(loop->wheel.next_ms, lives.slot_ms);
	timer_stop(&lives);
	loop_free(loop);
}

static uint64_t left_ms(const struct loop *loop)
{
	struct itimerspec left;

	assert_int_equal(timerfd_gettime(loop->tick_fd, &left), 0);
	return (uint64_t)left.it_value.tv_sec * 1000 +
	       (uint64_t)left.it_value.tv_nsec / 1000000;
}

/* The kernel's clock is set for what is due first, and only then. */
static void timer__is_set_once_for_the_first(void **state)
{
	struct timer a, b, c;
	struct loop *loop;

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	timer_init(&a, loop, model_on_due);
	timer_init(&b, loop, model_on_due);
	timer_init(&c, loop, model_on_due);
	loop_run_once(loop, false);
	assert_int_equal(left_ms(loop), 0);
	timer_start(&a, 600000);
	loop_run_once(loop, false);
	assert_in_range(left_ms(loop), 500000, 600000 + 600000 / 64);
	timer_start(&b, 900000);
	loop_run_once(loop, false);
	assert_in_range(left_ms(loop), 500000, 600000 + 600000 / 64);
	timer_start(&c, 100000);
	loop_run_once(loop, false);
	assert_in_range(left_ms(loop), 50000, 100000 + 100000 / 64);
	timer_stop(&a);
	timer_stop(&b);
	timer_stop(&c);
	loop_free(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timer__agrees_with_a_model),
		cmocka_unit_test(timer__restart_is_a_store),
		cmocka_unit_test(timer__that_was_stopped_wakes_nobody),
		cmocka_unit_test(timer__is_set_once_for_the_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
