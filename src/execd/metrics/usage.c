/* SPDX-License-Identifier: Apache-2.0 */
/* usage.c - processors and memory: how much there is and how much is used */

#include "src/execd/metrics/usage.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/execd/whole.h"

enum {
	TEXT_SIZE = 64 * 1024,	  /* mountinfo of a busy container */
	LEVELS_MAX = 32,	  /* cgroups above ours that are looked at */
	SHORTEST_US = 500 * 1000, /* a shorter time is no good mean */
};

static bool peek(const struct usage *u, const char *folder, const char *name,
		 char *dst, size_t size, struct span *ret)
{
	char path[2 * CGROUP_PATH_SIZE];
	ssize_t len;
	int n;

	n = snprintf(path, sizeof(path), "%s%s%s", u->root, folder, name);
	if (n < 0 || (size_t)n >= sizeof(path))
		return false;
	len = whole_peek(path, dst, size);
	if (len < 0)
		return false;
	*ret = span_of(dst, (size_t)len);
	return true;
}

static bool peek_number(const struct usage *u, const char *folder,
			const char *name, uint64_t *ret)
{
	struct span text;
	char small[64];

	return peek(u, folder, name, small, sizeof(small), &text) &&
	       cgroup_parse_number(text, ret);
}

static bool peek_key(const struct usage *u, const char *folder,
		     const char *name, struct span key, uint64_t *ret)
{
	struct span text;
	char stat[8192];

	return peek(u, folder, name, stat, sizeof(stat), &text) &&
	       cgroup_parse_key(text, key, ret);
}

/* -- where ---------------------------------------------------------------- */

/* A controller is in a hierarchy of v1 when our list says so; else in v2's. */
static void place_find(struct span self, struct span mounts,
		       const char *controller, struct usage_place *ret)
{
	struct usage_place p = { .is_v1 = true };
	struct span name = span_str(controller), path;
	struct cgroup_mount mount;

	if (!cgroup_parse_self(self, name, &path)) {
		p.is_v1 = false;
		name = SPAN("");
		if (!cgroup_parse_self(self, name, &path))
			return;
	}
	if (!cgroup_parse_mount(mounts, name, &mount) ||
	    !cgroup_folder(&mount, path, p.folder))
		return;
	p.top = strlen(mount.point);
	p.is_found = true;
	*ret = p;
}

static void places_find(struct usage *u)
{
	char *mounts = malloc(TEXT_SIZE), self[4096];
	struct span self_text, mounts_text;

	if (mounts &&
	    peek(u, "/proc/self", "/cgroup", self, sizeof(self), &self_text) &&
	    peek(u, "/proc/self", "/mountinfo", mounts, TEXT_SIZE,
		 &mounts_text)) {
		place_find(self_text, mounts_text, "cpu", &u->cpu);
		place_find(self_text, mounts_text, "cpuacct", &u->cpuacct);
		place_find(self_text, mounts_text, "memory", &u->memory);
	}
	free(mounts);
}

/* From our cgroup to the mount's: false when that was the last one. */
static bool place_up(struct usage_place *p)
{
	char *slash;

	if (strlen(p->folder) <= p->top)
		return false;
	slash = strrchr(p->folder, '/');
	*slash = '\0';
	return true;
}

/* -- processors ----------------------------------------------------------- */

static double processors(void)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t allowed;

	CPU_ZERO(&allowed);
	if (!sched_getaffinity(0, sizeof(allowed), &allowed) &&
	    CPU_COUNT(&allowed) > 0)
		return CPU_COUNT(&allowed);
	return online > 0 ? (double)online : 1;
}

static double quota_of(const struct usage *u, const struct usage_place *p)
{
	uint64_t quota, period;
	struct span text;
	char small[64];
	double cores;

	if (!p->is_v1)
		return peek(u, p->folder, "/cpu.max", small, sizeof(small),
			    &text) && cgroup_parse_cpu_max(text, &cores)
			       ? cores
			       : 0;
	if (!peek_number(u, p->folder, "/cpu.cfs_quota_us", &quota) ||
	    !peek_number(u, p->folder, "/cpu.cfs_period_us", &period) ||
	    quota == CGROUP_NONE || !quota || !period)
		return 0;
	return (double)quota / (double)period;
}

