/* SPDX-License-Identifier: Apache-2.0 */
/* loop.h - one event loop: readiness of fds, timers, work posted by others
 *
 * libevent is met only in src/io/. A loop belongs to one thread; everything
 * here but loop_post() and loop_stop() may be called from that thread only.
 *
 * Watches are edge-triggered: the loop remembers what the kernel said
 * (watch.ready) and calls back while something wanted is ready. Who meets
 * EAGAIN or a short read clears the bit with watch_spent().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/list.h"

struct event;
struct loop;

WUNRES int loop_new(struct loop **ret);
/* Ends what nobody owns (streams being closed or spliced); everything else on
 * the loop was ended by its owner before. NULL is fine. Returns NULL. */
struct loop *loop_free(struct loop *loop);
/* From now on a stream that is being closed stays for as long as its peer takes
 * what was sent: the process ends soon, and what is in the kernel by then may
 * be cut off from it. */
void loop_end_soon(struct loop *loop);
/* Whether streams that are being closed have bytes that no peer has yet. */
bool loop_has_unsent(const struct loop *loop);
/* Returns after loop_stop(). */
void loop_run(struct loop *loop);
/* Runs what is ready now without waiting; for tests and for start-up. */
void loop_run_once(struct loop *loop, bool wait);
void loop_stop(struct loop *loop); /* any thread */
/* The time that timers go by, monotonic: of the start of this turn, so free of
 * system calls; outside of a turn that of the clock. What compares a time with
 * a timer of its own asks here: the clock may be ahead by a long turn. */
uint64_t loop_now_ms(struct loop *loop);

/* Runs fn(ctx) in the loop's thread, in order of posting; any thread. */
void loop_post(struct loop *loop, void (*fn)(void *ctx), void *ctx);

/* Runs fn at the end of every turn (flush of batched output). One per loop;
 * NULL takes it back. */
void loop_on_turn_end(struct loop *loop, void (*fn)(void *ctx), void *ctx);

/* Calls fn in the loop's thread when the process gets the signal. */
WUNRES int loop_on_signal(struct loop *loop, int signal, void (*fn)(void *ctx),
			  void *ctx);

enum watch_bits {
	WATCH_READ = 1,
	WATCH_WRITE = 2,
	WATCH_HUP = 4,	/* in ready only: the peer sends no more; sticky */
	WATCH_KICK = 8, /* asked for by watch_kick(); cleared when called */
};

struct watch;
typedef void watch_fn(struct watch *w, unsigned ready);

struct watch {
	struct loop *loop;
	struct event *event;
	watch_fn *fn;
	int fd;
	unsigned ready;	    /* what the kernel last said */
	unsigned wanted;    /* what the owner waits for */
	struct list queued; /* in the loop's list of watches to call */
	unsigned surplus;   /* wake-ups for writing that nobody waited for */
	bool asks_room;	    /* for writing, besides reading and hang-up */
};

/* fd is borrowed, must be non-blocking. Initially nothing is wanted. */
WUNRES int watch_init(struct watch *w, struct loop *loop, int fd, watch_fn *fn);
/* These bits are wanted from the start: WATCH_WRITE of a connection that is
 * being made takes no system call of its own then. */
WUNRES int watch_init_wanting(struct watch *w, struct loop *loop, int fd,
			      watch_fn *fn, unsigned bits);
void watch_fini(struct watch *w); /* safe in its own callback */
/* Calls back (from the loop, never from here) while wanted & ready. The kernel
 * is asked about WATCH_WRITE once it is wanted and not ready. */
void watch_want(struct watch *w, unsigned bits);
/* These bits met EAGAIN: forget them until the kernel says so again. After a
 * short read this is right too, but only while ready lacks WATCH_HUP: an end
 * of stream that came together with the bytes is not announced twice. */
void watch_spent(struct watch *w, unsigned bits);
/* Calls back from the loop once, with WATCH_KICK, if that is wanted. */
void watch_kick(struct watch *w);

struct timer;
typedef void timer_fn(struct timer *t);

/* Timers are a wheel of the loop: start, restart and stop cost no system call.
 * Resolution 1/64 of the duration, at least 1 ms. One-shot. */
struct timer {
	struct loop *loop;
	timer_fn *fn;
	uint64_t due_ms;  /* 0 = stopped */
	uint64_t slot_ms; /* when the wheel looks at it */
	struct list slot;
};

void timer_init(struct timer *t, struct loop *loop, timer_fn *fn);
/* Restarts; moving further away only writes due_ms. Never fires early; a delay
 * of 0 counts as 1. */
void timer_start(struct timer *t, uint64_t delay_ms);
/* Also the way to end a timer's life. Fine when stopped. */
void timer_stop(struct timer *t);
