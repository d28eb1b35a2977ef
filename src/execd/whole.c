/* SPDX-License-Identifier: Apache-2.0 */
/* whole.c - whole small files: read into memory, written in one step */

#include "src/execd/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/buf.h"
#include "src/base/fd.h"

enum { PIECE = 16 * 1024 };

static ssize_t read_again(int fd, void *dst, size_t len)
{
	ssize_t got;

	do
		got = read(fd, dst, len);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

int whole_read(const char *path, struct buf *to)
{
	int fd CLEANUP_FD = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat is;
	ssize_t got;
	char *at;
	int r;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &is))
		return -errno;
	if (!S_ISREG(is.st_mode))
		return -EINVAL;
	for (;;) {
		r = buf_reserve(to, PIECE, &at);
		if (r)
			return -EFBIG;
		got = read_again(fd, at, PIECE);
		if (got <= 0)
			return (int)got;
		buf_commit(to, (size_t)got);
	}
}

ssize_t whole_peek(const char *path, char *dst, size_t size)
{
	int fd CLEANUP_FD = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t len = 0;
	ssize_t got;

	dst[0] = '\0';
	if (fd < 0)
		return -errno;
	while (len + 1 < size) {
		got = read_again(fd, dst + len, size - 1 - len);
		if (got < 0)
			return got;
		if (!got)
			break;
		len += (size_t)got;
	}
	dst[len] = '\0';
	return (ssize_t)len;
}

static int write_all(int fd, struct span bytes)
{
	ssize_t put;

	while (bytes.len) {
		put = write(fd, bytes.ptr, bytes.len);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return -errno;
		bytes = span_from(bytes, (size_t)put);
	}
	return 0;
}

int whole_write(const char *path, mode_t mode, struct span bytes)
{
	char beside[PATH_MAX];
	int fd CLEANUP_FD = -1;
	int len, r;

	len = snprintf(beside, sizeof(beside), "%s.new-%ld", path,
		       (long)getpid());
	if (len < 0 || (size_t)len >= sizeof(beside))
		return -ENAMETOOLONG;
	(void)unlink(beside);
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = write_all(fd, bytes);
	if (!r && fchmod(fd, mode))
		r = -errno;
	if (!r && rename(beside, path))
		r = -errno;
	if (r)
		(void)unlink(beside);
	return r;
}
