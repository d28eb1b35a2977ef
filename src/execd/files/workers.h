/* SPDX-License-Identifier: Apache-2.0 */
/* workers.h - work that may block, in slices, on a few threads beside the loop
 *
 * The loop never waits for a disk: whatever touches files of clients is a
 * struct work. Its step() runs on a thread and does a slice (WORK_SLICE_MS or a
 * piece of output); WORK_AGAIN puts it behind everything else that waits, so a
 * tree of a million files and a look at one file come along side by side.
 * done() runs in the loop after WORK_DONE, and may give the work again.
 *
 * A work belongs to the threads from workers_give() to done(): the loop may
 * touch nothing of it meanwhile but what its owner made atomic.
 *
 * A thread is the user of .as during a step, and itself again behind it; done()
 * is always run as the daemon.
 *
 * Threads begin when there is work and end when there was none for
 * WORKERS_IDLE_S: an idle daemon has none. They hold no signals.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/list.h"
#include "src/execd/files/identity.h"

struct loop;
struct workers;

enum {
	WORKERS_MAX = 4, /* threads */
	WORKERS_IDLE_S = 5,
	WORKERS_END_MS = 2000,
	WORK_SLICE_MS = 10,
};

enum work_next { WORK_DONE, WORK_AGAIN };

struct work {
	struct list link; /* list_init() it once */
	enum work_next (*step)(struct work *w);
	void (*done)(struct work *w);
	struct identity as; /* whom step() is run as; zero: the daemon */
};

WUNRES int workers_new(struct loop *loop, struct workers **ret);
/* Waits for the slices that run. What was given is done() in here, finished or
 * not; workers_are_ending() is true then, and nothing is taken any more. NULL;
 * or p: after WORKERS_END_MS a slice had not ended. Nothing is done() then, and
 * whatever the threads may touch must stay until the process ends. */
struct workers *workers_free(struct workers *p);
bool workers_are_ending(const struct workers *p);
/* w must not be given already. Not after workers_are_ending(). */
void workers_give(struct workers *p, struct work *w);
