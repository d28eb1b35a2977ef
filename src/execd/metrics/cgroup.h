/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.h - what the kernel's files say about limits and use; pure parsers
 *
 * cgroup v2 and v1, /proc/stat, /proc/meminfo, and where a process's cgroup
 * is found (/proc/self/cgroup with /proc/self/mountinfo). Texts in, numbers
 * out; false leaves *ret alone. Formats: Documentation/admin-guide/cgroup-v2
 * and cgroup-v1 of the kernel, proc(5).
 */
#pragma once

#include <stdbool.h>

#include "src/base/span.h"

#define CGROUP_NONE UINT64_MAX /* "no limit" */

/* One number and a line end; "max" and v1's -1 are CGROUP_NONE. */
bool cgroup_parse_number(struct span text, uint64_t *ret);
/* cpu.max: "quota period"; *cores is 0 without a quota. */
bool cgroup_parse_cpu_max(struct span text, double *cores);
/* "name number" lines (cpu.stat, memory.stat). */
bool cgroup_parse_key(struct span text, struct span name, uint64_t *ret);
/* Lines "id:controllers:path" of /proc/self/cgroup. controller "" is v2. */
bool cgroup_parse_self(struct span text, struct span controller,
		       struct span *path);

enum { CGROUP_PATH_SIZE = 1024 };

struct cgroup_mount {
	char root[CGROUP_PATH_SIZE];  /* of the hierarchy, what is mounted */
	char point[CGROUP_PATH_SIZE]; /* where */
};
/* The first mount of the controller's hierarchy, escapes undone. */
bool cgroup_parse_mount(struct span mountinfo, struct span controller,
			struct cgroup_mount *ret);
/* Folder of the cgroup below its mount; what lies outside of the mount (its
 * path begins with "/..", or is not below the root) is the mount itself. */
bool cgroup_folder(const struct cgroup_mount *m, struct span path,
		   char dst[CGROUP_PATH_SIZE]);

/* -- the whole machine ---------------------------------------------------- */

/* First line of /proc/stat, in ticks: busy is all but idle and iowait. Guest
 * time is part of user time already. */
bool proc_parse_stat(struct span text, uint64_t *busy, uint64_t *total);
/* Bytes. Available is estimated from free and cached memory on kernels that do
 * not say it. */
bool proc_parse_meminfo(struct span text, uint64_t *total, uint64_t *available);
