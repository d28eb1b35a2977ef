/* SPDX-License-Identifier: Apache-2.0 */
/* stream_read.c - bytes from the kernel
 *
 * How it works: a recv(2) that returns less than asked has emptied the socket,
 * so the watch is spent without a second call that would only say EAGAIN. New
 * bytes make a new edge. What could be lost is an end that arrived together
 * with those bytes. A FIN is known by then (WATCH_HUP) and asked for again. A
 * reset is not: libevent reports it like readiness. Therefore streams that
 * read short are remembered, and a quarter of a second later one poll(2)
 * asks the kernel which of them have failed. So are new connections of ours, of
 * which only those that are still there then are given keepalive probes.
 */

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "src/base/err.h"
#include "src/io/socket.h"
#include "src/io/stream_inside.h"

enum { SWEEP_MS = 250, SWEEP_BATCH = 128 };

static void sweep_batch(struct loop *loop)
{
	struct stream *swept[SWEEP_BATCH];
	struct pollfd fds[SWEEP_BATCH];
	nfds_t n = 0;
	struct stream *s;

	while (n < SWEEP_BATCH &&
	       (s = list_first(&loop->recent, struct stream, recent))) {
		list_remove(&s->recent);
		swept[n] = s;
		fds[n++] = (struct pollfd){ .fd = s->fd };
	}
	for (nfds_t i = 0; i < n; i++)
		if (swept[i]->keepalive_due)
			stream_keepalive(swept[i]);
	if (poll(fds, n, 0) <= 0)
		return;
	for (nfds_t i = 0; i < n; i++) {
		if (!(fds[i].revents & (POLLERR | POLLHUP)))
			continue;
		swept[i]->watch.ready |= WATCH_READ | WATCH_HUP;
		stream_rearm(swept[i]);
	}
}

static void on_sweep(struct timer *t)
{
	while (!list_is_empty(&t->loop->recent))
		sweep_batch(t->loop);
}

void stream_recent(struct stream *s)
{
	struct loop *loop = s->watch.loop;

	if (!list_is_empty(&s->recent))
		return;
	list_push(&loop->recent, &s->recent);
	if (!loop->sweep.fn)
		timer_init(&loop->sweep, loop, on_sweep);
	if (!loop->sweep.due_ms)
		timer_start(&loop->sweep, SWEEP_MS);
}

static void stream_read_short(struct stream *s)
{
	if (s->watch.ready & WATCH_HUP)
		return;
	watch_spent(&s->watch, WATCH_READ);
	stream_recent(s);
}

void stream_end_input(struct stream *s, int error)
{
	s->in = SIDE_ENDED;
	s->read_error = error;
	if (error)
		stream_fail(s, error);
	else
		s->news |= NEWS_END;
}

ssize_t stream_receive(struct stream *s, void *dst, size_t len)
{
	ssize_t n;

	if (!(s->watch.ready & WATCH_READ))
		return STREAM_AGAIN;
	if (s->pace) {
		len = pace_ask(s, len);
		if (!len)
			return STREAM_AGAIN;
	}
	do
		n = socket_recv(s->fd, dst, len);
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		s->bytes_in += (uint64_t)n;
		if (s->pace)
			pace_pay(s, (size_t)n);
		if ((size_t)n < len)
			stream_read_short(s);
		return n;
	}
	if (n < 0 && errno == EAGAIN) {
		watch_spent(&s->watch, WATCH_READ);
		return STREAM_AGAIN;
	}
	stream_end_input(s, n ? -errno : 0);
	return s->read_error;
}

static ssize_t stream_read_unread(struct stream *s, void *dst, size_t len)
{
	size_t n = MIN(len, buf_len(&s->input));

	memcpy(dst, buf_peek(&s->input).ptr, n);
	buf_consume(&s->input, n);
	if (!buf_len(&s->input))
		buf_fini(&s->input);
	return (ssize_t)n;
}

static ssize_t stream_read_any(struct stream *s, void *dst, size_t len)
{
	if (s->phase != PHASE_OPEN)
		return STREAM_AGAIN;
	if (s->tls)
		return s->tls_ops->read(s, dst, len);
	if (buf_len(&s->input))
		return stream_read_unread(s, dst, len);
	if (s->in == SIDE_ENDED)
		return s->read_error;
	return stream_receive(s, dst, len);
}

ssize_t stream_read(struct stream *s, void *dst, size_t len)
{
	ssize_t n;

	if (!len)
		return STREAM_AGAIN;
	n = stream_read_any(s, dst, len);
	if (n > 0) {
		if (s->wanted & STREAM_READABLE &&
		    (buf_len(&s->input) || stream_has_decrypted(s)))
			watch_kick(&s->watch);
		return n;
	}
	if (n == STREAM_AGAIN && s->error && s->phase == PHASE_OPEN)
		n = s->error; /* the output failed; nothing is left to read */
	if (n == 0)
		s->news &= ~(unsigned)NEWS_END;
	else if (n != STREAM_AGAIN)
		s->news &= ~(unsigned)NEWS_ERROR;
	return n;
}

int stream_unread(struct stream *s, struct span bytes)
{
	struct buf all;
	int r;

	if (s->tls)
		return err_origin(-EINVAL);
	buf_init(&all, s->input.max);
	r = buf_put(&all, bytes);
	if (!r)
		r = buf_put(&all, buf_peek(&s->input));
	if (r) {
		buf_fini(&all);
		return err_origin(r);
	}
	buf_fini(&s->input);
	s->input = all;
	stream_want(s, s->wanted);
	return 0;
}
