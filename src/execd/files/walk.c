/* SPDX-License-Identifier: Apache-2.0 */
/* walk.c - a tree by descriptors, with a stack of our own
 *
 * How it works: a level is a directory that was entered and not left. It holds
 * names (each with a byte for its type in front) and how far they were told;
 * the deepest level is always open. Entering a directory below the first
 * WALK_OPEN_MAX closes the one above; leaving opens it again by "..", and
 * device and inode say whether it is that one. A directory that was moved
 * while the walk was in it therefore ends the walk (-ESTALE) rather than
 * leading it elsewhere.
 */

#include "src/execd/files/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/execd/files/path.h"

enum { READ_BYTES = 32 * 1024, PATH_MAX_BYTES = 16 * 1024 * 1024 };

struct level {
	int fd;
	dev_t device;
	ino_t inode;
	char *names; /* type byte, name, NUL; again */
	size_t names_len, names_size;
	uint32_t *order; /* WALK_SORTED: where each begins, sorted */
	size_t count, next;
	size_t path_len; /* of the path up to this directory */
	bool read_all;	 /* the kernel has no more of it */
};

struct walk {
	enum walk_order order;
	unsigned depth_max;
	struct level *levels;
	size_t count, size;
	size_t bytes; /* of names, of all levels */
	char *path;
	size_t path_len, path_size;
	bool entered; /* the entry just told is a directory to go into */
	char *read;   /* READ_BYTES */
};

/* -- names of one directory ----------------------------------------------- */

static void level_drop_names(struct walk *w, struct level *l)
{
	w->bytes -= l->names_size + l->count * sizeof(*l->order);
	free(l->names);
	free(l->order);
	l->names = NULL;
	l->order = NULL;
	l->names_len = l->names_size = l->count = l->next = 0;
}

static int name_add(struct walk *w, struct level *l, unsigned char type,
		    const char *name)
{
	size_t len = strlen(name) + 1, size = MAX(l->names_size, 256u);

	while (l->names_len + 1 + len > size)
		size *= 2;
	if (size != l->names_size) {
		if (w->bytes + size - l->names_size > WALK_BYTES_MAX)
			return -ENOMEM;
		l->names = must_realloc(l->names, size);
		w->bytes += size - l->names_size;
		l->names_size = size;
	}
	l->names[l->names_len++] = (char)type;
	memcpy(l->names + l->names_len, name, len);
	l->names_len += len;
	return 0;
}

static bool is_dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* One more read of the directory. 1: there may be more; 0: that was all. */
static int level_read(struct walk *w, struct level *l)
{
	struct dirent64 *entry;
	ssize_t n, at;
	int r;

	n = getdents64(l->fd, w->read, READ_BYTES);
	if (n < 0)
		/* removed while we were in it: it is empty */
		return errno == ENOENT ? 0 : -errno;
	for (at = 0; at < n; at += entry->d_reclen) {
		entry = (struct dirent64 *)(void *)(w->read + at);
		if (is_dots(entry->d_name))
			continue;
		r = name_add(w, l, entry->d_type, entry->d_name);
		if (r)
			return r;
	}
	return n > 0;
}

static int names_compare(const void *a, const void *b, void *names)
{
	return strcmp((char *)names + *(const uint32_t *)a + 1,
		      (char *)names + *(const uint32_t *)b + 1);
}

static int level_sort(struct walk *w, struct level *l)
{
	size_t at, count = 0;

	for (at = 0; at < l->names_len; at += strlen(l->names + at + 1) + 2)
		count++;
	if (w->bytes + count * sizeof(*l->order) > WALK_BYTES_MAX)
		return -ENOMEM;
	l->order = must_alloc(MAX(count, 1u) * sizeof(*l->order));
	w->bytes += count * sizeof(*l->order);
	for (at = 0; at < l->names_len; at += strlen(l->names + at + 1) + 2)
		l->order[l->count++] = (uint32_t)at;
	qsort_r(l->order, l->count, sizeof(*l->order), names_compare, l->names);
	return 0;
}

