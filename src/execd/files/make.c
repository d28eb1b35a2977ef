/* SPDX-License-Identifier: Apache-2.0 */
/* make.c - directories, one below the other
 *
 * Goes down by descriptors: what it made it opens without following links, so
 * that an owner is never given to something that was put in its place.
 */

#include "src/execd/files/make.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "src/base/fd.h"
#include "src/base/span.h"
#include "src/execd/files/fault.h"
#include "src/execd/files/path.h"
#include "src/execd/files/permission.h"

/* A new directory is opened and owned. The fd, or -errno. */
static int own(int parent_fd, const char *name, const struct permission *p,
	       bool last)
{
	struct permission mine = p ? *p : PERMISSION_NONE;
	int fd = openat(parent_fd, name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	mine.has_mode = mine.has_mode && last;
	r = permission_set_fd(&mine, fd);
	if (!r)
		return fd;
	(void)fd_close(fd);
	return r;
}

/* One directory below another, made if need be. The fd, or -errno. */
static int descend(int parent_fd, const char *name, const struct permission *p,
		   bool last)
{
	int fd;

	if (!mkdirat(parent_fd, name, 0777))
		return own(parent_fd, name, p, last);
	if (errno != EEXIST)
		return -errno;
	fd = openat(parent_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int made_fault(struct fault *f, int r, const char *path, size_t len)
{
	char upto[PATH_BYTES];

	(void)span_copy(span_of(path, len), upto, sizeof(upto));
	if (r != -ENOTDIR && r != -ENOENT)
		return fault_errno(f, r, "make the directory", upto);
	(void)fault_set(f, 500, ANSWER_RUNTIME_ERROR,
			"found something that is no directory: %.600s", upto);
	return r;
}

int make_directories(const char *path, const struct permission *p,
		     struct fault *f)
{
	struct span rest = span_str(path), name;
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), next;
	char text[PATH_BYTES];

	if (fd < 0)
		return fault_errno(f, errno, "open", "/");
	while (rest.len) {
		name = span_cut(&rest, '/');
		if (!name.len)
			continue;
		next = span_copy(name, text, sizeof(text))
			       ? descend(fd, text, p, !rest.len)
			       : -ENAMETOOLONG;
		(void)fd_close(fd);
		if (next < 0)
			return made_fault(f, next, path,
					  (size_t)(name.ptr + name.len - path));
		fd = next;
	}
	(void)fd_close(fd);
	return 0;
}

int make_parents(const char *path, const struct permission *p, struct fault *f)
{
	struct permission owner = p ? *p : PERMISSION_NONE;
	char parent[PATH_BYTES];

	owner.has_mode = false;
	path_parent(path, parent);
	return make_directories(parent, &owner, f);
}
