/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.c - kills a session by walking /proc
 *
 * The kernel has signals for processes and groups, not for sessions. Each pass
 * kills whom it finds; a process that was forked meanwhile by one that was not
 * reached yet is found by the next pass, and the passes are bounded.
 */

#include "src/execd/pty/sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "src/base/fd.h"
#include "src/base/span.h"

enum { PASSES = 4, STAT_BYTES = 512 };

/* From /proc/PID/stat: "pid (any name) state ppid pgrp session ...". 0: gone,
 * or a zombie. */
static pid_t session_of(int proc, const char *name)
{
	char path[64], text[STAT_BYTES], state;
	const char *rest;
	int fd, session;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%.20s/stat", name);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	(void)fd_close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	rest = strrchr(text, ')');
	if (!rest || sscanf(rest, ") %c %*d %*d %d", &state, &session) != 2 ||
	    state == 'Z')
		return 0;
	return session;
}

/* How many were killed. */
static unsigned sweep_once(DIR *proc, pid_t leader)
{
	const struct dirent *entry;
	unsigned killed = 0;
	uint64_t pid;

	rewinddir(proc);
	while ((entry = readdir(proc))) {
		if (!span_parse_u64(span_str(entry->d_name), &pid) ||
		    session_of(dirfd(proc), entry->d_name) != leader)
			continue;
		killed += !kill((pid_t)pid, SIGKILL);
	}
	return killed;
}

void sweep_session(pid_t leader)
{
	DIR *proc = opendir("/proc");

	(void)kill(-leader, SIGKILL); /* without /proc, at least these */
	if (!proc)
		return;
	for (int i = 0; i < PASSES && sweep_once(proc, leader); i++)
		;
	(void)closedir(proc);
}