/* Of a directory below the root, for readers: it may not be read, or is that of
 * a process that has ended. */
static bool is_left_out(const struct walk *w, int error)
{
	return w->order == WALK_SORTED && (error == EACCES || error == EPERM ||
					   error == ESRCH || error == EINVAL);
}

/* /proc has directories that may be opened and not read. */
static int level_load_sorted(struct walk *w, struct level *l)
{
	int r;

	do
		r = level_read(w, l);
	while (r > 0);
	if (w->count > 1 && is_left_out(w, -r))
		r = 0;
	l->read_all = true;
	return r ? r : level_sort(w, l);
}

/* The next batch; none when all were told and nothing new is there. */
static int level_load_batch(struct walk *w, struct level *l)
{
	int r;

	level_drop_names(w, l);
	do
		r = level_read(w, l);
	while (r > 0 && !l->names_len);
	l->read_all = !r;
	return MIN(r, 0);
}

/* The next name of the level (behind its type byte), or NULL. */
static int level_next(struct walk *w, struct level *l, const char **ret)
{
	int r;

	if (w->order == WALK_SORTED) {
		r = l->read_all ? 0 : level_load_sorted(w, l);
		*ret = !r && l->next < l->count
			       ? l->names + l->order[l->next++] + 1
			       : NULL;
		return r;
	}
	r = l->next == l->names_len && !l->read_all ? level_load_batch(w, l)
						    : 0;
	*ret = NULL;
	if (r || l->next == l->names_len)
		return r;
	*ret = l->names + l->next + 1;
	l->next += strlen(*ret) + 2;
	return 0;
}

/* -- the path ------------------------------------------------------------- */

/* Cuts the path to `len` and puts the name behind it. */
static int path_set(struct walk *w, size_t len, const char *name)
{
	size_t name_len = strlen(name);
	bool slash = !len || w->path[len - 1] != '/';
	size_t need = len + slash + name_len + 1, size = w->path_size;

	if (need > PATH_MAX_BYTES)
		return -ENAMETOOLONG;
	while (size < need)
		size *= 2;
	if (size != w->path_size) {
		w->path = must_realloc(w->path, size);
		w->path_size = size;
	}
	if (slash)
		w->path[len++] = '/';
	memcpy(w->path + len, name, name_len + 1);
	w->path_len = len + name_len;
	return 0;
}

struct span walk_path(const struct walk *w)
{
	return span_of(w->path, w->path_len);
}

/* -- levels --------------------------------------------------------------- */

static struct level *deepest(struct walk *w)
{
	return &w->levels[w->count - 1];
}

/* Takes fd. The path is that of the directory. */
static int level_enter(struct walk *w, int fd)
{
	struct level *l;
	struct stat st;
	int r = 0;

	if (w->bytes + sizeof(*l) > WALK_BYTES_MAX)
		r = -ENOMEM;
	else if (fstat(fd, &st))
		r = -errno;
	if (r) {
		(void)fd_close(fd);
		return r;
	}
	w->bytes += sizeof(*l);
	if (w->count == w->size) {
		w->size = MAX(w->size * 2, 16u);
		w->levels =
			must_realloc(w->levels, w->size * sizeof(*w->levels));
	}
	if (w->count > WALK_OPEN_MAX)
		deepest(w)->fd = fd_close(deepest(w)->fd);
	l = &w->levels[w->count++];
	*l = (struct level){ .fd = fd,
			     .device = st.st_dev,
			     .inode = st.st_ino,
			     .path_len = w->path_len };
	return 0;
}

static void level_drop(struct walk *w)
{
	struct level *l = deepest(w);

	level_drop_names(w, l);
	l->fd = fd_close(l->fd);
	w->bytes -= sizeof(*l);
	w->count--;
}

