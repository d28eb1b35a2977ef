/* SPDX-License-Identifier: Apache-2.0 */
/* procs.h - the processes of /proc, and what each does with signals */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/attrib.h"

/* As /proc/PID/stat tells it, proc(5). The masks hold signals 1 to 31; bit 0 is
 * signal 1. */
struct proc_stat {
	char state; /* 'Z' is a zombie */
	pid_t group, session;
	uint64_t ignored, caught;
};

/* False: the text is not such a line, *ret is undefined. */
WUNRES bool proc_stat_parse(const char *text, struct proc_stat *ret);

/* Calls fn for each process but zombies; the sum of what it returned. Those
 * that come and go meanwhile may be left out; without /proc all are. */
typedef unsigned procs_fn(void *ctx, pid_t pid, const struct proc_stat *p);
unsigned procs_each(procs_fn *fn, void *ctx);

/* The process made last: who has a greater number is younger, until numbers
 * begin again. 0: /proc/loadavg, proc(5), does not tell. */
pid_t procs_newest(void);
