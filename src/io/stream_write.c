/* SPDX-License-Identifier: Apache-2.0 */
/* stream_write.c - bytes to the kernel
 *
 * How it works: writes go to the end of the output queue, and the loop sends
 * the queue once the callbacks of this round have run: a head and a small body
 * become one packet. Bulk does not wait that long: past EAGER_BYTES the queue
 * is sent at once, and a large plain write into an empty queue goes to the
 * kernel without being copied. A queue that was sent gives its memory back.
 */

#include <errno.h>
#include <sys/socket.h>

#include "src/base/err.h"
#include "src/io/socket.h"
#include "src/io/stream_inside.h"

enum { EAGER_BYTES = 64 * 1024, DIRECT_BYTES = 8 * 1024 };

static void stream_drop_output(struct stream *s)
{
	/* A small plain queue may have held a credential. */
	if (!s->tls && s->output.size <= DIRECT_BYTES)
		buf_wipe(&s->output);
	else
		buf_fini(&s->output);
}

void stream_end_output(struct stream *s)
{
	s->out = SIDE_ENDED;
	stream_drop_output(s);
}

void stream_dirty(struct stream *s)
{
	if (buf_len(&s->output) >= EAGER_BYTES)
		(void)stream_flush(s);
	else
		flush_later(s->watch.loop, &s->flush);
}

/* Bytes taken, 0 when the kernel is full, or -errno (the output has ended). */
static ssize_t stream_send(struct stream *s, struct span bytes)
{
	const bool ends = s->out == SIDE_ENDING && s->phase == PHASE_OPEN;
	ssize_t n;

	if (s->phase == PHASE_CONNECTING || !(s->watch.ready & WATCH_WRITE))
		return 0;
	do
		n = socket_send(s->fd, bytes.ptr, bytes.len, ends);
	while (n < 0 && errno == EINTR);
	if (n >= 0) {
		if (s->holds_ack)
			stream_release_ack(s);
		s->bytes_out += (uint64_t)n;
		return n;
	}
	if (errno == EAGAIN) {
		watch_spent(&s->watch, WATCH_WRITE);
		return 0;
	}
	n = -errno;
	stream_end_output(s);
	stream_fail(s, (int)n);
	return n;
}

/* The queue is empty: FIN, if it was asked for and nobody writes any more. */
static void stream_finish_output(struct stream *s)
{
	if (s->out != SIDE_ENDING || s->phase != PHASE_OPEN)
		return;
	s->out = SIDE_ENDED;
	if (!s->closes || s->watch.loop->is_ending)
		(void)shutdown(s->fd, SHUT_WR);
}

int stream_flush(struct stream *s)
{
	ssize_t n = 0;

	while (buf_len(&s->output)) {
		n = stream_send(s, buf_peek(&s->output));
		if (n <= 0)
			break;
		buf_consume(&s->output, (size_t)n);
	}
	if (n < 0)
		return (int)n;
	if (!buf_len(&s->output)) {
		stream_drop_output(s);
		stream_finish_output(s);
	}
	stream_rearm(s);
	if (s->wanted & STREAM_WRITABLE && stream_has_room(s))
		watch_kick(&s->watch);
	return buf_len(&s->output) ? STREAM_AGAIN : 0;
}

static int stream_write_plain(struct stream *s, struct span bytes)
{
	ssize_t n;

	while (bytes.len >= DIRECT_BYTES && !buf_len(&s->output)) {
		n = stream_send(s, bytes);
		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		bytes = span_from(bytes, (size_t)n);
	}
	must(buf_put(&s->output, bytes) == 0);
	if (!(s->watch.ready & WATCH_WRITE))
		stream_rearm(s);
	else if (bytes.len)
		stream_dirty(s);
	return 0;
}

static int stream_write_any(struct stream *s, struct span bytes)
{
	if (s->out != SIDE_OPEN)
		return s->error ? s->error : -EPIPE;
	if (s->phase == PHASE_HANDSHAKING)
		return STREAM_AGAIN;
	if (bytes.len > STREAM_WRITE_MAX)
		return err_origin(-EMSGSIZE);
	if (!bytes.len)
		return 0;
	if (buf_len(&s->output) >= STREAM_UNSENT_MAX) {
		(void)stream_flush(s);
		if (s->out != SIDE_OPEN)
			return s->error;
		if (buf_len(&s->output) >= STREAM_UNSENT_MAX)
			return STREAM_AGAIN;
	}
	/* TLS on a connect that is not done: no handshake, no bytes. */
	if (s->tls)
		return s->phase == PHASE_OPEN ? s->tls_ops->write(s, bytes)
					      : STREAM_AGAIN;
	return stream_write_plain(s, bytes);
}

int stream_write(struct stream *s, struct span bytes)
{
	int r;

	r = stream_write_any(s, bytes);
	if (r && r != STREAM_AGAIN && r == s->error)
		s->news &= ~(unsigned)NEWS_ERROR;
	return r;
}

size_t stream_unsent(const struct stream *s)
{
	return buf_len(&s->output);
}

void stream_shutdown_write(struct stream *s)
{
	if (s->out != SIDE_OPEN)
		return;
	s->out = SIDE_ENDING;
	if (s->tls && s->phase == PHASE_OPEN)
		s->tls_ops->shutdown(s);
	flush_later(s->watch.loop, &s->flush);
}
