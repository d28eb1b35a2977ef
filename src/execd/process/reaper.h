/* SPDX-License-Identifier: Apache-2.0 */
/* reaper.h - who waits for children: one place, for all of them
 *
 * SIGCHLD is turned into waitid() until nothing is left. A pid that somebody
 * registered is told to him, once; any other one (we are the container's init,
 * or the child of a child that died) is reaped and forgotten. A pid is told
 * before its number can be used again.
 */
#pragma once

#include <sys/types.h>

#include "src/base/attrib.h"
#include "src/base/list.h"

struct loop;
struct reaper;

struct reaper_child {
	struct list link;
	pid_t pid; /* 0: not registered */
	void (*exited)(struct reaper_child *c, int status); /* as waitpid() */
};

/* The process's only one. */
WUNRES int reaper_new(struct loop *loop, struct reaper **ret);
struct reaper *reaper_free(struct reaper *r);
/* Must be called in the same turn in which the child was made. */
void reaper_add(struct reaper *r, struct reaper_child *c);
/* Forgets it; its end will be told to nobody. Fine when not registered. */
void reaper_remove(struct reaper *r, struct reaper_child *c);
