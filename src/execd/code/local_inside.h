/* SPDX-License-Identifier: Apache-2.0 */
/* local_inside.h - one interpreter of the image, as the local_*.c files see it
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/execd/code/engine.h"
#include "src/execd/process/child.h"
#include "src/execd/process/output.h"
#include "src/io/loop.h"

struct execd;
struct language;
struct stream;

enum {
	LOCAL_READ_SIZE = 64 * 1024,
	LOCAL_TURN_READS = 4, /* of it in one turn of the loop */
	LOCAL_LATE_TURNS = 64,
	/* In a frame: drivers tell texts, hundreds of them at most. */
	LOCAL_VALUES_MAX = 16 * 1024,
	LOCAL_REQUEST_MAX = 16 * 1024 * 1024, /* quoted */
	LOCAL_WHY_MAX = 160,
};

struct local {
	struct engine engine;
	struct execd *execd;
	const struct language *language;
	char *cwd; /* NULL: ours */

	bool alive; /* then: */
	struct child child;
	struct output out, err;
	struct stream *channel;
	struct buf in;
	struct timer exit_wait; /* the channel ended, the process did not */
	bool ready;		/* the driver runs */
	bool exited;
	bool channel_over;
	unsigned late_turns;	 /* since it has exited */
	char why[LOCAL_WHY_MAX]; /* we ended it, because */

	uint64_t run; /* the number of the last one */
	bool begun;   /* it may be interrupted */
	bool interrupt_due;
	struct timer interrupt; /* local_interrupt.c */
	unsigned interrupt_looks;
	pid_t interrupt_newest;
	bool held;	    /* a frame waits for the pipes before it */
	struct buf request; /* waits for ready */
};

/* Starts the process: alive. The channel has no owner yet, and the child no
 * on_exit. 0 or -errno with a sentence in d. */
WUNRES int local_start(struct local *l, struct diag *d);

/* -- local_interrupt.c ---------------------------------------------------- */

void local_interrupt_init(struct local *l);
/* The run that has begun is to end. */
void local_interrupt_send(struct local *l);
/* It ended. */
void local_interrupt_stop(struct local *l);
