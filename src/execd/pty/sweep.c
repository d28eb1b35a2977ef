/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.c - kills a session by walking /proc
 *
 * The kernel has signals for processes and groups, not for sessions. Each pass
 * kills whom it finds; a process that was forked meanwhile by one that was not
 * reached yet is found by the next pass, and the passes are bounded.
 */

#include "src/execd/pty/sweep.h"

#include <signal.h>

#include "src/execd/process/procs.h"

enum { PASSES = 4 };

static unsigned kill_member(void *ctx, pid_t pid, const struct proc_stat *p)
{
	const pid_t *leader = ctx;

	return p->session == *leader && !kill(pid, SIGKILL);
}

void sweep_session(pid_t leader)
{
	(void)kill(-leader, SIGKILL); /* without /proc, at least these */
	for (int i = 0; i < PASSES && procs_each(kill_member, &leader); i++)
		;
}
