/* SPDX-License-Identifier: Apache-2.0 */
/* remove.c - everything below a path, and the path itself */

#include "src/execd/files/remove.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/execd/files/fault.h"
#include "src/execd/files/path.h"
#include "src/execd/files/walk.h"

struct removal {
	char path[PATH_BYTES];
	int parent_fd;
	struct walk *walk; /* NULL: at the path itself */
	unsigned passes;
};

struct removal *removal_new(const char *path)
{
	struct removal *r = must_alloc(sizeof(*r));

	(void)span_copy(span_str(path), r->path, sizeof(r->path));
	r->parent_fd = -1;
	return r;
}

struct removal *removal_free(struct removal *r)
{
	if (!r)
		return NULL;
	(void)walk_free(r->walk);
	(void)fd_close(r->parent_fd);
	free(r);
	return NULL;
}

static int step_fault(struct fault *f, int err, struct span path)
{
	char text[PATH_BYTES] = "";

	/* of a path deeper than any name, its beginning */
	(void)span_copy(span_of(path.ptr, MIN(path.len, sizeof(text) - 1)),
			text, sizeof(text));
	return fault_errno(f, err, "remove", text);
}

/* One name out of its directory. 0; 1: it is a directory, or has new things in
 * it; -errno. What is not there is fine. */
static int unlink_one(int dir_fd, const char *name, bool directory)
{
	if (!unlinkat(dir_fd, name, directory ? AT_REMOVEDIR : 0) ||
	    errno == ENOENT)
		return 0;
	if (directory && errno == ENOTDIR) /* swapped for something else */
		return unlink_one(dir_fd, name, false);
	if (directory ? errno == ENOTEMPTY || errno == EEXIST : errno == EISDIR)
		return 1;
	return -errno;
}

static int one_more_pass(struct removal *r)
{
	return ++r->passes > REMOVE_PASSES_MAX ? -ENOTEMPTY : 0;
}

/* > 0: go on; 0: the walk is over; < 0: f is set. */
static int walk_step(struct removal *r, struct fault *f)
{
	struct walk_entry entry;
	int n;

	n = walk_next(r->walk, &entry);
	if (n < 0)
		return step_fault(f, n, walk_path(r->walk));
	if (!n)
		return 0;
	if (entry.is_directory && !entry.leaving)
		return 1;
	n = unlink_one(entry.dir_fd, entry.name, entry.leaving);
	if (n > 0) {
		walk_again(r->walk);
		n = one_more_pass(r);
	}
	return n < 0 ? step_fault(f, n, entry.path) : 1;
}

/* Is there a directory to be emptied? 1: its walk began; 0: the path names
 * nothing any more; < 0: f is set. */
static int root_open(struct removal *r, struct fault *f)
{
	const char *name = path_base(r->path);
	int fd;
	int n;

	fd = openat(r->parent_fd, name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK |
			    O_CLOEXEC);
	if (fd >= 0) {
		r->walk = walk_new(fd, span_str(r->path), WALK_REMOVING, 0);
		return 1;
	}
	n = errno;
	if (n == ENOENT)
		return 0;
	/* a file, a link, or a directory that nobody may read */
	n = unlink_one(r->parent_fd, name, n != ENOTDIR && n != ELOOP) ? n : 0;
	return n ? step_fault(f, n, span_str(r->path)) : 0;
}

static int root_step(struct removal *r, struct fault *f)
{
	char parent[PATH_BYTES];
	int n;

	if (r->parent_fd < 0) {
		if (!*path_base(r->path))
			return fault_set(f, 400, ANSWER_INVALID_REQUEST_BODY,
					 "found the root directory, which is "
					 "not removed");
		path_parent(r->path, parent);
		r->parent_fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (r->parent_fd < 0)
			return errno == ENOENT
				       ? 0
				       : step_fault(f, errno, span_str(parent));
		return root_open(r, f);
	}
	/* it was walked: now it is empty, or has new things in it */
	n = unlink_one(r->parent_fd, path_base(r->path), true);
	if (n > 0)
		n = one_more_pass(r);
	else if (!n)
		return 0;
	return n ? step_fault(f, n, span_str(r->path)) : root_open(r, f);
}

bool removal_step(struct removal *r, struct fault *f)
{
	int n;

	if (!r->walk)
		return root_step(r, f) > 0;
	n = walk_step(r, f);
	if (!n)
		r->walk = walk_free(r->walk);
	return n >= 0;
}
