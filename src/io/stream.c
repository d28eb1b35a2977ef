/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - life of a stream, and when its owner is called
 *
 * How it works: the watch tells what the kernel has; stream_events() derives
 * from that and from the buffers what the owner may do now. Whenever it is
 * called by the loop, a stream first does its own work (finish the connect,
 * drive the handshake, send the queue) and then tells its owner.
 *
 * The loop visits a watch again while the kernel's bits are wanted and set.
 * Causes the kernel knows nothing of (decrypted bytes, room in the queue, an
 * error not told yet) get that second visit by watch_kick().
 */

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/io/stream_inside.h"

enum {
	/* A dead peer is found after 120 + 4 * 30 seconds. */
	KEEPALIVE_IDLE_S = 120,
	KEEPALIVE_EVERY_S = 30,
	KEEPALIVE_PROBES = 4,
};

bool stream_has_room(const struct stream *s)
{
	return s->phase == PHASE_OPEN && s->out == SIDE_OPEN &&
	       buf_len(&s->output) < STREAM_UNSENT_MAX / 2;
}

/* Bytes or facts to read that the kernel does not announce. */
static bool stream_has_input(const struct stream *s)
{
	if (s->news & (NEWS_END | NEWS_ERROR))
		return true;
	if (s->phase != PHASE_OPEN)
		return false;
	return buf_len(&s->input) || stream_has_decrypted(s);
}

static unsigned stream_events(const struct stream *s)
{
	unsigned events = 0;

	if (s->news & NEWS_CONNECTED)
		events |= STREAM_CONNECTED;
	if (s->news & NEWS_KICK)
		events |= STREAM_KICKED;
	if (stream_has_input(s) ||
	    (s->phase == PHASE_OPEN && s->in == SIDE_OPEN &&
	     s->watch.ready & WATCH_READ && !s->paused))
		events |= STREAM_READABLE;
	if (s->news & NEWS_ERROR || stream_has_room(s))
		events |= STREAM_WRITABLE;
	return events;
}

void stream_rearm(struct stream *s)
{
	unsigned bits = WATCH_KICK | s->hook_bits;

	if (s->phase == PHASE_CONNECTING)
		bits |= WATCH_WRITE;
	else if (buf_len(&s->output))
		bits |= WATCH_WRITE;
	if (s->in == SIDE_OPEN &&
	    (s->phase == PHASE_HANDSHAKING || s->wanted & STREAM_READABLE))
		bits |= WATCH_READ;
	if (s->paused)
		bits &= ~(unsigned)WATCH_READ;
	watch_want(&s->watch, bits);
}

void stream_fail(struct stream *s, int error)
{
	if (!s->error) {
		s->error = error;
		s->news |= NEWS_ERROR;
	}
	watch_kick(&s->watch);
}

static void stream_deliver(struct stream *s)
{
	unsigned events = stream_events(s) & s->wanted;

	if (!events || !s->fn)
		return;
	if (events & STREAM_CONNECTED)
		s->news &= ~(unsigned)NEWS_CONNECTED;
	if (events & STREAM_KICKED)
		s->news &= ~(unsigned)NEWS_KICK;
	if (events & STREAM_WRITABLE || stream_has_input(s))
		watch_kick(&s->watch);
	s->fn(s, s->ctx, events);
	/* s may be gone */
}

static void stream_finish_connect(struct stream *s)
{
	socklen_t len = sizeof(int);
	int error = 0;

	/* A failure makes the socket readable too. */
	if (s->watch.ready & (WATCH_READ | WATCH_HUP) &&
	    getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &len))
		error = errno;
	s->phase = s->tls ? PHASE_HANDSHAKING : PHASE_OPEN;
	if (!error) {
		if (!s->tls)
			s->news |= NEWS_CONNECTED;
		stream_recent(s);
		return;
	}
	s->phase = PHASE_OPEN;
	s->news |= NEWS_CONNECTED;
	stream_end_output(s);
	stream_end_input(s, -error);
}

static void stream_on_ready(struct watch *w, unsigned ready)
{
	struct stream *s = container_of(w, struct stream, watch);

	(void)ready;
	if (s->phase == PHASE_CONNECTING && w->ready & WATCH_WRITE)
		stream_finish_connect(s);
	if (s->phase == PHASE_HANDSHAKING)
		s->tls_ops->handshake(s);
	if (buf_len(&s->output) && w->ready & WATCH_WRITE)
		(void)stream_flush(s);
	stream_rearm(s);
	if (s->hook)
		s->hook(s);
	else
		stream_deliver(s);
	/* s may be gone */
}

static void stream_on_flush(struct flush *f)
{
	struct stream *s = container_of(f, struct stream, flush);

	(void)stream_flush(s);
}

static int stream_make(struct loop *loop, int fd, enum stream_phase phase,
		       struct stream **ret)
{
	struct stream *s = must_alloc(sizeof(*s));
	int r;

