/* SPDX-License-Identifier: Apache-2.0 */
/* splice.c - two plain streams joined in the kernel
 *
 * How it works: each direction is a struct way. Small talk is copied: one
 * recv(2) and one send(2) are cheaper than a pipe. Once a way has filled the
 * whole copy buffer it carries bulk, and goes through a pipe by splice(2)
 * until the source runs dry. A pipe belongs to a way only while bytes are in
 * it, and comes from the loop's store, so an idle pair holds two fds.
 *
 * Bytes of a way exist in one order: the sink's output queue (what was unread
 * or queued before, and what a short send left), then the pipe, then the
 * source. A way reads only when queue and pipe are empty: that is its
 * back-pressure. When its source has ended and all is sent, the sink gets FIN.
 *
 * Everything ends through splice_end(), and the owner hears of it from the
 * loop: by a kick on stream a.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/io/stream_inside.h"

enum {
	COPY_BYTES = 16 * 1024,
	PIPE_BYTES = 256 * 1024,
	/* Per call, so that one pair does not hold up the others. */
	WAY_BUDGET = 1024 * 1024,
};

enum way_mode { WAY_COPY, WAY_BULK, WAY_COPY_ONLY };

struct way {
	struct stream *source, *sink;
	enum way_mode mode;
	int pipe[2]; /* -1 when it holds nothing */
	size_t in_pipe;
	uint64_t bytes;
};

struct splice {
	struct resident resident;
	struct timer idle;
	uint64_t idle_ms;
	struct way ways[2]; /* a to b, b to a */
	splice_fn *done;
	void *ctx;
	int error;
	bool ended; /* nothing moves; done is still to be called */
};

/* An empty pipe, from the store or new; its size is a wish. */
static int pipe_take(struct loop *loop, int ret[2])
{
	if (loop->pipe_count) {
		loop->pipe_count--;
		ret[0] = loop->pipes[loop->pipe_count][0];
		ret[1] = loop->pipes[loop->pipe_count][1];
		return 0;
	}
	if (pipe2(ret, O_NONBLOCK | O_CLOEXEC)) {
		ret[0] = ret[1] = -1;
		return -errno;
	}
	(void)fcntl(ret[1], F_SETPIPE_SZ, PIPE_BYTES);
	return 0;
}

static void pipe_give(struct loop *loop, int pipe[2], bool empty)
{
	if (pipe[0] < 0)
		return;
	if (empty && loop->pipe_count < PIPES_KEPT) {
		loop->pipes[loop->pipe_count][0] = pipe[0];
		loop->pipes[loop->pipe_count][1] = pipe[1];
		loop->pipe_count++;
	} else {
		fd_close(pipe[0]);
		fd_close(pipe[1]);
	}
	pipe[0] = pipe[1] = -1;
}

static struct loop *way_loop(const struct way *w)
{
	return w->source->watch.loop;
}

/* 0 the sink took all, STREAM_AGAIN, or -errno. */
static int way_drain(struct way *w)
{
	struct stream *sink = w->sink;
	ssize_t n;
	int r;

	if (buf_len(&sink->output)) {
		r = stream_flush(sink);
		if (r)
			return r;
	}
	while (w->in_pipe) {
		if (!(sink->watch.ready & WATCH_WRITE))
			return STREAM_AGAIN;
		n = splice(w->pipe[0], NULL, sink->fd, NULL, w->in_pipe,
			   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			watch_spent(&sink->watch, WATCH_WRITE);
			return STREAM_AGAIN;
		}
		if (n <= 0)
			return n ? -errno : -EPIPE;
		w->in_pipe -= (size_t)n;
		sink->bytes_out += (uint64_t)n;
	}
	pipe_give(way_loop(w), w->pipe, true);
	return 0;
}

/* Once all of an orderly source was read: FIN is due, with the next flush, in
 * one packet with what is queued. */
static bool way_end(struct way *w)
{
	if (w->source->in != SIDE_ENDED || w->source->read_error ||
	    w->sink->out != SIDE_OPEN)
		return false;
	/* the other way is over: both are closed next */
	w->sink->closes = w->sink->in == SIDE_ENDED &&
			  w->source->out == SIDE_ENDED;
	stream_shutdown_write(w->sink);
	return true;
}

