/* SPDX-License-Identifier: Apache-2.0 */
/* mounts.c - the file system of an isolated session, laid over the container's
 *
 * How it works: what is to be writable, or is to be seen in another place, is
 * cloned off first (open_tree). Then everything becomes read-only in one call
 * (mount_setattr), and the clones and fresh file systems are mounted on top,
 * where they keep what they were. No folder of the image is needed to stand on.
 *
 * Sources are opened without following any link: they were resolved when the
 * request was checked, and must still be what they were.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/attrib.h"
#include "src/base/fd.h"
#include "src/execd/isolated/plan.h"
#include "src/execd/isolated/world_inside.h"

/* of sys/mount.h, which does not go with linux/mount.h */
int mount(const char *source, const char *target, const char *type,
	  unsigned long flags, const void *data);

#define LAYER_SIZE "2g" /* of what overlay and /tmp may take of memory */

static const char *const devices[] = { "null",	 "zero",    "full",
				       "random", "urandom", "tty" };
static const char *const links[][2] = {
	{ "/proc/self/fd", "/dev/fd" },
	{ "/proc/self/fd/0", "/dev/stdin" },
	{ "/proc/self/fd/1", "/dev/stdout" },
	{ "/proc/self/fd/2", "/dev/stderr" },
	{ "pts/ptmx", "/dev/ptmx" },
};

/* A fresh /proc shows what the container's runtime had hidden in the old one,
 * and root may write to it: settings of the whole kernel. */
static const char *const proc_kept[] = { "/proc/sys", "/proc/sysrq-trigger",
					 "/proc/irq", "/proc/bus", "/proc/fs" };
static const char *const proc_hidden[] = {
	"/proc/acpi",	       "/proc/asound",	    "/proc/interrupts",
	"/proc/kcore",	       "/proc/keys",	    "/proc/key-users",
	"/proc/latency_stats", "/proc/sched_debug", "/proc/scsi",
	"/proc/timer_list",    "/proc/timer_stats", "/proc/kpagecount",
	"/proc/kpageflags",    "/proc/kpagecgroup", "/proc/kmsg",
};

struct clones {
	int tmp, workspace;
	int device[ARRAY_LEN(devices)];
	int bind[PLAN_BINDS_MAX];
};

/* -- clones --------------------------------------------------------------- */

/* The mount tree at path, loose; -errno. */
static int clone_off(const char *path, bool follow)
{
	const struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = follow ? 0 : RESOLVE_NO_SYMLINKS,
	};
	int at CLEANUP_FD =
		(int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	long fd;

	if (at < 0)
		return -errno;
	fd = syscall(SYS_open_tree, at, "",
		     OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
			     AT_EMPTY_PATH);
	return fd < 0 ? -errno : (int)fd;
}

static int attributes_set(int fd, const char *path, uint64_t set)
{
	const struct mount_attr attr = { .attr_set = set };

	return syscall(SYS_mount_setattr, fd, path,
		       AT_RECURSIVE | (*path ? 0 : AT_EMPTY_PATH), &attr,
		       sizeof(attr))
		       ? -errno
		       : 0;
}

static int put_on(int tree, const char *path)
{
	return syscall(SYS_move_mount, tree, "", AT_FDCWD, path,
		       MOVE_MOUNT_F_EMPTY_PATH)
		       ? -errno
		       : 0;
}

static int binds_clone(struct keeper *k, struct clones *c)
{
	const struct plan_bind *b;
	unsigned i;
	int r = 0;

	for (i = 0; !r && i < k->plan->bind_count; i++) {
		b = &k->plan->binds[i];
		keeper_step(k, "opening", b->source);
		c->bind[i] = clone_off(b->source, false);
		r = MIN(c->bind[i], 0);
		if (!r)
			r = attributes_set(
				c->bind[i], "",
				MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					(b->read_only ? MOUNT_ATTR_RDONLY : 0));
	}
	return r;
}

static int clones_take(struct keeper *k, struct clones *c)
{
	char path[32];
	unsigned i;

	c->tmp = k->plan->profile == PLAN_BALANCED ? clone_off("/tmp", true)
						   : -1;
	for (i = 0; i < ARRAY_LEN(devices); i++) {
		snprintf(path, sizeof(path), "/dev/%s", devices[i]);
		c->device[i] = clone_off(path, true);
	}
	keeper_step(k, "opening", k->plan->workspace);
	c->workspace = clone_off(k->plan->workspace, false);
	if (c->workspace < 0)
		return c->workspace;
	return binds_clone(k, c);
}

/* -- fresh ones ----------------------------------------------------------- */

static int fresh(struct keeper *k, const char *type, const char *path,
		 unsigned long flags, const char *options)
{
	keeper_step(k, "mounting", path);
	return mount(type, path, type, flags, options) ? -errno : 0;
}

/* An image may lack the folder; then there is nothing to hide. */
static int fresh_if_there(struct keeper *k, const char *path,
			  const char *options)
{
	if (access(path, F_OK))
		return 0;
	return fresh(k, "tmpfs", path, MS_NOSUID | MS_NODEV, options);
}

static int read_only_again(struct keeper *k, const char *path)
{
	int tree CLEANUP_FD = clone_off(path, false);
	int r;

	if (tree == -ENOENT)
		return 0;
	keeper_step(k, "protecting", path);
	r = tree < 0 ? tree : attributes_set(tree, "", MOUNT_ATTR_RDONLY);
	return r ? r : put_on(tree, path);
}

