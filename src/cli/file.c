/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - whole files in and out, and the one reader of credential values */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/secret.h"
#include "src/cli/proc.h"

static int source_open(const char *path)
{
	int fd;

	if (!strcmp(path, "-"))
		return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int file_read(const char *path, struct buf *buf)
{
	int fd CLEANUP_FD = source_open(path);
	ssize_t n;
	char *to;
	int r;

	if (fd < 0)
		return fd;
	for (;;) {
		size_t room = MIN((size_t)65536, buf->max - buf_len(buf));
		char over;

		if (!room) /* full: fine only at the end of the file */
			return read(fd, &over, 1) ? -EFBIG : 0;
		r = buf_reserve(buf, room, &to);
		if (r)
			return r;
		n = read(fd, to, room);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		buf_commit(buf, (size_t)n);
	}
}

int file_write(const char *path, mode_t mode, struct span bytes)
{
	int fd CLEANUP_FD =
		open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	ssize_t n;

	if (fd < 0 || fchmod(fd, mode))
		return -errno;
	while (bytes.len) {
		n = write(fd, bytes.ptr, bytes.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		bytes = span_from(bytes, (size_t)n);
	}
	return 0;
}

int folder_make(const char *path, mode_t mode)
{
	char part[PATH_MAX];
	char *slash;

	if (!span_copy(span_str(path), part, sizeof(part)))
		return -ENAMETOOLONG;
	for (slash = strchr(part + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0755) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	if (mkdir(part, mode) && errno != EEXIST)
		return -errno;
	return 0;
}

static size_t value_trim(struct span v)
{
	if (v.len && v.ptr[v.len - 1] == '\n')
		v.len--;
	if (v.len && v.ptr[v.len - 1] == '\r')
		v.len--;
	return v.len;
}

static int value_fill(int fd, struct secret *s)
{
	size_t used = 0, size = secret_len(s);
	char *at = secret_fill(s);
	ssize_t n;

	for (;;) {
		n = read(fd, at + used, size - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		used += (size_t)n;
		if (used == size)
			return -EFBIG;
	}
	secret_truncate(s, value_trim(span_of(at, used)));
	return secret_len(s) ? 0 : -ENODATA;
}

int value_read(const char *from, struct secret **ret)
{
	const char *path = from[0] == '@' ? from + 1 : from;
	int fd CLEANUP_FD = -1;
	struct secret *s;
	int r;

	if (from[0] != '@' && strcmp(from, "-")) {
		fputs("sallyport: a value comes from @FILE or from stdin (-), "
		      "never from the command line\n",
		      stderr);
		return -EINVAL;
	}
	fd = source_open(path);
	r = fd < 0 ? fd : secret_new(SECRET_MAX_BYTES, &s);
	if (r >= 0) {
		r = value_fill(fd, s);
		if (r)
			s = secret_free(s);
	}
	if (r < 0) {
		fprintf(stderr,
			"sallyport: %s could not be read as a value: "
			"%s\n",
			path, r == -ENODATA ? "it is empty" : err_text(r));
		return r;
	}
	*ret = s;
	return 0;
}
