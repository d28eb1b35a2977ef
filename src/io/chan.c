/* SPDX-License-Identifier: Apache-2.0 */
/* chan.c - framed messages with file descriptors over a SEQPACKET socket
 *
 * How it works: one message is one packet, so the kernel keeps boundaries and
 * a receiver never reassembles. A packet whose head does not describe exactly
 * the rest of it, or that was cut, ends the channel.
 *
 * Messages may carry credential values. They are received into one buffer per
 * loop, which is wiped as far as it was filled after every callback; messages
 * that had to wait for room in the kernel are wiped when they were sent or
 * dropped.
 */

#include "src/io/chan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/io/chan_wire.h"
#include "src/io/inside.h"

/* Messages delivered in one callback of the loop; others get a turn then. */
enum { CHAN_BATCH = 64 };

/* A copy of a message that waits; its fds are duplicates. */
struct packet {
	struct list link;
	size_t len;
	unsigned fd_count;
	int fds[CHAN_FDS_MAX];
	char bytes[];
};

struct chan {
	struct watch watch;
	const struct chan_ops *ops;
	void *ctx;
	int fd;
	uint32_t serial;
	int error;   /* why it is closed; 0 and closed = orderly */
	bool closed; /* nothing is sent or received any more */
	bool *freed; /* set by chan_free() for a running callback */
	struct list queue;
	size_t queued_bytes;
};

static void packet_free(struct packet *p)
{
	for (unsigned i = 0; i < p->fd_count; i++)
		fd_close(p->fds[i]);
	explicit_bzero(p, sizeof(*p) + p->len);
	free(p);
}

static void chan_drop_queue(struct chan *c)
{
	struct packet *p;

	while ((p = list_first(&c->queue, struct packet, link))) {
		list_remove(&p->link);
		packet_free(p);
	}
	c->queued_bytes = 0;
}

/* Marks the end; the owner hears of it from the loop. */
static void chan_close(struct chan *c, int error)
{
	if (c->closed)
		return;
	c->closed = true;
	c->error = error;
	chan_drop_queue(c);
	watch_want(&c->watch, WATCH_KICK);
	watch_kick(&c->watch);
}

static void chan_want(struct chan *c)
{
	unsigned bits = WATCH_READ | WATCH_KICK;

	if (!list_is_empty(&c->queue))
		bits |= WATCH_WRITE;
	watch_want(&c->watch, bits);
}

static void chan_send_queued(struct chan *c)
{
	struct packet *p;
	int r;

	while ((p = list_first(&c->queue, struct packet, link))) {
		struct iovec iov = { p->bytes, p->len };

		r = chan_wire_send(c->fd, &iov, 1, p->fds, p->fd_count);
		if (r == -EAGAIN) {
			watch_spent(&c->watch, WATCH_WRITE);
			return;
		}
		if (r) {
			/* What the peer said before it went is still read;
			 * after that comes the end. */
			chan_drop_queue(c);
			break;
		}
		list_remove(&p->link);
		c->queued_bytes -= sizeof(*p) + p->len;
		packet_free(p);
	}
	chan_want(c);
}

/* Delivers what came; true when c was freed meanwhile. */
static bool chan_deliver(struct chan *c, char *buffer, ssize_t n,
			 struct chan_msg *m)
{
	bool freed = false;

	/* cppcheck-suppress autoVariables; taken back below */
	c->freed = &freed;
	c->ops->message(c->ctx, c, m);
	explicit_bzero(buffer, (size_t)n);
	chan_wire_close_fds(m);
	if (!freed)
		c->freed = NULL;
	return freed;
}

static void chan_receive(struct chan *c)
{
	struct loop *loop = c->watch.loop;
	struct chan_msg m;
	ssize_t n;

	if (!loop->chan_scratch)
		loop->chan_scratch = must_alloc(CHAN_MESSAGE_MAX);
	for (int i = 0; i < CHAN_BATCH && !c->closed; i++) {
		n = chan_wire_recv(c->fd, loop->chan_scratch, CHAN_MESSAGE_MAX,
				   MSG_DONTWAIT, &m);
		if (n == -EAGAIN) {
			watch_spent(&c->watch, WATCH_READ);
			return;
		}
		if (n <= 0) {
			chan_close(c, (int)n);
			return;
		}
		if (chan_deliver(c, loop->chan_scratch, n, &m))
			return; /* c is gone */
	}
}

