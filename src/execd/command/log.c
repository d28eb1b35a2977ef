/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - the file a background command writes to, and how it is read
 *
 * How it works: a short log is one reply. A long one is sent piece by piece
 * with its length said before, through a descriptor of its own, so the command
 * may be forgotten meanwhile. Who cuts the file short cuts that reply short,
 * and the client sees it.
 */

#include "src/execd/command/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/execd/answer.h"
#include "src/execd/lines.h"
#include "src/httpd/httpd.h"

enum { PIECE_BYTES = 64 * 1024 };

static const char type_text[] = "text/plain; charset=utf-8";
static char scratch[PIECE_BYTES];

/* -- making it ------------------------------------------------------------ */

/* File systems that cannot make a nameless file: a name nobody can guess, gone
 * before anybody can use it. */
static int open_named(const char *folder)
{
	char path[4096];
	uint64_t number;
	int fd, n;

	must(getrandom(&number, sizeof(number), 0) == sizeof(number));
	n = snprintf(path, sizeof(path), "%s/.execd-%016llx", folder,
		     (unsigned long long)number);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path,
		  O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		  0600);
	if (fd < 0)
		return -errno;
	(void)unlink(path);
	return fd;
}

static int open_in(const char *folder)
{
	int fd = open(folder, O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	if (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)
		return open_named(folder);
	return -errno;
}

int command_log_open(struct diag *d)
{
	const char *folders[] = { getenv("TMPDIR"), "/tmp", "/var/tmp" };
	char tried[400] = "";
	size_t i, len = 0;
	int r = -ENOENT;

	for (i = 0; i < ARRAY_LEN(folders); i++) {
		if (!folders[i] || folders[i][0] != '/')
			continue;
		r = open_in(folders[i]);
		if (r >= 0)
			return r;
		if (len < sizeof(tried))
			len += (size_t)snprintf(tried + len,
						sizeof(tried) - len,
						"%s%.100s: %s", len ? "; " : "",
						folders[i], err_text(r));
	}
	(void)diag_set(d, 0, 0, "the log could not be made in %s", tried);
	return r;
}

uint64_t command_log_bytes(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : (uint64_t)st.st_size;
}

/* -- sending it ----------------------------------------------------------- */

struct sending {
	int fd;
	uint64_t at, end;
};

static void sending_free(struct sending *s)
{
	(void)fd_close(s->fd);
	free(s);
}

static void on_gone(void *user, struct httpd_request *r)
{
	sending_free(user);
	httpd_stream_end(r);
}

/* Sends what the reply takes; the rest when it has room. */
static void send_on(void *user, struct httpd_request *r)
{
	struct sending *s = user;
	ssize_t n;
	int e = 0;

	while (s->at < s->end && !e) {
		n = pread(s->fd, scratch,
			  (size_t)MIN(s->end - s->at, sizeof(scratch)),
			  (off_t)s->at);
		if (n <= 0) {
			sending_free(s);
			httpd_stream_abort(r);
			return;
		}
		e = httpd_stream_write(r, span_of(scratch, (size_t)n));
		if (!e)
			s->at += (uint64_t)n;
	}
	if (e == -EAGAIN || e == -EPIPE)
		return; /* on_gone() follows the latter */
	sending_free(s);
	httpd_stream_end(r);
}

static void send_long(struct httpd_request *r, int fd, uint64_t from,
		      uint64_t end)
{
	struct sending *s = must_alloc(sizeof(*s));

	s->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (s->fd < 0) {
		free(s);
		answer_error(r, 500, ANSWER_RUNTIME_ERROR,
			     "the log could not be opened: %s",
			     err_text(errno));
		return;
	}
	s->at = from;
	s->end = end;
	httpd_set_user(r, s);
	httpd_stream_start_sized(r, 200, type_text, end - from, on_gone);
	httpd_stream_on_room(r, send_on);
}

/* Where to end so that no character is torn. */
static uint64_t whole_end(int fd, uint64_t from, uint64_t end)
{
	char tail[4];
	size_t len = (size_t)MIN(end - from, sizeof(tail));

	if (pread(fd, tail, len, (off_t)(end - len)) != (ssize_t)len)
		return end;
	return end - len + lines_whole(span_of(tail, len));
}

void command_log_send(struct httpd_request *r, const char *header, int fd,
		      uint64_t cursor, bool growing)
{
	char number[SPAN_DECIMAL_SIZE];
	uint64_t end = command_log_bytes(fd);
	ssize_t n;

	if (cursor > end)
		cursor = end;
	if (growing)
		end = whole_end(fd, cursor, end);
	httpd_set_header(r, header, span_decimal(end, number));
	if (end - cursor > sizeof(scratch)) {
		send_long(r, fd, cursor, end);
		return;
	}
	n = pread(fd, scratch, (size_t)(end - cursor), (off_t)cursor);
	if (n < 0)
		answer_error(r, 500, ANSWER_RUNTIME_ERROR,
			     "the log could not be read: %s", err_text(errno));
	else
		httpd_reply(r, 200, type_text, span_of(scratch, (size_t)n));
}
