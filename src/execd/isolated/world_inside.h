/* SPDX-License-Identifier: Apache-2.0 */
/* world_inside.h - between world.c (outside, the daemon), keeper.c and mounts.c
 * (in the child)
 */
#pragma once

#include "src/execd/isolated/world.h"

/* The keeper's only message, with descriptors of the namespaces and the root
 * when it succeeded. */
struct world_news {
	char step[WORLD_STEP_SIZE]; /* "": it stands */
};

/* The daemon's end and the keeper's are one socket pair. */
struct keeper {
	const struct plan *plan;
	uid_t uid; /* ours, that the session's user is mapped to */
	gid_t gid;
	char step[WORLD_STEP_SIZE];
};

enum { KEEPER_CHANNEL = 3 };

/* For struct child_spec. Never returns in the keeper. */
int keeper_enter(void *ctx, int report);
/* Waits for `pid`, the only child, and ends as it does. Signals that are sent
 * to the group are the other one's to take. */
NORETURN void keeper_mirror(pid_t pid);

/* Lays the session's file system over the container's, in a mount namespace of
 * its own. k->step tells what was done last. 0 or -errno. */
WUNRES int mounts_make(struct keeper *k);
/* Notes what is done next. */
void keeper_step(struct keeper *k, const char *what, const char *of);