static void chan_on_ready(struct watch *w, unsigned ready)
{
	struct chan *c = container_of(w, struct chan, watch);

	if (!c->closed && (ready & WATCH_WRITE))
		chan_send_queued(c);
	if (c->closed) {
		watch_want(w, 0);
		c->ops->closed(c->ctx, c, c->error);
		return; /* c may be gone */
	}
	if (ready & WATCH_READ)
		chan_receive(c);
	/* c may be gone */
}

int chan_new(struct loop *loop, int fd, const struct chan_ops *ops, void *ctx,
	     struct chan **ret)
{
	int flags = fcntl(fd, F_GETFL);
	struct chan *c;
	int r;

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK)) {
		r = -errno;
		fd_close(fd);
		return err_origin(r);
	}
	c = must_alloc(sizeof(*c));
	c->fd = fd;
	c->ops = ops;
	c->ctx = ctx;
	list_init(&c->queue);
	r = watch_init(&c->watch, loop, fd, chan_on_ready);
	if (r) {
		chan_free(c);
		return err_trace(r);
	}
	chan_want(c);
	*ret = c;
	return 0;
}

struct chan *chan_free(struct chan *c)
{
	if (!c)
		return NULL;
	if (c->freed)
		*c->freed = true;
	watch_fini(&c->watch);
	chan_drop_queue(c);
	c->fd = fd_close(c->fd);
	free(c);
	return NULL;
}

/* Copies the message, its fds duplicated. NULL when no fd is left. */
static struct packet *packet_new(const struct iovec *iov, size_t len,
				 const int *fds, unsigned fd_count)
{
	struct packet *p = must_alloc(sizeof(*p) + len);

	list_init(&p->link);
	for (unsigned i = 0; i < CHAN_PARTS; i++) {
		if (iov[i].iov_len)
			memcpy(p->bytes + p->len, iov[i].iov_base,
			       iov[i].iov_len);
		p->len += iov[i].iov_len;
	}
	for (unsigned i = 0; i < fd_count; i++) {
		p->fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
		if (p->fds[i] < 0) {
			packet_free(p);
			return NULL;
		}
		p->fd_count++;
	}
	return p;
}

static int chan_enqueue(struct chan *c, const struct iovec *iov, size_t len,
			const int *fds, unsigned fd_count)
{
	size_t cost = sizeof(struct packet) + len;
	struct packet *p;

	if (cost > CHAN_QUEUE_MAX - c->queued_bytes)
		return err_origin(-ENOBUFS);
	p = packet_new(iov, len, fds, fd_count);
	if (!p)
		return err_origin(-ENOBUFS);
	list_push(&c->queue, &p->link);
	c->queued_bytes += cost;
	chan_want(c);
	return 0;
}

int chan_send(struct chan *c, uint16_t type, uint32_t serial, const void *body,
	      size_t body_len, struct span tail, const int *fds,
	      unsigned fd_count)
{
	struct iovec iov[CHAN_PARTS];
	struct msg_head head;
	size_t len;
	int r;

	r = chan_wire_frame(iov, &head, type, serial, body, body_len, tail,
			    fd_count);
	if (r)
		return err_trace(r);
	if (c->closed)
		return -EPIPE;

	len = sizeof(head) + head.len;
	if (!list_is_empty(&c->queue))
		return chan_enqueue(c, iov, len, fds, fd_count);
	r = chan_wire_send(c->fd, iov, CHAN_PARTS, fds, fd_count);
	if (r == -EAGAIN) {
		watch_spent(&c->watch, WATCH_WRITE);
		return chan_enqueue(c, iov, len, fds, fd_count);
	}
	if (r == -ECONNRESET || r == -ENOTCONN)
		r = -EPIPE; /* closed() comes when the rest was read */
	return err_trace(r);
}

uint32_t chan_serial(struct chan *c)
{
	if (!++c->serial)
		c->serial = 1;
	return c->serial;
}
