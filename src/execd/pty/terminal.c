/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.c - bytes between a program and its clients
 *
 * How it works: each end that output comes from is read, a chunk at a time,
 * while the holder has taken everything before it; so at any moment at most
 * one chunk, of one kind, is in the ring and not with the holder, and the ring
 * need not remember what was stdout and what stderr. Without a holder reading
 * never stops and the ring turns.
 *
 * The end of the program is the exit of its leader. At that moment what the
 * kernel holds of its output is read (at most a ring of it: something it left
 * in the background may write for ever), and then the exit is told. A
 * terminal is closed with that, which hangs up on jobs in its background; pipes
 * stay open and are read into the ring until their writers are gone or the
 * program is started anew, so that what runs on does not die of SIGPIPE.
 *
 * Signals that a keyboard sends go to the foreground job, whose process group
 * is not the shell's; others go to both.
 */

#include "src/execd/pty/terminal.h"

#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/execd/execd.h"
#include "src/execd/pty/attachment.h"
#include "src/execd/pty/launch.h"
#include "src/execd/pty/sweep.h"

enum { CHUNK_BYTES = 32 * 1024 };

/* -- ends ------------------------------------------------------------------ */

static void end_close(struct terminal_end *end)
{
	if (end->fd < 0)
		return;
	watch_fini(&end->watch);
	end->fd = fd_close(end->fd);
}

static void terminal_close_all(struct terminal *t)
{
	end_close(&t->out);
	end_close(&t->err);
	end_close(&t->in);
	t->slave = fd_close(t->slave);
	buf_fini(&t->input);
}

/* Output is read while nobody who should have it lacks it. */
static bool terminal_may_read(const struct terminal *t)
{
	return !t->holder || !attachment_is_behind(t->holder);
}

static void terminal_rearm(struct terminal *t)
{
	const unsigned want = terminal_may_read(t) ? WATCH_READ : 0;

	if (t->out.fd >= 0)
		watch_want(&t->out.watch, want);
	if (t->err.fd >= 0)
		watch_want(&t->err.watch, want);
	if (t->in.fd >= 0)
		watch_want(&t->in.watch, buf_len(&t->input) ? WATCH_WRITE : 0);
}

/* -- output ---------------------------------------------------------------- */

static void terminal_tell(struct terminal *t, enum terminal_frame frame,
			  struct span bytes)
{
	ring_put(&t->ring, bytes);
	/* none of these ends an attachment: that is done by the loop */
	if (t->holder)
		attachment_set_frame(t->holder, frame);
	list_for_each(it, &t->attachments)
		attachment_go_on(attachment_of_link(it));
}

/* Reads what is there, up to size bytes: a terminal gives 4 KiB at a time, and
 * one frame for many of those is cheaper for everybody. */
static size_t end_fill(struct terminal_end *end, char *dst, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while (len < size) {
		n = read(end->fd, dst + len, size - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n > 0) {
			len += (size_t)n;
			continue;
		}
		if (n < 0 && errno == EAGAIN)
			watch_spent(&end->watch, WATCH_READ);
		else /* of the pipe; EIO: nobody has the terminal open */
			end_close(end);
		break;
	}
	return len;
}

/* Tells a chunk. True: there was something. */
static bool end_read(struct terminal_end *end)
{
	struct terminal *t = end->terminal;
	char chunk[CHUNK_BYTES];
	size_t len;

	len = end_fill(end, chunk, sizeof(chunk));
	if (!len)
		return false;
	t->drain_left -= MIN(t->drain_left, len);
	terminal_tell(t, end->frame, span_of(chunk, len));
	return true;
}

static int exit_code(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status)
				   : WEXITSTATUS(status);
}

/* Everything was told: the exit is. */
static void terminal_finish(struct terminal *t)
{
	const int code = exit_code(t->child.status);

	t->running = t->exiting = false;
	t->holder = NULL; /* the place is free while he is still being told */
	child_fini(&t->child);
	if (t->is_pty)
		end_close(&t->out);
	end_close(&t->in);
	t->slave = fd_close(t->slave);
	buf_fini(&t->input);
	terminal_rearm(t);
	list_for_each(it, &t->attachments)
		attachment_exit(attachment_of_link(it), code);
}

/* The program is gone: reads what it left, as far as the holder takes it. */
static void terminal_drain(struct terminal *t)
{
	bool more = true;

	while (more && t->drain_left) {
		more = false;
		if (!terminal_may_read(t))
			return;
		if (t->out.fd >= 0)
			more = end_read(&t->out);
		if (t->err.fd >= 0 && terminal_may_read(t))
			more |= end_read(&t->err);
	}
	if (terminal_may_read(t))
		terminal_finish(t);
}

static void terminal_on_output(struct watch *w, unsigned ready)
{
	struct terminal_end *end = container_of(w, struct terminal_end, watch);
	struct terminal *t = end->terminal;

	(void)ready;
	if (t->exiting) {
		terminal_drain(t);
		return;
	}
	(void)end_read(end);
	terminal_rearm(t);
}

static void terminal_on_exit(struct child *c)
{
	struct terminal *t = container_of(c, struct terminal, child);

	t->exiting = true;
	t->drain_left = RING_BYTES;
	terminal_drain(t);
	terminal_rearm(t);
}

void terminal_go_on(struct terminal *t)
{
	if (t->exiting)
		terminal_drain(t);
	terminal_rearm(t);
}