/* A folder becomes empty, a file /dev/null, neither to be written to. */
static int hide(struct keeper *k, const char *path, const char *null)
{
	int tree CLEANUP_FD = -1;
	struct stat is;
	int r;

	if (lstat(path, &is))
		return 0;
	keeper_step(k, "hiding", path);
	if (S_ISDIR(is.st_mode))
		return mount("tmpfs", path, "tmpfs",
			     MS_RDONLY | MS_NOSUID | MS_NODEV, "size=4k")
			       ? -errno
			       : 0;
	tree = clone_off(null, true);
	if (tree < 0)
		return tree;
	r = attributes_set(tree, "", MOUNT_ATTR_RDONLY);
	return r ? r : put_on(tree, path);
}

static int proc_put(struct keeper *k)
{
	unsigned i;
	int r;

	r = fresh(k, "proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	for (i = 0; !r && i < ARRAY_LEN(proc_hidden); i++)
		r = hide(k, proc_hidden[i], "/dev/null");
	for (i = 0; !r && i < ARRAY_LEN(proc_kept); i++)
		r = read_only_again(k, proc_kept[i]);
	return r;
}

static int device_put(const char *name, int tree)
{
	char path[32];
	int fd;

	if (tree < 0)
		return 0; /* the image has none */
	snprintf(path, sizeof(path), "/dev/%s", name);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	(void)fd_close(fd);
	return put_on(tree, path);
}

static int devices_put(struct keeper *k, const struct clones *c)
{
	unsigned i;
	int r;

	r = fresh_if_there(k, "/dev", "mode=755,size=64k");
	if (r || access("/dev", F_OK))
		return r;
	for (i = 0; !r && i < ARRAY_LEN(devices); i++)
		r = device_put(devices[i], c->device[i]);
	for (i = 0; !r && i < ARRAY_LEN(links); i++)
		r = symlink(links[i][0], links[i][1]) ? -errno : 0;
	if (r)
		return r;
	(void)mkdir("/dev/shm", 01777);
	(void)mkdir("/dev/pts", 0755);
	/* a kernel without new instances of it: then without terminals */
	(void)!fresh(k, "devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC,
		     "newinstance,ptmxmode=0666,mode=620");
	return fresh(k, "tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV,
		     "mode=1777,size=64m");
}

/* -- the workspace and the rest ------------------------------------------- */

/* Below a fresh file system the folder may be missing. */
static void folders_make(const char *path)
{
	char at[PATH_MAX], *slash;
	size_t len = strlen(path);

	if (len >= sizeof(at))
		return;
	memcpy(at, path, len + 1);
	for (slash = strchr(at + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(at, 0755);
		*slash = '/';
	}
	(void)mkdir(at, 0755);
}

static bool is_file(int tree)
{
	struct stat is;

	return !fstat(tree, &is) && !S_ISDIR(is.st_mode);
}

static int tree_put(struct keeper *k, int tree, const char *path)
{
	int fd;

	keeper_step(k, "mounting", path);
	if (!is_file(tree)) {
		folders_make(path);
	} else {
		fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW,
			  0600);
		(void)fd_close(fd);
	}
	return put_on(tree, path);
}

/* The upper layer is in memory and in no place: what the session writes is
 * gone with it, and nobody else can get at it. */
static int overlay_put(struct keeper *k, int lower)
{
	long fs = syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
	char options[256];
	struct stat is;
	int layers;

	keeper_step(k, "laying an overlay over", k->plan->workspace);
	if (fs < 0)
		return -errno;
	(void)syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "size", LAYER_SIZE,
		      0);
	if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return -errno;
	layers = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	if (layers < 0)
		return -errno;
	if (mkdirat(layers, "upper", 0755) || mkdirat(layers, "work", 0755) ||
	    fstat(lower, &is))
		return -errno;
	/* the root of the whole is the upper layer's folder */
	(void)!fchownat(layers, "upper", is.st_uid, is.st_gid, 0);
	(void)!fchmodat(layers, "upper", is.st_mode & 07777, 0);
	snprintf(options, sizeof(options),
		 "lowerdir=/proc/self/fd/%d,upperdir=/proc/self/fd/%d/upper,"
		 "workdir=/proc/self/fd/%d/work",
		 lower, layers, layers);
	folders_make(k->plan->workspace);
	return mount("overlay", k->plan->workspace, "overlay",
		     MS_NOSUID | MS_NODEV, options)
		       ? -errno
		       : 0;
}

static int workspace_put(struct keeper *k, int tree)
{
	int r;

	if (k->plan->mode == PLAN_OVERLAY)
		return overlay_put(k, tree);
	r = attributes_set(tree, "",
			   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
				   (k->plan->mode == PLAN_READ_ONLY
					    ? MOUNT_ATTR_RDONLY
					    : 0));
	return r ? r : tree_put(k, tree, k->plan->workspace);
}

int mounts_make(struct keeper *k)
{
	struct clones c;
	unsigned i;
	int r;

	keeper_step(k, "leaving the container's mounts", "");
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		return -errno;
	r = clones_take(k, &c);
	if (r)
		return r;
	keeper_step(k, "making everything read-only", "");
	r = attributes_set(AT_FDCWD, "/",
			   MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID);
	if (!r)
		r = proc_put(k);
	if (!r && c.tmp < 0)
		r = fresh_if_there(k, "/tmp", "mode=1777,size=" LAYER_SIZE);
	else if (!r)
		r = put_on(c.tmp, "/tmp");
	if (!r)
		r = fresh_if_there(k, "/run", "mode=755,size=64m");
	if (!r)
		r = devices_put(k, &c);
	if (!r)
		r = workspace_put(k, c.workspace);
	for (i = 0; !r && i < k->plan->bind_count; i++)
		r = tree_put(k, c.bind[i], k->plan->binds[i].dest);
	return r;
}
