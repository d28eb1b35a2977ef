/* SPDX-License-Identifier: Apache-2.0 */
/* inside_mounts.c - what a sandbox sees of the machine's files
 *
 * How it works: the sandbox shares the machine's file system, so that CMD
 * finds its programs and its work. Taken away are the ways around the gateway
 * and to secrets: /run holds sockets of daemons (ours, Docker's) and becomes
 * an empty tmpfs; /dev holds disks and becomes the few nodes programs need;
 * /proc and /sys are fresh, because they show the sandbox's own processes and
 * interfaces, and their switches are read-only; credential files and the
 * daemon's folders are masked. CMD later lacks the capability to undo any of
 * this.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/cli/inside.h"
#include "src/cli/proc.h"

#define RESOLV_CONF "/etc/resolv.conf"

static int complain(const char *what, int r)
{
	fprintf(stderr, "sallyport: %s in the sandbox failed: %s\n", what,
		err_text(r));
	return r;
}

static int mount_fresh(const char *type, const char *at, unsigned long flags,
		       const char *data)
{
	if (mount(type, at, type, flags | MS_NOSUID, data))
		return complain(at, -errno);
	return 0;
}

static int mount_bind(const char *from, const char *to)
{
	if (mount(from, to, NULL, MS_BIND, NULL))
		return complain(to, -errno);
	return 0;
}

static int file_touch(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644);

	if (fd < 0)
		return complain(path, -errno);
	(void)fd_close(fd);
	return 0;
}

/* -- /proc and /sys ------------------------------------------------------- */

/* Files below /proc through which root could reach the machine. */
static const char *const proc_switches[] = {
	"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus",
	"/proc/fs",
};

static int proc_mount(void)
{
	const unsigned long ro = MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID |
				 MS_NODEV | MS_NOEXEC;
	unsigned i;
	int r;

	r = mount_fresh("proc", "/proc", MS_NODEV | MS_NOEXEC, NULL);
	for (i = 0; !r && i < ARRAY_LEN(proc_switches); i++) {
		if (access(proc_switches[i], F_OK))
			continue;
		r = mount_bind(proc_switches[i], proc_switches[i]);
		if (!r && mount(NULL, proc_switches[i], NULL, ro, NULL))
			r = complain(proc_switches[i], -errno);
	}
	if (r)
		return r;
	return mount_fresh("sysfs", "/sys", MS_NODEV | MS_NOEXEC | MS_RDONLY,
			   NULL);
}

/* -- /dev ----------------------------------------------------------------- */

static const char *const device_nodes[] = { "null",   "zero",	 "full",
					    "random", "urandom", "tty" };

static const char *const device_links[][2] = {
	{ "/proc/self/fd", "/dev/fd" },
	{ "/proc/self/fd/0", "/dev/stdin" },
	{ "/proc/self/fd/1", "/dev/stdout" },
	{ "/proc/self/fd/2", "/dev/stderr" },
	{ "pts/ptmx", "/dev/ptmx" },
};

/* The nodes are binds of the machine's own, reached through a descriptor of
 * the old /dev once the new one lies above it. */
static int device_bind(int old, const char *name)
{
	char from[64], to[64];
	int node CLEANUP_FD = openat(old, name, O_PATH | O_CLOEXEC);
	int r;

	if (node < 0)
		return 0; /* not even the machine has it */
	(void)snprintf(from, sizeof(from), "/proc/self/fd/%d", node);
	(void)snprintf(to, sizeof(to), "/dev/%s", name);
	r = file_touch(to);
	return r ? r : mount_bind(from, to);
}

static int device_mount(void)
{
	int old CLEANUP_FD = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
	unsigned i;
	int r;

	if (old < 0)
		return complain("/dev", -errno);
	r = mount_fresh("tmpfs", "/dev", MS_NOEXEC, "mode=755,size=64k");
	for (i = 0; !r && i < ARRAY_LEN(device_nodes); i++)
		r = device_bind(old, device_nodes[i]);
	for (i = 0; !r && i < ARRAY_LEN(device_links); i++)
		if (symlink(device_links[i][0], device_links[i][1]))
			r = complain(device_links[i][1], -errno);
	if (!r && (mkdir("/dev/pts", 0755) || mkdir("/dev/shm", 0755) ||
		   mkdir("/dev/mqueue", 0755)))
		r = complain("/dev", -errno);
	if (!r)
		r = mount_fresh("devpts", "/dev/pts", MS_NOEXEC,
				"newinstance,ptmxmode=0666,mode=620,gid=5");
	if (!r)
		r = mount_fresh("tmpfs", "/dev/shm", MS_NODEV,
				"mode=1777,size=256m");
	return r;
}

/* -- names ---------------------------------------------------------------- */

/* The path that RESOLV_CONF leads to, before /run is hidden. */
static void resolv_find(char path[PATH_MAX])
{
	if (!realpath(RESOLV_CONF, path))
		(void)snprintf(path, PATH_MAX, "%s", RESOLV_CONF);
}

/* Makes the file that a link into the old /run led to, with its folders. */
static int resolv_restore(const char *path)
{
	char folder[PATH_MAX], *slash;
	int r;

	if (!access(path, F_OK) || !span_copy(span_str(path), folder, PATH_MAX))
		return 0;
	slash = strrchr(folder, '/');
	*slash = '\0';
	r = *folder ? folder_make(folder, 0755) : 0;
	return r ? complain(path, r) : file_touch(path);
}

static int resolv_mount(const char *path, const char *resolver)
{
	char text[128];
	int r;

	(void)snprintf(text, sizeof(text),
		       "# the gateway answers\nnameserver %s\n", resolver);
	r = file_write(INSIDE_FOLDER "/resolv.conf", 0644, span_str(text));
	if (r)
		return complain(INSIDE_FOLDER, r);
	r = resolv_restore(path);
	return r ? r : mount_bind(INSIDE_FOLDER "/resolv.conf", path);
}

/* -- masks ---------------------------------------------------------------- */

static int mask(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return 0; /* not there, or below an earlier mask */
	if (!S_ISDIR(st.st_mode))
		return mount_bind("/dev/null", path);
	return mount_fresh("tmpfs", path, MS_NODEV | MS_NOEXEC | MS_RDONLY,
			   "mode=555,size=4k");
}

static int run_mount(void)
{
	int r;

	r = mount_fresh("tmpfs", "/run", MS_NODEV, "mode=755,size=64m");
	if (!r && (mkdir(INSIDE_FOLDER, 0755) || mkdir("/run/lock", 01777) ||
		   chmod("/run/lock", 01777)))
		r = complain("/run", -errno);
	return r;
}

int inside_replace(const char *from, const char *over)
{
	return access(over, F_OK) ? 0 : mount_bind(from, over);
}

int inside_mount(const struct inside_view *view)
{
	char resolv[PATH_MAX];
	unsigned i;
	int r = 0;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return complain("/", -errno);
	if (sethostname(view->hostname, strlen(view->hostname)))
		return complain("host name", -errno);

	resolv_find(resolv);
	/* before /run goes: a mask may lie there and then needs none */
	for (i = 0; !r && i < view->masks.count; i++)
		r = mask(view->masks.items[i]);
	if (!r)
		r = proc_mount();
	if (!r)
		r = device_mount();
	if (!r)
		r = run_mount();
	if (!r)
		r = resolv_mount(resolv, view->resolver);
	return r;
}
