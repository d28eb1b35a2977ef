/* SPDX-License-Identifier: Apache-2.0 */
/* audit_tail.c - following the audit file for any number of readers
 *
 * How it works: each reader has its own descriptor and position. The place to
 * begin is found by reading backwards in blocks until enough line ends were
 * seen. Then lines are pumped forward until the end of the file or until the
 * client takes no more; a timer goes on. At the end of the file the path is
 * compared with what is open: another inode means rotation.
 *
 * Followers look at the file fifty times a second, and nobody looks while there
 * is no follower. The kernel could tell (inotify), but would do so for every
 * write of the gateway: a wake-up of this process for each of its turns.
 */

#include "src/control/audit_tail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/list.h"
#include "src/base/log.h"
#include "src/httpd/httpd.h"
#include "src/io/loop.h"
#include "src/text/json.h"

enum {
	BLOCK = 64 * 1024,
	BACK_MAX = 64 * 1024 * 1024, /* never look back further */
	LOOK_MS = 20,		     /* for what was appended */
	FULL_MS = 100,		     /* the client is slow: try again */
	ALIVE_MS = 15 * 1000,	  /* a comment, so that a dead client shows */
	TURN_BYTES = 1024 * 1024, /* read per turn: others want to run too */
};

struct audit_tails {
	struct loop *loop;
	char *path;
	struct timer look; /* runs while somebody follows at the end */
	struct list tails;
	unsigned count;
};

struct tail {
	struct audit_tails *all;
	struct list link;
	struct httpd_request *request;
	struct timer timer;
	char *sandbox; /* NULL = all */
	bool follow;
	bool skipping; /* inside a line that is too long */
	bool quiet;    /* the last turn came to the end of the file */
	unsigned lines;
	int fd;		 /* -1: the file is not there yet */
	struct buf part; /* bytes that were read and not yet sent */
};

/* -- where to begin ------------------------------------------------------- */

/* Position after the newline that is the n-th from the end, or the farthest
 * that may be looked at. */
static off_t line_back(int fd, off_t end, uint64_t n)
{
	static char block[BLOCK];
	off_t at = end, from;
	ssize_t got, i;

	while (at > 0 && end - at < BACK_MAX) {
		from = at > BLOCK ? at - BLOCK : 0;
		got = pread(fd, block, (size_t)(at - from), from);
		if (got <= 0)
			return end;
		for (i = got - 1; i >= 0; i--)
			if (block[i] == '\n' && from + i + 1 < end && n-- == 1)
				return from + i + 1;
		at = from;
	}
	return at;
}

