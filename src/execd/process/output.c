/* SPDX-License-Identifier: Apache-2.0 */
/* output.c - the pipe a program writes to, read into events
 *
 * How it works: one read per turn of the loop into a buffer that all outputs
 * share, cut into lines and put into the stream, which sends them as one piece
 * when it is full or all was told. What was read and found no room waits as
 * bytes (frames may be sixty times as large), and nothing more is read. So an
 * output owns little, and of a thousand busy ones each gets its turn.
 */

#include "src/execd/process/output.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/execd/event_stream.h"
#include "src/execd/execd.h"
#include "src/execd/process/drain.h"

enum { READ_BYTES = 64 * 1024, SLICE_BYTES = 4 * 1024 };

static char scratch[READ_BYTES];

static void on_line(void *ctx, struct span text)
{
	struct output *o = ctx;

	event_stream_text(o->stream, o->type, text);
}

static bool output_is_blocked(const struct output *o)
{
	return o->stream && event_stream_is_full(o->stream);
}

/* How many of the bytes found room. */
static size_t output_feed(struct output *o, struct span bytes)
{
	size_t at = 0, len;

	event_stream_hold(o->stream);
	while (at < bytes.len) {
		len = MIN(bytes.len - at, (size_t)SLICE_BYTES);
		lines_feed(&o->lines, span_of(bytes.ptr + at, len), on_line, o);
		at += len;
		if (!output_is_blocked(o))
			continue;
		event_stream_release(o->stream);
		event_stream_hold(o->stream);
		if (output_is_blocked(o))
			break;
	}
	event_stream_release(o->stream);
	return at;
}

static void output_tell(struct output *o, struct span bytes)
{
	size_t told;

	if (!o->stream)
		return;
	told = output_feed(o, bytes);
	must(!buf_put(&o->rest, span_from(bytes, told)));
}

/* What waited for room. True: all of it is told. */
static bool output_tell_rest(struct output *o)
{
	if (!o->stream) {
		buf_fini(&o->rest);
	} else if (buf_len(&o->rest) && !output_is_blocked(o)) {
		buf_consume(&o->rest, output_feed(o, buf_peek(&o->rest)));
		if (!buf_len(&o->rest))
			buf_fini(&o->rest);
	}
	return !buf_len(&o->rest);
}

static void output_close(struct output *o)
{
	watch_fini(&o->watch);
	o->fd = fd_close(o->fd);
	o->ended = true;
}

/* > 0 bytes read and told, 0 end, -EAGAIN; other errors are an end. */
static ssize_t output_read(struct output *o, size_t max)
{
	ssize_t n;

	do {
		n = read(o->fd, scratch, MIN(max, sizeof(scratch)));
	} while (n < 0 && errno == EINTR);
	if (n > 0) {
		output_tell(o, span_of(scratch, (size_t)n));
		return n;
	}
	if (n < 0 && errno == EAGAIN)
		return -EAGAIN;
	output_close(o);
	return 0;
}

static void on_readable(struct watch *w, unsigned ready)
{
	struct output *o = container_of(w, struct output, watch);

	(void)ready;
	if (!output_tell_rest(o) || output_is_blocked(o)) {
		watch_want(w, 0);
		return;
	}
	if (output_read(o, READ_BYTES) == -EAGAIN)
		watch_spent(w, WATCH_READ);
}

int output_open(struct output *o, struct execd *e, enum event_type type,
		struct event_stream *stream, int *write_end)
{
	int ends[2], r;

	*o = (struct output){
		.execd = e, .fd = -1, .type = type, .stream = stream
	};
	lines_init(&o->lines);
	buf_init(&o->rest, READ_BYTES);
	if (pipe2(ends, O_CLOEXEC))
		return err_origin(-errno);
	/* ours alone: the program's end waits when the pipe is full */
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK))
		r = err_origin(-errno);
	else
		r = watch_init(&o->watch, e->loop, ends[0], on_readable);
	if (r) {
		(void)fd_close(ends[0]);
		(void)fd_close(ends[1]);
		return r;
	}
	o->fd = ends[0];
	*write_end = ends[1];
	watch_want(&o->watch, WATCH_READ);
	return 0;
}

void output_set_stream(struct output *o, struct event_stream *stream)
{
	o->stream = stream;
	output_go_on(o);
}

void output_go_on(struct output *o)
{
	(void)output_tell_rest(o);
	if (o->fd >= 0 && !o->draining)
		watch_want(&o->watch, WATCH_READ);
}

/* What the pipe holds now. False: there is no room for all of it yet. */
static bool output_tell_held(struct output *o)
{
	int held = 0;
	ssize_t n;

	if (o->fd >= 0 && !o->draining) {
		/* what is written from now on is nobody's any more */
		o->draining = true;
		watch_want(&o->watch, 0);
		o->left = ioctl(o->fd, FIONREAD, &held) ? 0 : (size_t)held;
	}
	if (!output_tell_rest(o))
		return false;
	while (o->fd >= 0 && o->left) {
		if (output_is_blocked(o))
			return false;
		n = output_read(o, o->left);
		if (n == -EAGAIN)
			break;
		o->left -= (size_t)n;
		if (!output_tell_rest(o))
			return false;
	}
	if (o->stream)
		lines_end(&o->lines, on_line, o);
	return true;
}

bool output_catch_up(struct output *o)
{
	if (!output_tell_held(o))
		return false;
	o->draining = false;
	if (o->fd >= 0)
		watch_want(&o->watch, WATCH_READ);
	return true;
}

/* The usual pipe has no writer left and is closed; another one goes to who
 * reads and drops. What it held beyond the end of the program is dropped here.
 */
static void output_give_up(struct output *o)
{
	ssize_t n;

	watch_fini(&o->watch);
	do {
		n = read(o->fd, scratch, sizeof(scratch));
	} while (n < 0 && errno == EINTR);
	if (n > 0 || (n < 0 && errno == EAGAIN)) {
		drain_give(o->execd->loop, o->fd);
		o->fd = -1;
	}
	o->fd = fd_close(o->fd);
	o->ended = true;
}

bool output_drain(struct output *o)
{
	if (!output_tell_held(o))
		return false;
	if (o->fd >= 0)
		output_give_up(o);
	return true;
}

void output_fini(struct output *o)
{
	if (o->fd >= 0)
		output_close(o);
	lines_fini(&o->lines);
	buf_fini(&o->rest);
}