/* > 0 bytes moved from the source, 0 it ended, STREAM_AGAIN, or -errno. */
static ssize_t way_copy(struct way *w)
{
	char *scratch = loop_scratch(way_loop(w));
	ssize_t n, last = 0;
	int r;

	n = stream_receive(w->source, scratch, COPY_BYTES);
	if (n <= 0)
		return n;
	if (n == COPY_BYTES && w->mode == WAY_COPY)
		w->mode = WAY_BULK;
	else if (n < COPY_BYTES && w->source->watch.ready & WATCH_HUP)
		last = stream_receive(w->source, scratch + n,
				      COPY_BYTES - (size_t)n);
	n += MAX(last, 0);
	r = stream_write(w->sink, span_of(scratch, (size_t)n));
	if (r)
		return r;
	(void)way_end(w);
	/* At once: the wait for the end of the round gains nothing here. */
	r = stream_flush(w->sink);
	return r && r != STREAM_AGAIN ? r : n;
}

static ssize_t way_fill_pipe(struct way *w)
{
	struct stream *source = w->source;
	size_t len = PIPE_BYTES;
	ssize_t n;
	int r;

	if (!(source->watch.ready & WATCH_READ))
		return STREAM_AGAIN;
	if (source->pace) {
		len = pace_ask(source, len);
		if (!len)
			return STREAM_AGAIN;
	}
	r = w->pipe[0] < 0 ? pipe_take(way_loop(w), w->pipe) : 0;
	if (r) {
		w->mode = WAY_COPY_ONLY;
		return way_copy(w);
	}
	do
		n = splice(source->fd, NULL, w->pipe[1], NULL, len,
			   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		w->in_pipe = (size_t)n;
		source->bytes_in += (uint64_t)n;
		if (source->pace)
			pace_pay(source, (size_t)n);
		return n;
	}
	r = n < 0 ? -errno : 0;
	pipe_give(way_loop(w), w->pipe, true);
	if (r == -EAGAIN) {
		/* The pipe was empty, so it is the source that is. */
		watch_spent(&source->watch, WATCH_READ);
		w->mode = WAY_COPY;
		return STREAM_AGAIN;
	}
	if (r == -EINVAL) {
		w->mode = WAY_COPY_ONLY;
		return way_copy(w);
	}
	stream_end_input(source, r);
	return r;
}

/* Moves what can be moved. 0 or -errno; *moved grows. */
static int way_pump(struct way *w, uint64_t *moved)
{
	uint64_t budget = WAY_BUDGET;
	ssize_t n;
	int r;

	for (;;) {
		r = way_drain(w);
		if (r)
			return r == STREAM_AGAIN ? 0 : r;
		if (w->source->in != SIDE_OPEN || !budget)
			break;
		n = w->mode == WAY_BULK ? way_fill_pipe(w) : way_copy(w);
		if (n == STREAM_AGAIN)
			return 0;
		if (n < 0)
			return (int)n;
		w->bytes += (uint64_t)n;
		*moved += (uint64_t)n;
		budget -= MIN(budget, (uint64_t)n);
	}
	if (way_end(w))
		(void)stream_flush(w->sink);
	return w->source->read_error;
}

static bool way_is_blocked(const struct way *w)
{
	return w->in_pipe || buf_len(&w->sink->output);
}

static bool way_is_over(const struct way *w)
{
	return w->source->in == SIDE_ENDED && w->sink->out == SIDE_ENDED;
}

static void splice_detach(struct splice *sp)
{
	timer_stop(&sp->idle);
	list_remove(&sp->resident.link);
	for (int i = 0; i < 2; i++) {
		struct way *w = &sp->ways[i];

		pipe_give(way_loop(w), w->pipe, !w->in_pipe);
	}
	for (int i = 0; i < 2; i++) {
		if (sp->error)
			stream_reset(sp->ways[i].source);
		else
			stream_free(sp->ways[i].source);
	}
}

static void splice_finish(struct splice *sp)
{
	splice_detach(sp);
	if (sp->done)
		sp->done(sp->ctx, sp->ways[0].bytes, sp->ways[1].bytes,
			 sp->error);
	free(sp);
}