/* Forgets the deepest level; the one above is open again. */
static int level_leave(struct walk *w)
{
	struct level *l = deepest(w), *up = w->count > 1 ? l - 1 : NULL;
	struct stat st;
	int fd = -1;

	if (up && up->fd < 0)
		fd = openat(l->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	level_drop(w);
	if (!up || up->fd >= 0)
		return 0;
	up->fd = fd;
	if (fd < 0 || fstat(fd, &st) || st.st_dev != up->device ||
	    st.st_ino != up->inode)
		return -ESTALE;
	return 0;
}

struct walk *walk_new(int fd, struct span path, enum walk_order order,
		      unsigned depth)
{
	struct walk *w = must_alloc(sizeof(*w));

	w->order = order;
	w->depth_max = depth ? depth : UINT_MAX;
	w->read = must_realloc(NULL, READ_BYTES);
	w->path_size = MAX(path.len + 1, 256u);
	w->path = must_alloc(w->path_size);
	memcpy(w->path, path.ptr, path.len);
	w->path_len = path.len;
	if (level_enter(w, fd))
		w->count = 0; /* there is nothing in it */
	return w;
}

struct walk *walk_free(struct walk *w)
{
	if (!w)
		return NULL;
	while (w->count)
		level_drop(w);
	free(w->levels);
	free(w->path);
	free(w->read);
	free(w);
	return NULL;
}

/* -- the walk ------------------------------------------------------------- */

/* Of a file system that does not say what its entries are. */
static bool is_directory(int dir_fd, const char *name)
{
	unsigned char type = (unsigned char)name[-1];
	struct stat st;

	if (type != DT_UNKNOWN)
		return type == DT_DIR;
	return !fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) &&
	       S_ISDIR(st.st_mode);
}

/* Goes into the directory that was told last. What is none any more, or may
 * not be read by a reader, is as good as empty; 1: it was entered. */
static int descend(struct walk *w)
{
	const char *name = w->path + deepest(w)->path_len;
	int fd;
	int r;

	name += *name == '/';
	fd = openat(deepest(w)->fd, name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK |
			    O_CLOEXEC);
	if (fd >= 0) {
		r = level_enter(w, fd);
		return r ? r : 1;
	}
	if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP ||
	    is_left_out(w, errno))
		return 0;
	return -errno;
}

/* May what was told last be gone into? A path that no client could name is no
 * use to readers. */
static bool may_descend(const struct walk *w)
{
	return w->count < w->depth_max &&
	       (w->order == WALK_REMOVING || w->path_len < PATH_BYTES - 1);
}

static void tell(struct walk *w, struct walk_entry *ret)
{
	const struct level *l = deepest(w);
	const char *name = w->path + l->path_len;

	*ret = (struct walk_entry){
		.dir_fd = l->fd,
		.name = name + (*name == '/'),
		.path = walk_path(w),
		.depth = (unsigned)w->count,
	};
}

/* The deepest level has no more names. 1: *ret tells that it is left; 0: go
 * on. */
static int finish_level(struct walk *w, struct walk_entry *ret)
{
	int r;

	/* as a path, cut to the directory's own */
	w->path_len = deepest(w)->path_len;
	w->path[w->path_len] = '\0';
	r = level_leave(w);
	if (r || !w->count || w->order == WALK_SORTED)
		return r;
	tell(w, ret);
	ret->is_directory = ret->leaving = true;
	return 1;
}

int walk_next(struct walk *w, struct walk_entry *ret)
{
	const char *name;
	int r;

	if (w->entered) {
		w->entered = false;
		r = descend(w);
		if (r < 0)
			return r;
		if (!r && w->order == WALK_REMOVING) {
			tell(w, ret);
			ret->is_directory = ret->leaving = true;
			return 1;
		}
	}
	while (w->count) {
		r = level_next(w, deepest(w), &name);
		if (!r && name)
			r = path_set(w, deepest(w)->path_len, name);
		if (r)
			return r;
		if (name) {
			tell(w, ret);
			ret->is_directory = is_directory(ret->dir_fd, name);
			w->entered = ret->is_directory && may_descend(w);
			return 1;
		}
		r = finish_level(w, ret);
		if (r)
			return r;
	}
	return 0;
}

void walk_again(struct walk *w)
{
	w->entered = true;
}