	s->fd = fd;
	s->phase = phase;
	s->flush.fn = stream_on_flush;
	list_init(&s->flush.link);
	list_init(&s->recent);
	list_init(&s->paced);
	buf_init(&s->input, STREAM_UNREAD_MAX);
	buf_init(&s->output, 2 * STREAM_WRITE_MAX);
	r = watch_init_wanting(&s->watch, loop, fd, stream_on_ready,
			       phase == PHASE_CONNECTING ? WATCH_WRITE : 0U);
	if (r) {
		stream_free(s);
		return err_trace(r);
	}
	stream_rearm(s);
	*ret = s;
	return 0;
}

int stream_new(struct loop *loop, int fd, struct stream **ret)
{
	int r;

	r = stream_make(loop, fd, PHASE_OPEN, ret);
	if (r)
		return r;
	/* A new connection can take bytes; whether it has some, the kernel
	 * will say. */
	(*ret)->watch.ready |= WATCH_WRITE;
	return 0;
}

/* Also where nobody waits for the peer to speak. Accepted sockets have this
 * from their listener; of those that we connect many are gone before it is
 * worth four system calls. */
void stream_keepalive(struct stream *s)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S },
		{ IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_EVERY_S },
		{ IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES },
	};

	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		(void)setsockopt(s->fd, options[i].level, options[i].name,
				 &options[i].value, sizeof(options[i].value));
	s->keepalive_due = false;
}

static void set_tcp(int fd, int option, int value)
{
	(void)setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value));
}

static int stream_begin(struct loop *loop, const struct addr *to,
			const char *device, bool holds_ack, struct stream **ret)
{
	struct sockaddr_storage sa;
	socklen_t len = addr_to_sockaddr(to, &sa);
	int error = 0;
	int fd, r;

	fd = socket(sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
		    0);
	if (fd < 0)
		return err_origin(-errno);
	set_tcp(fd, TCP_NODELAY, 1);
	if (holds_ack)
		set_tcp(fd, TCP_QUICKACK, 0);
	if (*device && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device,
				  (socklen_t)strlen(device)))
		error = -errno;
	else if (connect(fd, (struct sockaddr *)&sa, len) &&
		 errno != EINPROGRESS)
		error = -errno;
	r = stream_make(loop, fd, error ? PHASE_OPEN : PHASE_CONNECTING, ret);
	if (r)
		return r;
	if (!error) {
		(*ret)->keepalive_due = true;
		(*ret)->holds_ack = holds_ack;
		return 0;
	}
	(*ret)->news |= NEWS_CONNECTED;
	stream_end_output(*ret);
	stream_end_input(*ret, error);
	return 0;
}

int stream_connect(struct loop *loop, const struct addr *to,
		   struct stream **ret)
{
	return stream_begin(loop, to, "", false, ret);
}

int stream_connect_to_speak(struct loop *loop, const struct addr *to,
			    struct stream **ret)
{
	return stream_begin(loop, to, "", true, ret);
}

int stream_connect_by(struct loop *loop, const struct addr *to,
		      const char *device, struct stream **ret)
{
	return stream_begin(loop, to, device, false, ret);
}

/* What holds the ACK also makes the kernel think that there is a dialogue, and
 * hold those of what the server says next. One that waits for each (Nagle's
 * algorithm) would be held up by that. */
void stream_release_ack(struct stream *s)
{
	set_tcp(s->fd, TCP_QUICKACK, 1);
	s->holds_ack = false;
}

struct stream *stream_free(struct stream *s)
{
	if (!s)
		return NULL;
	watch_fini(&s->watch);
	list_remove(&s->flush.link);
	list_remove(&s->recent);
	pace_leave(s);
	if (s->tls)
		s->tls_ops->free(s);
	buf_fini(&s->input);
	buf_fini(&s->output);
	s->fd = fd_close(s->fd);
	free(s);
	return NULL;
}

struct stream *stream_reset(struct stream *s)
{
	const struct linger now = { .l_onoff = 1, .l_linger = 0 };

	if (s)
		(void)setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &now,
				 sizeof(now));
	return stream_free(s);
}

void stream_set_owner(struct stream *s, stream_fn *fn, void *ctx)
{
	s->fn = fn;
	s->ctx = ctx;
	stream_want(s, s->wanted);
}

void stream_want(struct stream *s, unsigned events)
{
	s->wanted = events;
	stream_rearm(s);
	if (stream_events(s) & events)
		watch_kick(&s->watch);
}

unsigned stream_wanted(const struct stream *s)
{
	return s->wanted;
}

void stream_kick(struct stream *s)
{
	s->news |= NEWS_KICK;
	watch_kick(&s->watch);
}

int stream_error(const struct stream *s)
{
	return s->error;
}

int stream_fd(const struct stream *s)
{
	return s->fd;
}

struct loop *stream_loop(const struct stream *s)
{
	return s->watch.loop;
}

uint64_t stream_bytes_in(const struct stream *s)
{
	return s->bytes_in;
}

uint64_t stream_bytes_out(const struct stream *s)
{
	return s->bytes_out;
}