/* Stops moving; the loop then calls splice_finish(). */
static void splice_end(struct splice *sp, int error)
{
	if (sp->ended)
		return;
	sp->ended = true;
	sp->error = error;
	for (int i = 0; i < 2; i++) {
		sp->ways[i].source->hook_bits = 0;
		stream_rearm(sp->ways[i].source);
	}
	watch_kick(&sp->ways[0].source->watch);
}

static void splice_rearm(struct splice *sp)
{
	for (int i = 0; i < 2; i++) {
		struct way *in = &sp->ways[i], *out = &sp->ways[1 - i];
		unsigned bits = 0;

		if (in->source->in == SIDE_OPEN && !way_is_blocked(in))
			bits |= WATCH_READ;
		if (way_is_blocked(out))
			bits |= WATCH_WRITE;
		in->source->hook_bits = bits;
		stream_rearm(in->source);
	}
}

static void splice_on_ready(struct stream *s)
{
	struct splice *sp = s->hook_ctx;
	uint64_t moved = 0;
	int r = 0;

	if (sp->ended) {
		if (s == sp->ways[0].source)
			splice_finish(sp);
		return; /* sp is gone */
	}
	for (int i = 0; i < 2 && !r; i++)
		r = way_pump(&sp->ways[i], &moved);
	if (moved && sp->idle_ms)
		timer_start(&sp->idle, sp->idle_ms);
	if (r || (way_is_over(&sp->ways[0]) && way_is_over(&sp->ways[1])))
		splice_end(sp, r);
	else
		splice_rearm(sp);
}

static void splice_on_idle(struct timer *t)
{
	splice_end(container_of(t, struct splice, idle), -ETIMEDOUT);
}

static void splice_on_evict(struct resident *r)
{
	struct splice *sp = container_of(r, struct splice, resident);

	splice_detach(sp);
	free(sp);
}

/* What was read ahead from source goes behind what waits for sink. */
static int way_init(struct way *w, struct stream *source, struct stream *sink)
{
	int r;

	*w = (struct way){ .source = source, .sink = sink, .pipe = { -1, -1 } };
	if (!buf_len(&source->input))
		return 0;
	r = buf_put(&sink->output, buf_peek(&source->input));
	if (r)
		return r;
	w->bytes = buf_len(&source->input);
	buf_fini(&source->input);
	return 0;
}

static void splice_own(struct splice *sp, struct stream *s)
{
	stream_set_owner(s, NULL, NULL);
	stream_want(s, 0);
	s->hook = splice_on_ready;
	s->hook_ctx = sp;
	watch_kick(&s->watch);
}

/* splice(2) has no MSG_NOSIGNAL. */
static void sigpipe_ignore(void)
{
	(void)signal(SIGPIPE, SIG_IGN);
}

int stream_splice(struct stream *a, struct stream *b, uint64_t idle_ms,
		  splice_fn *done, void *ctx, struct splice **ret)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct splice *sp;
	int r;

	(void)pthread_once(&once, sigpipe_ignore);
	if (a->tls || b->tls || a->phase != PHASE_OPEN ||
	    b->phase != PHASE_OPEN)
		return err_origin(-EINVAL);
	sp = must_alloc(sizeof(*sp));
	r = way_init(&sp->ways[0], a, b);
	if (!r)
		r = way_init(&sp->ways[1], b, a);
	if (r) {
		free(sp);
		return err_origin(r);
	}
	sp->done = done;
	sp->ctx = ctx;
	sp->idle_ms = idle_ms;
	sp->resident.evict = splice_on_evict;
	list_init(&sp->resident.link);
	list_push(&a->watch.loop->residents, &sp->resident.link);
	timer_init(&sp->idle, a->watch.loop, splice_on_idle);
	if (idle_ms)
		timer_start(&sp->idle, idle_ms);
	splice_own(sp, a);
	splice_own(sp, b);
	*ret = sp;
	return 0;
}

void splice_cancel(struct splice *sp, int error)
{
	splice_end(sp, error ? error : -ECANCELED);
}

void splice_forget(struct splice *sp)
{
	sp->done = NULL;
	splice_cancel(sp, -ECANCELED);
}

uint64_t splice_bytes(const struct splice *sp)
{
	return sp->ways[0].bytes + sp->ways[1].bytes;
}