/* -- input ----------------------------------------------------------------- */

bool terminal_is_full(const struct terminal *t)
{
	return buf_len(&t->input) >= TERMINAL_INPUT_FULL;
}

static void terminal_on_input(struct watch *w, unsigned ready)
{
	struct terminal_end *end = container_of(w, struct terminal_end, watch);
	struct terminal *t = end->terminal;
	const bool was_full = terminal_is_full(t);
	const struct span bytes = buf_peek(&t->input);
	ssize_t n;

	(void)ready;
	n = write(end->fd, bytes.ptr, bytes.len);
	if (n > 0) {
		buf_consume(&t->input, (size_t)n);
		if (!buf_len(&t->input))
			buf_fini(&t->input);
	} else if (n < 0 && errno == EAGAIN) {
		watch_spent(w, WATCH_WRITE);
	} else if (n < 0 && errno != EINTR) {
		buf_fini(&t->input);
		end_close(end);
		if (t->holder)
			attachment_error(t->holder, "STDIN_WRITE_FAILED",
					 "the program does not read any more");
	}
	terminal_rearm(t);
	if (was_full && !terminal_is_full(t) && t->holder)
		attachment_read_on(t->holder);
}

int terminal_input(struct terminal *t, struct span bytes)
{
	if (t->in.fd < 0 || t->exiting)
		return -EPIPE;
	/* a holder is read no further than TERMINAL_INPUT_FULL and a message;
	 * several who took over from each other may add up */
	if (buf_put(&t->input, bytes))
		return -EPIPE;
	terminal_rearm(t);
	return 0;
}

/* -- signals and size ------------------------------------------------------ */

/* The process group in front, or 0 when that is the leader's own. */
static pid_t terminal_foreground(const struct terminal *t)
{
	pid_t group = 0;

	if (!t->is_pty || t->out.fd < 0 ||
	    ioctl(t->out.fd, TIOCGPGRP, &group) || group <= 1 ||
	    group == t->child.pid)
		return 0;
	return group;
}

void terminal_signal(struct terminal *t, int signal)
{
	pid_t front;

	if (!t->running || t->exiting)
		return;
	front = terminal_foreground(t);
	if (front)
		(void)kill(-front, signal);
	if (!front || (signal != SIGINT && signal != SIGQUIT &&
		       signal != SIGTSTP && signal != SIGCONT))
		child_signal(&t->child, signal, false);
}

void terminal_resize(struct terminal *t, uint16_t cols, uint16_t rows)
{
	const struct winsize size = { .ws_col = cols, .ws_row = rows };

	t->cols = cols;
	t->rows = rows;
	if (t->running && t->is_pty && t->out.fd >= 0)
		(void)ioctl(t->out.fd, TIOCSWINSZ, &size);
}

/* -- starting -------------------------------------------------------------- */

static void end_open(struct terminal_end *end, int fd, watch_fn *fn)
{
	if (fd < 0)
		return;
	end->fd = fd;
	must(watch_init(&end->watch, end->terminal->execd->loop, fd, fn) == 0);
}

int terminal_start(struct terminal *t, bool pty, struct diag *d)
{
	struct terminal_fds fds;
	int r;

	must(!t->running);
	terminal_close_all(t); /* pipes of the last one, which live on */
	t->child.on_exit = terminal_on_exit;
	r = terminal_launch(t, pty, &fds, d);
	if (r)
		return r;
	t->is_pty = pty;
	t->running = true;
	t->drain_left = SIZE_MAX;
	end_open(&t->out, fds.out, terminal_on_output);
	end_open(&t->err, fds.err, terminal_on_output);
	end_open(&t->in, fds.in, terminal_on_input);
	t->slave = fds.slave;
	terminal_rearm(t);
	return 0;
}

/* -- life ------------------------------------------------------------------ */

static char *terminal_dup(struct span s)
{
	char *copy;

	if (!s.len)
		return NULL;
	copy = must_alloc(s.len + 1);
	memcpy(copy, s.ptr, s.len);
	return copy;
}

struct terminal *terminal_new(struct execd *e, struct span cwd,
			      struct span command)
{
	struct terminal *t = must_alloc(sizeof(*t));

	list_init(&t->link);
	t->execd = e;
	id_draw(t->id);
	t->cwd = terminal_dup(cwd);
	t->command = terminal_dup(command);
	t->cols = 80;
	t->rows = 24;
	t->out = (struct terminal_end){ t, .fd = -1, .frame = TERMINAL_STDOUT };
	t->err = (struct terminal_end){ t, .fd = -1, .frame = TERMINAL_STDERR };
	t->in = (struct terminal_end){ t, .fd = -1 };
	t->slave = -1;
	ring_init(&t->ring);
	buf_init(&t->input, TERMINAL_INPUT_MAX);
	list_init(&t->attachments);
	return t;
}

struct terminal *terminal_free(struct terminal *t)
{
	if (!t)
		return NULL;
	if (t->running && t->is_pty && !t->exiting)
		sweep_session(t->child.pid);
	if (t->running)
		child_fini(&t->child);
	terminal_close_all(t);
	t->holder = NULL;
	list_for_each(it, &t->attachments)
		attachment_gone(attachment_of_link(it));
	list_remove(&t->link);
	ring_fini(&t->ring);
	free(t->cwd);
	free(t->command);
	free(t);
	return NULL;
}
