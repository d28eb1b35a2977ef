/* SPDX-License-Identifier: Apache-2.0 */
/* child_exec.h - what a new process does until it is the program it was made
 * for (inside src/execd/process) */
#pragma once

#include <sys/resource.h>

#include "src/base/attrib.h"
#include "src/execd/process/child.h"

enum { CHILD_GROUPS_MAX = 128 };

/* Looked up before the fork: whose program it is. */
struct child_user {
	bool change;
	uid_t uid;
	gid_t gid, groups[CHILD_GROUPS_MAX];
	unsigned group_count;
};

/* Sent through the pipe by who cannot become the program. */
struct child_failure {
	int stage, error;
};

/* Never returns: becomes the program, or writes a struct child_failure to
 * report (close-on-exec) and exits. */
NORETURN void child_become(const struct child_spec *spec,
			   const struct child_user *user,
			   const struct rlimit *files, int report);
