/* SPDX-License-Identifier: Apache-2.0 */
/* save.c - new content beside the old, then in its place */

#include "src/execd/files/save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/execd/files/fault.h"
#include "src/execd/files/identity.h"
#include "src/execd/files/make.h"
#include "src/execd/files/path.h"

enum { COPY_BYTES = 256 * 1024, COPY_PIECES = 16, PROC_FD_SIZE = 40 };

void save_init(struct save *s)
{
	*s = (struct save){ .fd = -1 };
}

/* The loop may have to do it, after a client has left. The folder is that of
 * another user, who may have put anything in its place. */
static void temp_remove(const struct save *s)
{
	bool enters = s->as && identity_current() != s->as;

	if (enters && identity_enter(s->as))
		return;
	(void)unlink(s->temp);
	if (enters)
		identity_leave();
}

void save_fini(struct save *s)
{
	if (s->temp)
		temp_remove(s);
	free(s->temp);
	free(s->target);
	(void)fd_close(s->fd);
	save_init(s);
}

/* Whatever the reason, who asked to write did not ask for what is missing: no
 * 404. Always negative. */
static int refuse(struct save *s, int r, struct fault *f)
{
	return fault_set(f, fault_status(r), ANSWER_RUNTIME_ERROR,
			 "could not write %.600s: %s", s->target,
			 fault_reason(r));
}

/* -- files to write into -------------------------------------------------- */

/* A name in the directory of `path` that nobody has. */
static void temp_name(const char *path, char dst[PATH_BYTES])
{
	size_t len = (size_t)(path_base(path) - path);
	uint64_t word;

	must(getrandom(&word, sizeof(word), 0) == sizeof(word));
	(void)snprintf(dst, PATH_BYTES, "%.*s.sallyport-%016llx", (int)len,
		       path, (unsigned long long)word);
}

/* A file without a name in the directory of `path`. The fd, or -errno. */
static int nameless_open(const char *path, mode_t mode)
{
	char parent[PATH_BYTES];
	int fd;

	path_parent(path, parent);
	fd = open(parent, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	return fd < 0 ? -errno : fd;
}

static int named_open(struct save *s, mode_t mode)
{
	char name[PATH_BYTES];
	int fd;

	temp_name(s->target, name);
	fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		  mode);
	if (fd < 0)
		return -errno;
	s->temp = must_strdup(name);
	return fd;
}

/* A file beside the target: without a name if possible (it is given one through
 * /proc). What it will be allowed is never less than what it is now: only a new
 * file without a mode of its own begins with that of the umask. */
static int beside_open(struct save *s)
{
	mode_t mode = s->existed || s->permission.has_mode ? 0600 : 0777;
	int fd = -EOPNOTSUPP;

	if (!access("/proc/self/fd", X_OK))
		fd = nameless_open(s->target, mode);
	return fd >= 0 ? fd : named_open(s, mode);
}

/* A file anywhere else. */
static int spool_open(void)
{
	const char *dir = getenv("TMPDIR");
	char path[PATH_BYTES];
	int fd;

	if (!dir || dir[0] != '/')
		dir = "/tmp";
	if ((size_t)snprintf(path, sizeof(path), "%s/x", dir) >= sizeof(path))
		return -ENAMETOOLONG;
	fd = nameless_open(path, 0600);
	if (fd >= 0)
		return fd;
	temp_name(path, path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		  0600);
	if (fd < 0)
		return -errno;
	(void)unlink(path);
	return fd;
}

/* -- beginning ------------------------------------------------------------ */

