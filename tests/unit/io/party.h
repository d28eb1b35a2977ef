/* SPDX-License-Identifier: Apache-2.0 */
/* party.h - one side of a test conversation over a stream
 *
 * A party sends `to_send` pseudo-random bytes in pieces of random size, ends
 * its direction, and checks what it receives against the sequence of the other
 * party. Both have ended when finished is set.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/io/loop.h"
#include "src/io/stream.h"

struct party {
	struct stream *stream;
	uint64_t seed_out, seed_in; /* of the byte sequences */
	size_t to_send, sent, received, piece_max, read_max;
	uint64_t random;
	unsigned events, wrong, again, calls;
	int error; /* first result < 0 of a read or write */
	bool keep_open, ended_in, ended_out, finished;
};

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* The byte at a position of a sequence. */
static char sequence_at(uint64_t seed, size_t i)
{
	return (char)(((seed + i / 8) * 0x9e3779b97f4a7c15ull) >>
		      (8 * (i % 8)));
}

static void party_check(struct party *p, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		p->wrong +=
			bytes[i] != sequence_at(p->seed_in, p->received + i);
	p->received += len;
}

static void party_read(struct party *p)
{
	static char bytes[300 * 1024];
	size_t len = p->read_max ? p->read_max : sizeof(bytes);
	ssize_t n;

	n = stream_read(p->stream, bytes,
			1 + random_next(&p->random) % MIN(len, sizeof(bytes)));
	if (n > 0)
		party_check(p, bytes, (size_t)n);
	else if (n == 0)
		p->ended_in = true;
	else if (n != STREAM_AGAIN)
		p->error = (int)n;
}

static void party_write(struct party *p)
{
	static char bytes[300 * 1024];
	size_t len = 1 + random_next(&p->random) % p->piece_max;
	int r;

	len = MIN(len, p->to_send - p->sent);
	for (size_t i = 0; i < len; i++)
		bytes[i] = sequence_at(p->seed_out, p->sent + i);
	r = stream_write(p->stream, span_of(bytes, len));
	if (!r)
		p->sent += len;
	else if (r == STREAM_AGAIN)
		p->again++;
	else
		p->error = r;
}

static void party_want(struct party *p)
{
	unsigned events = STREAM_CONNECTED;

	if (!p->ended_in)
		events |= STREAM_READABLE;
	if (p->sent < p->to_send || !(p->ended_out || p->keep_open))
		events |= STREAM_WRITABLE;
	stream_want(p->stream, events);
}

static void party_on_event(struct stream *s, void *ctx, unsigned events)
{
	struct party *p = ctx;

	p->calls++;
	p->events |= events;
	if (events & STREAM_READABLE)
		party_read(p);
	/* A few small ones at a time, to see them batched. */
	for (int i = 0; i < 3 && !p->error && events & STREAM_WRITABLE &&
			p->sent < p->to_send;
	     i++)
		party_write(p);
	if (p->sent == p->to_send && !p->ended_out && !p->keep_open) {
		p->ended_out = true;
		stream_shutdown_write(s);
	}
	p->finished = p->error || (p->ended_in && p->ended_out);
	if (p->finished)
		stream_want(s, 0);
	else
		party_want(p);
}

/* Takes the stream. */
static inline void party_init(struct party *p, struct stream *s,
			      uint64_t seed_out, uint64_t seed_in,
			      size_t to_send, size_t piece_max)
{
	*p = (struct party){ .stream = s,
			     .seed_out = seed_out,
			     .seed_in = seed_in,
			     .to_send = to_send,
			     .piece_max = piece_max,
			     .random = seed_out * 77 + 1 };
	stream_set_owner(s, party_on_event, p);
	party_want(p);
}

/* Until both have finished; false when that takes more than 20 s. */
static inline bool parties_run(struct loop *loop, struct party *a,
			       struct party *b)
{
	uint64_t end_ms = clock_ms() + 20000;

	while (!(a->finished && b->finished)) {
		if (clock_ms() > end_ms)
			return false;
		loop_run_once(loop, false);
	}
	return true;
}

static inline void parties_free(struct party *a, struct party *b)
{
	a->stream = stream_free(a->stream);
	b->stream = stream_free(b->stream);
}

/* Not the receiver's: a window below the loopback's segment size would make
 * TCP wait for its timers. */
static inline void small_buffers(int fd)
{
	const int size = 4096;

	assert_int_equal(
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
}

static inline void unix_pair(int fds[2])
{
	assert_int_equal(socketpair(AF_UNIX,
				    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
				    0, fds),
			 0);
}

static inline int tcp_listen(struct addr *ret)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	struct addr any;
	int fd;

	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(fd >= 0);
	assert_true(addr_parse(SPAN("127.0.0.1"), &any));
	len = addr_to_sockaddr(&any, &sa);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(listen(fd, 16), 0);
	len = sizeof(sa);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
	assert_true(addr_from_sockaddr((struct sockaddr *)&sa, ret));
	return fd;
}

/* Packets that a socket of TCP has sent. */
static inline unsigned packets_of(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
	return info.tcpi_segs_out;
}

/* Two connected, non-blocking TCP sockets without delay, as all of ours are. */
static inline void tcp_pair(int fds[2])
{
	struct sockaddr_storage sa;
	const int on = 1;
	struct addr addr;
	socklen_t len;
	int listener = tcp_listen(&addr);

	len = addr_to_sockaddr(&addr, &sa);
	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fds[0], (struct sockaddr *)&sa, len), 0);
	assert_int_equal(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
	fds[1] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(fds[1] >= 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY,
					    &on, sizeof(on)),
				 0);
	fd_close(listener);
}
