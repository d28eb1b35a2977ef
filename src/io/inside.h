/* SPDX-License-Identifier: Apache-2.0 */
/* inside.h - what the files of this folder share about the loop
 *
 * Nobody outside src/io/ includes this.
 */
#pragma once

#include <stdatomic.h>

#include "src/io/loop.h"

struct event_base;
struct post;

enum {
	WHEEL_LEVELS = 12, /* the last one reaches 12 days; then it re-places */
	WHEEL_SLOTS = 256,
	SCRATCH_BYTES = 256 * 1024,
	PIPES_KEPT = 64,
};

/* Slots of level l are 4^l ms wide. See timer.c. */
struct wheel {
	uint64_t now_ms;  /* everything up to here was expired */
	uint64_t next_ms; /* no slot comes before this */
	uint64_t busy[WHEEL_LEVELS][WHEEL_SLOTS / 64];
	struct list slots[WHEEL_LEVELS][WHEEL_SLOTS];
};

/* Output to send once the callbacks of this round have run. */
struct flush {
	struct list link;
	void (*fn)(struct flush *f);
};

/* What lives in the loop without an owner who would free it. */
struct resident {
	struct list link;
	void (*evict)(struct resident *r); /* by loop_free(); must unlink */
	/* May be NULL. Whether bytes of it are still on their way out. */
	bool (*is_unsent)(const struct resident *r);
};

struct loop {
	struct event_base *base;
	struct event *wake; /* wake_fd became readable */
	struct event *tick; /* tick_fd: the wheel has something at armed_ms */
	uint64_t armed_ms;
	uint64_t now_ms;
	bool in_turn;
	bool is_ending; /* see loop_end_soon() */
	int wake_fd, tick_fd;

	_Atomic(struct post *) posts; /* newest first */
	atomic_bool stop;

	struct list queued;  /* watches to look at */
	struct list flushes; /* struct flush */
	struct list signals; /* struct loop_signal */
	void (*turn_end)(void *ctx);
	void *turn_end_ctx;
	struct wheel wheel;

	/* Of the streams, channels and splices of this loop: */
	struct list residents;
	char *scratch;	    /* SCRATCH_BYTES, never kept over a callback */
	char *chan_scratch; /* the message being delivered */
	struct list recent; /* streams that read short, see stream_read.c */
	struct timer sweep;
	int pipes[PIPES_KEPT][2]; /* empty pipes */
	unsigned pipe_count;
};

/* Of timer.c. */
void wheel_init(struct wheel *w, uint64_t now_ms);
void wheel_expire(struct loop *loop);

/* Allocated on first use. */
char *loop_scratch(struct loop *loop);

static inline void flush_later(struct loop *loop, struct flush *f)
{
	if (list_is_empty(&f->link))
		list_push(&loop->flushes, &f->link);
}

/* Moves all members of from to the (uninitialised) head to. */
static inline void list_move_all(struct list *to, struct list *from)
{
	if (list_is_empty(from)) {
		list_init(to);
		return;
	}
	*to = *from;
	to->next->prev = to;
	to->prev->next = to;
	list_init(from);
}