/* The count, and the cgroup whose quota it is (else ours). */
static double cpu_count(const struct usage *u, struct usage_place *at)
{
	double least = processors(), quota;
	struct usage_place p = u->cpu;
	unsigned level;

	*at = u->cpu;
	if (!p.is_found)
		return least;
	for (level = 0; level < LEVELS_MAX; level++) {
		quota = quota_of(u, &p);
		if (quota > 0 && quota < least) {
			least = quota;
			*at = p;
		}
		if (!place_up(&p))
			break;
	}
	return least;
}

static bool read_cgroup(const struct usage *u, const struct usage_place *at,
			struct usage_reading *r)
{
	uint64_t ns;

	if (!u->cpu.is_found)
		return false;
	r->whole = r->at_us;
	if (!at->is_v1)
		return peek_key(u, at->folder, "/cpu.stat", SPAN("usage_usec"),
				&r->busy);
	if (!u->cpuacct.is_found ||
	    !peek_number(u, u->cpuacct.folder, "/cpuacct.usage", &ns))
		return false;
	r->busy = ns / 1000;
	return true;
}

/* False: nothing can be read. *scale: what `whole` is counted in, to make it
 * the time of all processors. */
static bool read_now(const struct usage *u, struct usage_reading *r,
		     double *count, double *scale)
{
	struct usage_place at;
	struct span text;
	char line[512];

	*count = *scale = cpu_count(u, &at);
	r->at_us = clock_us();
	if (read_cgroup(u, &at, r))
		return true;
	*scale = 1;
	return peek(u, "/proc", "/stat", line, sizeof(line), &text) &&
	       proc_parse_stat(text, &r->busy, &r->whole);
}

static double percent(const struct usage_reading *from,
		      const struct usage_reading *to, double scale)
{
	double busy, whole;

	if (!from->at_us || to->busy < from->busy || to->whole <= from->whole)
		return 0;
	busy = (double)(to->busy - from->busy);
	whole = (double)(to->whole - from->whole) * scale;
	return busy >= whole ? 100 : 100 * busy / whole;
}

/* -- memory --------------------------------------------------------------- */

static uint64_t limit_of(const struct usage *u, const struct usage_place *p)
{
	uint64_t limit;

	if (!peek_number(u, p->folder,
			 p->is_v1 ? "/memory.limit_in_bytes" : "/memory.max",
			 &limit))
		return CGROUP_NONE;
	return limit;
}

static bool used_of(const struct usage *u, const struct usage_place *p,
		    uint64_t *ret)
{
	uint64_t used, idle;

	if (!peek_number(u, p->folder,
			 p->is_v1 ? "/memory.usage_in_bytes"
				  : "/memory.current",
			 &used) ||
	    used == CGROUP_NONE)
		return false;
	if (peek_key(u, p->folder, "/memory.stat",
		     p->is_v1 ? SPAN("total_inactive_file")
			      : SPAN("inactive_file"),
		     &idle) &&
	    idle < used)
		used -= idle;
	*ret = used;
	return true;
}

static int take_memory(const struct usage *u, struct usage_sample *ret)
{
	struct usage_place p = u->memory, at = u->memory;
	uint64_t machine, available, least, limit, used;
	struct span text;
	char info[4096];
	unsigned level;

	if (!peek(u, "/proc", "/meminfo", info, sizeof(info), &text) ||
	    !proc_parse_meminfo(text, &machine, &available))
		return -EIO;
	least = machine;
	for (level = 0; p.is_found && level < LEVELS_MAX; level++) {
		limit = limit_of(u, &p);
		if (limit && limit < least) {
			least = limit;
			at = p;
		}
		if (!place_up(&p))
			break;
	}
	if (!at.is_found || !used_of(u, &at, &used))
		used = machine - available;
	ret->memory_total = least;
	ret->memory_used = used > least ? least : used ? used : 1;
	return 0;
}

/* -- samples -------------------------------------------------------------- */

void usage_tick(struct usage *u)
{
	struct usage_reading now = { 0 };
	double count, scale;

	if (!read_now(u, &now, &count, &scale))
		return;
	u->older = u->newer.at_us ? u->newer : now;
	u->newer = now;
}

void usage_init(struct usage *u, const char *root)
{
	*u = (struct usage){ .root = root };
	places_find(u);
	usage_tick(u);
}

int usage_take(struct usage *u, struct usage_sample *ret)
{
	const struct usage_reading *from = &u->newer;
	struct usage_reading now = { 0 };
	double scale;

	if (!read_now(u, &now, &ret->cpu_count, &scale))
		return -EIO;
	if (now.at_us - from->at_us < SHORTEST_US)
		from = &u->older;
	ret->cpu_used_pct = percent(from, &now, scale);
	return take_memory(u, ret);
}
