/* SPDX-License-Identifier: Apache-2.0 */
/* timer.c - the timer wheel of a loop
 *
 * How it works: level l has 256 slots of 4^l ms. A timer goes into the finest
 * level that reaches its due time, into the slot that ends at or after it, so
 * that it is late by at most one slot (1/64 of its duration) and never early.
 * Nothing cascades: when the wheel comes to a slot, each timer in it is due.
 *
 * The exception makes restarts cheap: timer_start() on a running timer whose
 * slot comes before the new due time only writes due_ms. The wheel finds it
 * not due yet, and places it again then.
 *
 * A bit per slot says that something may be in it; stopping leaves the bit,
 * which costs one look later, but no wake-up. next_ms is a lower bound, made
 * exact each time the wheel gets there. No operation makes a system call.
 */

#include <stdint.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/io/inside.h"

static unsigned level_shift(unsigned level)
{
	return 2 * level;
}

void wheel_init(struct wheel *w, uint64_t now_ms)
{
	w->now_ms = now_ms;
	w->next_ms = UINT64_MAX;
	for (unsigned l = 0; l < WHEEL_LEVELS; l++)
		for (unsigned i = 0; i < WHEEL_SLOTS; i++)
			list_init(&w->slots[l][i]);
}

/* The finest level at which due is less than a full turn away; *ret_tick is
 * the slot's number there, counted from time zero. */
static unsigned wheel_level(const struct wheel *w, uint64_t due,
			    uint64_t *ret_tick)
{
	unsigned bits = 64 - (unsigned)__builtin_clzll((due - w->now_ms) | 1);
	unsigned level = bits <= 8 ? 0 : (bits - 7) / 2;

	for (; level < WHEEL_LEVELS; level++) {
		unsigned shift = level_shift(level);
		uint64_t wide = (1ull << shift) - 1;
		uint64_t tick = (due + wide) >> shift;

		if (tick - (w->now_ms >> shift) < WHEEL_SLOTS) {
			*ret_tick = tick;
			return level;
		}
	}
	/* Beyond the wheel: the farthest slot, and placed again from there. */
	level = WHEEL_LEVELS - 1;
	*ret_tick = (w->now_ms >> level_shift(level)) + WHEEL_SLOTS - 1;
	return level;
}

static void wheel_place(struct wheel *w, struct timer *t)
{
	uint64_t tick = 0;
	unsigned level = wheel_level(w, t->due_ms, &tick);
	unsigned i = tick % WHEEL_SLOTS;

	t->slot_ms = tick << level_shift(level);
	list_push(&w->slots[level][i], &t->slot);
	w->busy[level][i / 64] |= 1ull << (i % 64);
	if (t->slot_ms < w->next_ms)
		w->next_ms = t->slot_ms;
}

/* Distance from slot `from` to the next busy one, 0 = none. */
static unsigned ring_next(const uint64_t busy[WHEEL_SLOTS / 64], unsigned from)
{
	for (unsigned d = 1; d < WHEEL_SLOTS;) {
		unsigned i = (from + d) % WHEEL_SLOTS;
		uint64_t word = busy[i / 64] >> (i % 64);

		if (word) {
			d += (unsigned)__builtin_ctzll(word);
			return d < WHEEL_SLOTS ? d : 0;
		}
		d += 64 - i % 64;
	}
	return 0;
}

/* The same, to the next slot of a level that something is in. */
static unsigned wheel_look(struct wheel *w, unsigned level, unsigned from)
{
	unsigned d, i;

	while ((d = ring_next(w->busy[level], from))) {
		i = (from + d) % WHEEL_SLOTS;
		if (!list_is_empty(&w->slots[level][i]))
			break;
		w->busy[level][i / 64] &= ~(1ull << (i % 64));
	}
	return d;
}

static uint64_t wheel_next(struct wheel *w)
{
	uint64_t next = UINT64_MAX;

	for (unsigned l = 0; l < WHEEL_LEVELS; l++) {
		unsigned shift = level_shift(l);
		uint64_t tick = w->now_ms >> shift;
		unsigned d = wheel_look(w, l, tick % WHEEL_SLOTS);

		if (d)
			next = MIN(next, (tick + d) << shift);
	}
	return next;
}

/* Empties the slots that end exactly at now_ms into *ret. */
static void wheel_collect(struct wheel *w, struct list *ret)
{
	list_init(ret);
	for (unsigned l = 0; l < WHEEL_LEVELS; l++) {
		unsigned shift = level_shift(l);
		unsigned i = (w->now_ms >> shift) % WHEEL_SLOTS;
		struct list *slot = &w->slots[l][i];

		if (w->now_ms & ((1ull << shift) - 1))
			return; /* nor do coarser slots end here */
		w->busy[l][i / 64] &= ~(1ull << (i % 64));
		list_for_each(it, slot)
		{
			list_remove(it);
			list_push(ret, it);
		}
	}
}

static void wheel_fire(struct wheel *w, struct list *due)
{
	struct timer *t;

	while ((t = list_first(due, struct timer, slot))) {
		list_remove(&t->slot);
		if (t->due_ms > w->now_ms) {
			wheel_place(w, t); /* it was restarted meanwhile */
			continue;
		}
		t->due_ms = 0;
		t->fn(t);
		/* t may be gone */
	}
}

void wheel_expire(struct loop *loop)
{
	struct wheel *w = &loop->wheel;
	struct list due;

	while (w->next_ms <= loop->now_ms) {
		w->now_ms = w->next_ms;
		wheel_collect(w, &due);
		wheel_fire(w, &due);
		w->next_ms = wheel_next(w);
	}
	w->now_ms = loop->now_ms;
}

void timer_init(struct timer *t, struct loop *loop, timer_fn *fn)
{
	*t = (struct timer){ .loop = loop, .fn = fn };
	list_init(&t->slot);
}

void timer_start(struct timer *t, uint64_t delay_ms)
{
	struct loop *loop = t->loop;
	bool running = t->due_ms != 0;

	t->due_ms = loop_now_ms(loop) + MIN(MAX(delay_ms, 1), 1ull << 40);
	if (running && t->slot_ms <= t->due_ms)
		return;
	list_remove(&t->slot);
	wheel_place(&loop->wheel, t);
}

void timer_stop(struct timer *t)
{
	t->due_ms = 0;
	list_remove(&t->slot);
}
