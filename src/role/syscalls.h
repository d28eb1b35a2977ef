/* SPDX-License-Identifier: Apache-2.0 */
/* syscalls.h - the list of system calls that a role may make */
#pragma once

#include <stdbool.h>

#include "src/role/msg.h"

/* From here on this process (all its threads, for ever) makes the calls of
 * its role, with `asks` those of a control that asks the Docker daemon or a
 * webhook too; any other one ends it by SIGSYS after a line in the log that names
 * the call. Needs no_new_privs or CAP_SYS_ADMIN. Dies on failure. */
void syscalls_confine(enum role role, bool asks);

/* Builds with a sanitizer make calls of their own: there a call outside the
 * list is noted by the kernel and then made. False: such a build. */
bool syscalls_are_enforced(void);