static void tail_open(struct tail *t, bool from_end)
{
	struct stat st;
	off_t at = 0;

	t->fd = open(t->all->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (t->fd < 0 || !from_end || fstat(t->fd, &st))
		return;
	at = st.st_size;
	if (t->lines)
		at = line_back(t->fd, st.st_size, t->lines);
	(void)lseek(t->fd, at, SEEK_SET);
}

/* -- lines ---------------------------------------------------------------- */

static bool line_is_wanted(const struct tail *t, struct span line)
{
	struct json *j CLEANUP_JSON = NULL;

	if (!line.len)
		return false;
	if (!t->sandbox)
		return true;
	if (json_parse(line, &j, NULL))
		return false;
	return span_eq(json_text(json_find(j, "sandbox")),
		       span_str(t->sandbox));
}

/* 0, -EAGAIN (the client is slow), -EPIPE (it is gone). */
static int line_send(struct tail *t, struct span line)
{
	struct buf event = BUF_INIT(AUDIT_LINE_MAX + 64);
	int r;

	if (!line_is_wanted(t, line))
		return 0;
	must(!buf_put(&event, SPAN("data: ")) && !buf_put(&event, line) &&
	     !buf_put(&event, SPAN("\n\n")));
	r = httpd_stream_write(t->request, buf_peek(&event));
	buf_fini(&event);
	return r;
}

/* Sends the whole lines of .part. As line_send(). */
static int lines_send(struct tail *t)
{
	struct span rest;
	size_t len;
	int r;

	for (;;) {
		rest = buf_peek(&t->part);
		len = span_find(rest, '\n');
		if (len == rest.len)
			break;
		r = t->skipping ? 0 : line_send(t, span_of(rest.ptr, len));
		if (r)
			return r;
		t->skipping = false;
		buf_consume(&t->part, len + 1);
	}
	if (rest.len >= AUDIT_LINE_MAX) {
		t->skipping = true;
		buf_clear(&t->part);
	}
	return 0;
}

/* -- pumping -------------------------------------------------------------- */

static void tail_free(struct tail *t)
{
	list_remove(&t->link);
	timer_stop(&t->timer);
	t->all->count--;
	(void)fd_close(t->fd);
	buf_fini(&t->part);
	free(t->sandbox);
	free(t);
}

static void tail_end(struct tail *t)
{
	struct httpd_request *request = t->request;

	tail_free(t);
	httpd_stream_end(request);
}

/* At the end of what is open: has the path another file now, or a shorter one?
 * Opens it then, and says so. */
static bool tail_rotate(struct tail *t)
{
	struct stat now, open_now;

	if (stat(t->all->path, &now))
		return false;
	if (t->fd >= 0 && !fstat(t->fd, &open_now) &&
	    now.st_ino == open_now.st_ino && now.st_dev == open_now.st_dev) {
		if (now.st_size >= lseek(t->fd, 0, SEEK_CUR))
			return false;
		(void)lseek(t->fd, 0, SEEK_SET); /* truncated */
	} else {
		t->fd = fd_close(t->fd);
		tail_open(t, false);
	}
	buf_clear(&t->part);
	t->skipping = false;
	return t->fd >= 0;
}

/* > 0 bytes were read; 0 the end; or as line_send(). */
static int tail_step(struct tail *t)
{
	char *room;
	ssize_t n;
	int r;

	r = lines_send(t);
	if (r)
		return r;
	must(!buf_reserve(&t->part, BLOCK, &room));
	n = t->fd >= 0 ? read(t->fd, room, BLOCK) : 0;
	if (n <= 0)
		return 0;
	buf_commit(&t->part, (size_t)n);
	return (int)n;
}

/* At the end of the file. What was sent showed that the client lives, too. */
static void tail_rest(struct tail *t, size_t sent)
{
	if (sent || !t->timer.due_ms)
		timer_start(&t->timer, ALIVE_MS);
	if (!t->all->look.due_ms)
		timer_start(&t->all->look, LOOK_MS);
}

/* May free t. */
static void tail_pump(struct tail *t)
{
	size_t done = 0;
	int n;

	while (done < TURN_BYTES) {
		n = tail_step(t);
		if (n == 0 && tail_rotate(t))
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	t->quiet = done < TURN_BYTES && n == 0;
	if (n < 0 && n != -EAGAIN)
		tail_end(t);
	else if (!t->quiet)
		timer_start(&t->timer, n == -EAGAIN ? FULL_MS : 0);
	else if (t->follow)
		tail_rest(t, done);
	else
		tail_end(t);
}

static void on_timer(struct timer *timer)
{
	struct tail *t = container_of(timer, struct tail, timer);

	if (t->quiet &&
	    httpd_stream_write(t->request, SPAN(": alive\n\n")) == -EPIPE) {
		tail_end(t);
		return;
	}
	tail_pump(t);
}

static void on_look(struct timer *timer)
{
	struct audit_tails *all = container_of(timer, struct audit_tails, look);

	list_for_each(it, &all->tails)
	{
		struct tail *t = container_of(it, struct tail, link);

		if (t->quiet)
			tail_pump(t);
	}
}

static void on_gone(void *user, struct httpd_request *r)
{
	(void)r;
	tail_end(user);
}

/* -- readers -------------------------------------------------------------- */

struct audit_tails *audit_tails_new(struct loop *loop, const char *path)
{
	struct audit_tails *all = must_alloc(sizeof(*all));

	all->loop = loop;
	all->path = must_strdup(path);
	list_init(&all->tails);
	timer_init(&all->look, loop, on_look);
	return all;
}

struct audit_tails *audit_tails_free(struct audit_tails *all)
{
	if (!all)
		return NULL;
	list_for_each(it, &all->tails)
	{
		tail_end(container_of(it, struct tail, link));
	}
	timer_stop(&all->look);
	free(all->path);
	free(all);
	return NULL;
}

void audit_tail_start(struct audit_tails *all, const struct audit_question *q,
		      struct httpd_request *r)
{
	struct tail *t;

	if (all->count >= AUDIT_TAILS_MAX) {
		httpd_reply_error(r, 503, "BUSY",
				  "%d readers of the audit file are the most",
				  AUDIT_TAILS_MAX);
		return;
	}
	t = must_alloc(sizeof(*t));
	t->all = all;
	t->request = r;
	t->lines = q->lines;
	t->follow = q->follow;
	if (q->sandbox.len) {
		t->sandbox = must_alloc(q->sandbox.len + 1);
		memcpy(t->sandbox, q->sandbox.ptr, q->sandbox.len);
	}
	buf_init(&t->part, AUDIT_LINE_MAX + 2 * BLOCK);
	timer_init(&t->timer, all->loop, on_timer);
	list_init(&t->link);
	list_push(&all->tails, &t->link);
	all->count++;
	tail_open(t, true);

	httpd_set_user(r, t);
	httpd_stream_start(r, 200, "text/event-stream", on_gone);
	timer_start(&t->timer, 0);
}
