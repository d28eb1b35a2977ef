/* SPDX-License-Identifier: Apache-2.0 */
/* world.h - the namespaces of an isolated session: made, kept, entered
 *
 * A session's world is kept by a process of its own, the keeper: process 1 of
 * the session's processes, which reaps them and with whose end they all end.
 * The daemon holds descriptors of the namespaces; a program for the session is
 * forked as any other one and enters them before it is executed.
 *
 * What is called here "in the child" runs between fork and exec
 * (process/child.h, enter): it may make system calls and nothing else, and
 * reports failures as -errno.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "src/base/attrib.h"
#include "src/execd/process/child.h"

struct execd;
struct plan;

enum world_ns {
	WORLD_USER, /* entered first; -1: the container's */
	WORLD_MOUNT,
	WORLD_IPC,
	WORLD_UTS,
	WORLD_NET,    /* -1: the container's */
	WORLD_CGROUP, /* -1: the container's */
	WORLD_PID,    /* entered last: its children are in it */
	WORLD_NS_NUM,
};

struct world {
	struct child keeper; /* set .on_exit before */
	int ns[WORLD_NS_NUM];
	int root;     /* of it, O_PATH */
	bool has_uid; /* the programs' user; else the keeper's */
	uid_t uid;
	gid_t gid;
};

enum { WORLD_STEP_SIZE = 96 };

/* Makes it. 0; -errno with the step that failed in `step` (a sentence's
 * beginning, such as "mounting /proc"). */
WUNRES int world_new(struct execd *e, const struct plan *plan,
		     struct world *ret, char step[WORLD_STEP_SIZE]);
/* Ends everybody in it. */
void world_fini(struct world *w);

/* For struct child_spec: enters the world that ctx is, confines, and returns in
 * a process that is in it. The process that was forked stays outside, waits,
 * and ends as the other one does. In the child. */
int world_enter(void *ctx, int report);
