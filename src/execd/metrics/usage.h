/* SPDX-License-Identifier: Apache-2.0 */
/* usage.h - processors and memory: how much there is and how much is used
 *
 * What counts is the cgroup the daemon lives in, as the container's other
 * programs do. A limit may stand at any cgroup above; the smallest one that
 * can be seen is the limit, and use is counted where it stands. Without limits
 * the machine is the limit. Memory is what the kernel cannot give back at
 * once: the cgroup's use without its inactive file cache.
 *
 * Nothing sleeps: the processor percentage is the difference between two
 * readings of a counter, of which the earlier one was kept.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/execd/metrics/cgroup.h"

struct usage_reading {
	uint64_t busy;	/* us of processor time, or ticks of the machine */
	uint64_t whole; /* us of time, or ticks of the machine */
	uint64_t at_us; /* monotonic; 0 = no reading */
};

struct usage_place {
	bool is_found;
	bool is_v1;
	char folder[CGROUP_PATH_SIZE];
	size_t top; /* length of the mount's part of folder */
};

struct usage {
	const char *root; /* "" or a folder that stands for "/" (tests) */
	struct usage_place cpu, cpuacct, memory;
	struct usage_reading older, newer;
};

struct usage_sample {
	double cpu_count;    /* > 0; a quota may be less than one */
	double cpu_used_pct; /* of cpu_count, 0 to 100 */
	uint64_t memory_total, memory_used; /* bytes; 0 < used <= total */
};

/* Finds the cgroup and takes the first reading. root is borrowed. */
void usage_init(struct usage *u, const char *root);
/* Keeps a reading as the earlier one of later samples. Call it now and then:
 * the percentage is the mean since the last or last but one call. */
void usage_tick(struct usage *u);
/* 0; -errno when neither cgroup nor /proc can be read. */
WUNRES int usage_take(struct usage *u, struct usage_sample *ret);
