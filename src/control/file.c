/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - small files read and written at once; folders watched by inotify */

#include "src/control/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/io/loop.h"

enum { FILE_PIECE = 64 * 1024, WATCH_RETRY_MS = 3000 };

int file_read(const char *path, struct buf *out)
{
	int fd CLEANUP_FD = -1;
	char *room;
	ssize_t n;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	for (;;) {
		size_t left = out->max - buf_len(out);

		if (buf_reserve(out, MIN((size_t)FILE_PIECE, left), &room))
			return -EFBIG;
		n = read(fd, room, MIN((size_t)FILE_PIECE, left));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return left ? 0 : -EFBIG;
		buf_commit(out, (size_t)n);
	}
}

static int write_all(int fd, struct span bytes)
{
	ssize_t n;

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

int file_write(const char *path, mode_t mode, struct span bytes)
{
	char fresh[4096];
	int fd CLEANUP_FD = -1;
	int r;

	if (snprintf(fresh, sizeof(fresh), "%s.new", path) >=
	    (int)sizeof(fresh))
		return err_origin(-ENAMETOOLONG);
	(void)unlink(fresh);
	fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return err_origin(-errno);
	r = write_all(fd, bytes);
	if (!r && (fchmod(fd, mode) || rename(fresh, path)))
		r = -errno;
	if (r)
		(void)unlink(fresh);
	return r ? err_origin(r) : 0;
}

/* -- watching ------------------------------------------------------------- */

struct file_watch {
	struct watch watch;
	struct timer quiet; /* a burst of events goes on */
	struct timer retry; /* the folder is not watched: try again */
	char *folder;
	int fd;
	int wd; /* -1 = the folder is not watched */
	unsigned quiet_ms;
	void (*changed)(void *ctx);
	void *ctx;
};

static void file_watch_attach(struct file_watch *w)
{
	w->wd = inotify_add_watch(w->fd, w->folder,
				  IN_MODIFY | IN_CLOSE_WRITE | IN_CREATE |
					  IN_DELETE | IN_MOVED_FROM |
					  IN_MOVED_TO | IN_DELETE_SELF |
					  IN_MOVE_SELF | IN_ONLYDIR);
	if (w->wd < 0)
		timer_start(&w->retry, WATCH_RETRY_MS);
}

static void on_retry(struct timer *t)
{
	struct file_watch *w = container_of(t, struct file_watch, retry);

	file_watch_attach(w);
	if (w->wd >= 0)
		timer_start(&w->quiet, w->quiet_ms);
}

static void on_quiet(struct timer *t)
{
	struct file_watch *w = container_of(t, struct file_watch, quiet);

	w->changed(w->ctx);
}

static void file_watch_lost(struct file_watch *w)
{
	if (w->wd >= 0)
		(void)inotify_rm_watch(w->fd, w->wd);
	w->wd = -1;
	timer_start(&w->retry, WATCH_RETRY_MS);
}

static void on_inotify(struct watch *watch, unsigned ready)
{
	struct file_watch *w = container_of(watch, struct file_watch, watch);
	char events[4096] __attribute__((aligned(8)));
	const struct inotify_event *event;
	ssize_t n, at;

	(void)ready;
	while ((n = read(w->fd, events, sizeof(events))) > 0) {
		for (at = 0; at < n;
		     at += (ssize_t)(sizeof(*event) + event->len)) {
			event = (const void *)(events + at);
			if (event->wd == w->wd &&
			    event->mask & (IN_DELETE_SELF | IN_MOVE_SELF))
				file_watch_lost(w);
		}
		timer_start(&w->quiet, w->quiet_ms);
	}
	watch_spent(watch, WATCH_READ);
}

int file_watch_new(struct loop *loop, const char *folder, unsigned quiet_ms,
		   void (*changed)(void *ctx), void *ctx,
		   struct file_watch **ret)
{
	struct file_watch *w = must_alloc(sizeof(*w));
	int r;

	w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w->fd < 0) {
		r = -errno;
		free(w);
		return err_origin(r);
	}
	r = watch_init(&w->watch, loop, w->fd, on_inotify);
	if (r) {
		(void)fd_close(w->fd);
		free(w);
		return err_trace(r);
	}
	w->folder = must_strdup(folder);
	w->quiet_ms = quiet_ms;
	w->changed = changed;
	w->ctx = ctx;
	timer_init(&w->quiet, loop, on_quiet);
	timer_init(&w->retry, loop, on_retry);
	file_watch_attach(w);
	watch_want(&w->watch, WATCH_READ);
	*ret = w;
	return 0;
}

struct file_watch *file_watch_free(struct file_watch *w)
{
	if (!w)
		return NULL;
	timer_stop(&w->quiet);
	timer_stop(&w->retry);
	watch_fini(&w->watch);
	(void)fd_close(w->fd);
	free(w->folder);
	free(w);
	return NULL;
}
