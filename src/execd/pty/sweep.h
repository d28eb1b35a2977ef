/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.h - an end for everything that runs at a terminal */
#pragma once

#include <sys/types.h>

/* SIGKILL to every process of the session: the jobs of a shell are groups of
 * their own, and who kills the shell alone leaves them behind. leader is the
 * session's and was not reaped yet. What leaves the session (setsid) escapes.
 */
void sweep_session(pid_t leader);