static int direct_open(struct save *s, struct fault *f)
{
	s->fd = open(s->target, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (s->fd >= 0) {
		s->kind = SAVE_DIRECT;
		return 0;
	}
	if (errno != ENXIO)
		return refuse(s, errno, f);
	return fault_set(f, 500, ANSWER_RUNTIME_ERROR,
			 "could not write %.600s: nobody reads at its other "
			 "end",
			 s->target);
}

/* Would a new file differ in what we cannot give it? */
static bool must_copy(const struct save *s)
{
	uid_t me = geteuid();

	return s->existed &&
	       (s->old.st_nlink > 1 || (me && s->old.st_uid != me));
}

static int content_open(struct save *s, struct fault *f)
{
	/* a file that may not be written is not replaced either */
	if (s->existed && faccessat(AT_FDCWD, s->target, W_OK, AT_EACCESS))
		return refuse(s, errno, f);
	if (!s->existed && make_parents(s->target, &s->permission, f))
		return -EINVAL;

	s->kind = must_copy(s) ? SAVE_COPY : SAVE_RENAME;
	s->fd = beside_open(s);
	if (s->existed &&
	    (s->fd == -EACCES || s->fd == -EPERM || s->fd == -EROFS)) {
		s->kind = SAVE_COPY;
		s->fd = spool_open();
	}
	if (s->fd >= 0)
		return 0;
	(void)refuse(s, s->fd, f);
	s->fd = -1;
	return -EINVAL;
}

int save_open(struct save *s, const char *path, const struct permission *p,
	      struct fault *f)
{
	char target[PATH_BYTES];
	int r;

	(void)span_copy(span_str(path), target, sizeof(target));
	r = path_follow(target);
	s->target = must_strdup(target);
	s->permission = *p;
	s->as = identity_current();
	if (r)
		return refuse(s, r, f);
	s->existed = !stat(target, &s->old);
	if (!s->existed && errno != ENOENT)
		return refuse(s, errno, f);
	if (s->existed && s->exclusive)
		return refuse(s, EEXIST, f);
	if (!s->existed || S_ISREG(s->old.st_mode))
		return content_open(s, f);
	if (S_ISCHR(s->old.st_mode) || S_ISBLK(s->old.st_mode) ||
	    S_ISFIFO(s->old.st_mode))
		return direct_open(s, f);
	return fault_set(f, 500, ANSWER_RUNTIME_ERROR,
			 "found a %s, expected a file: %.600s",
			 S_ISDIR(s->old.st_mode) ? "directory" : "socket",
			 target);
}

/* -- writing -------------------------------------------------------------- */

int save_write(struct save *s, struct span *in, struct fault *f)
{
	ssize_t n;

	while (in->len) {
		n = write(s->fd, in->ptr, in->len);
		if (n > 0)
			*in = span_from(*in, (size_t)n);
		else if (n < 0 && errno == EAGAIN && s->kind == SAVE_DIRECT)
			return SAVE_WAIT;
		else if (n == 0)
			return refuse(s, ENOSPC, f);
		else if (errno != EINTR)
			return refuse(s, errno, f);
	}
	return 0;
}

/* A file without a name gets one, so that it can be closed and renamed. */
static int give_name(struct save *s)
{
	char proc[PROC_FD_SIZE], name[PATH_BYTES];

	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", s->fd);
	temp_name(s->target, name);
	if (linkat(AT_FDCWD, proc, AT_FDCWD, name, AT_SYMLINK_FOLLOW))
		return -errno;
	s->temp = must_strdup(name);
	return 0;
}

/* Mode and owner: the old file's, then what was asked for. */
static int dress(struct save *s)
{
	const struct permission was = { .has_mode = true,
					.mode = s->old.st_mode & 07777,
					.uid = s->old.st_uid,
					.gid = s->old.st_gid };
	int r = 0;

	if (s->existed)
		r = permission_set_fd(&was, s->fd);
	if (r == -EPERM) {
		/* of a group that we may not give: into the old file then */
		s->kind = SAVE_COPY;
		return 0;
	}
	return r ? r : permission_set_fd(&s->permission, s->fd);
}

int save_close(struct save *s, struct fault *f)
{
	int r = 0;

	if (s->kind == SAVE_RENAME)
		r = dress(s);
	else if (s->kind == SAVE_DIRECT)
		s->fd = fd_close(s->fd);
	return r ? refuse(s, r, f) : 0;
}

int save_shelve(struct save *s, struct fault *f)
{
	int r = 0;

	if (s->kind == SAVE_RENAME && !s->temp)
		r = give_name(s);
	if (!r && s->temp)
		s->fd = fd_close(s->fd);
	return r ? refuse(s, r, f) : 0;
}

/* -- into place ----------------------------------------------------------- */

/* Reads what was written, and writes the target. The first time: room is
 * claimed, so that a full disk is met before the old content is touched. */
static int copy_open(struct save *s, int *ret_to, uint64_t *ret_size)
{
	struct stat st;
	int to;

	if (s->fd < 0) {
		s->fd = open(s->temp, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (s->fd < 0)
			return -errno;
	}
	if (fstat(s->fd, &st))
		return -errno;
	to = open(s->target, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (to < 0)
		return -errno;
	*ret_to = to;
	*ret_size = (uint64_t)st.st_size;
	if (!s->copied && st.st_size &&
	    fallocate(to, FALLOC_FL_KEEP_SIZE, 0, st.st_size) &&
	    (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
		return -errno;
	return 0;
}

/* COPY_PIECES pieces. */
static int copy_some(struct save *s, int to)
{
	char *piece CLEANUP_FREE = must_realloc(NULL, COPY_BYTES);
	ssize_t n, done, wrote;
	unsigned i;

	for (i = 0; i < COPY_PIECES; i++) {
		n = pread(s->fd, piece, COPY_BYTES, (off_t)s->copied);
		if (n <= 0)
			return n ? -errno : 0;
		for (done = 0; done < n; done += wrote) {
			wrote = pwrite(to, piece + done, (size_t)(n - done),
				       (off_t)s->copied + done);
			if (wrote <= 0)
				return wrote ? -errno : -ENOSPC;
		}
		s->copied += (uint64_t)n;
	}
	return 0;
}

static int copy_step(struct save *s)
{
	int to CLEANUP_FD = -1;
	uint64_t size = 0;
	int r;

	r = copy_open(s, &to, &size);
	if (!r)
		r = copy_some(s, to);
	if (r)
		return r;
	if (s->copied < size)
		return SAVE_MORE;
	if (ftruncate(to, (off_t)size))
		return -errno;
	return permission_set_fd(&s->permission, to);
}

static int rename_over(struct save *s)
{
	int r;

	r = s->temp ? 0 : give_name(s);
	if (r)
		return r;
	r = s->exclusive ? renameat2(AT_FDCWD, s->temp, AT_FDCWD, s->target,
				     RENAME_NOREPLACE)
			 : rename(s->temp, s->target);
	if (r)
		return -errno;
	free(s->temp);
	s->temp = NULL;
	return 0;
}

int save_commit(struct save *s, struct fault *f)
{
	int r = 0;

	if (s->kind == SAVE_RENAME) {
		r = rename_over(s);
		/* something is mounted on it, or its directory lets nobody
		 * take names away */
		if (s->existed &&
		    (r == -EBUSY || r == -EPERM || r == -EACCES)) {
			s->kind = SAVE_COPY;
			r = 0;
		}
	}
	if (!r && s->kind == SAVE_COPY)
		r = copy_step(s);
	return r < 0 ? refuse(s, r, f) : r;
}
