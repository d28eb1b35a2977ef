/* SPDX-License-Identifier: Apache-2.0 */
/* procs.c - reads /proc */

#include "src/execd/process/procs.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/base/fd.h"
#include "src/base/span.h"

enum { STAT_BYTES = 1024 };

/* The name before is in brackets and may hold anything; the last closing one
 * ends it. From the state to the mask of what is caught: fields 3 to 34. */
#define SKIP_13	   "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
#define AFTER_NAME ") %c %*s %d %d " SKIP_13 SKIP_13 "%" SCNu64 " %" SCNu64 " "

bool proc_stat_parse(const char *text, struct proc_stat *ret)
{
	const char *rest = strrchr(text, ')');
	int group, session;

	if (!rest || sscanf(rest, AFTER_NAME, &ret->state, &group, &session,
			    &ret->ignored, &ret->caught) != 5)
		return false;
	ret->group = group;
	ret->session = session;
	return true;
}

/* The first bytes of a file that the kernel writes, as a string. */
static bool peek(int folder, const char *path, char *text, size_t size)
{
	int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	(void)fd_close(fd);
	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

static bool stat_of(int proc, const char *name, struct proc_stat *ret)
{
	char path[64], text[STAT_BYTES];

	(void)snprintf(path, sizeof(path), "%.20s/stat", name);
	return peek(proc, path, text, sizeof(text)) &&
	       proc_stat_parse(text, ret);
}

unsigned procs_each(procs_fn *fn, void *ctx)
{
	const struct dirent *entry;
	DIR *proc = opendir("/proc");
	struct proc_stat p;
	unsigned sum = 0;
	uint64_t pid;

	if (!proc)
		return 0;
	while ((entry = readdir(proc)))
		if (span_parse_u64(span_str(entry->d_name), &pid) &&
		    stat_of(dirfd(proc), entry->d_name, &p) && p.state != 'Z')
			sum += fn(ctx, (pid_t)pid, &p);
	(void)closedir(proc);
	return sum;
}

pid_t procs_newest(void)
{
	char text[128];
	const char *last;
	uint64_t pid;

	if (!peek(AT_FDCWD, "/proc/loadavg", text, sizeof(text)))
		return 0;
	last = strrchr(text, ' ');
	text[strcspn(text, "\n")] = 0;
	return last && span_parse_u64(span_str(last + 1), &pid) &&
			       pid <= INT32_MAX
		       ? (pid_t)pid
		       : 0;
}
