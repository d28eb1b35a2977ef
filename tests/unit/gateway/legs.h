/* SPDX-License-Identifier: Apache-2.0 */
/* legs.h - HTTP/1.1 legs over socket pairs, and the far ends of those
 *
 * A bench has a loop and what of a worker the legs use. A seat is one leg on
 * the bench; the test is its peer. Everything is `static inline` so that each
 * test uses what it needs.
 */
#pragma once

#include "tests/unit/gateway/fixture.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/session/h1_leg.h"
#include "src/io/stream.h"

enum {
	LEGS_WIRE_MAX = 8 * 1024 * 1024,
	LEGS_IN_MAX = 256 * 1024,
	LEGS_PATIENCE = 1000, /* turns of the loop */
};

struct bench {
	struct loop *loop;
	struct worker worker;
};

struct seat {
	struct bench *bench;
	struct h1_leg h1;
	struct stream *stream;
	struct buf in, got; /* got: what the far end received */
	char *scratch;
	int far;
};

static inline struct bench *bench_new(void)
{
	struct bench *b = must_alloc(sizeof(*b));

	log_set_level(LOG_ERROR);
	must(!loop_new(&b->loop));
	b->worker.loop = b->loop;
	b->worker.assembly = must_alloc(WORKER_SCRATCH_BYTES);
	return b;
}

static inline void bench_free(struct bench *b)
{
	b->loop = loop_free(b->loop);
	free(b->worker.assembly);
	free(b);
}

static inline void seat_open(struct seat *s, struct bench *b)
{
	int fds[2];

	*s = (struct seat){ .bench = b };
	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
			 fds));
	must(!stream_new(b->loop, fds[0], &s->stream));
	s->far = fds[1];
	s->scratch = must_alloc(WORKER_SCRATCH_BYTES);
	buf_init(&s->in, LEGS_IN_MAX);
	buf_init(&s->got, LEGS_WIRE_MAX);
	h1_leg_init(&s->h1, &b->worker, s->stream, &s->in, s->scratch);
	loop_run_once(b->loop, false);
}

static inline void seat_close(struct seat *s)
{
	h1_leg_fini(&s->h1);
	s->stream = stream_free(s->stream);
	s->far = fd_close(s->far);
	buf_fini(&s->in);
	buf_fini(&s->got);
	free(s->scratch);
}

/* The far end says; all of it has to fit. */
static inline void seat_say(struct seat *s, struct span bytes)
{
	must(write(s->far, bytes.ptr, bytes.len) == (ssize_t)bytes.len);
	loop_run_once(s->bench->loop, false);
	loop_run_once(s->bench->loop, false);
}

/* The far end says no more. */
static inline void seat_say_end(struct seat *s)
{
	must(!shutdown(s->far, SHUT_WR));
	loop_run_once(s->bench->loop, false);
	loop_run_once(s->bench->loop, false);
}

/* The far end takes what is on its way; all that was flushed arrives. */
static inline void seat_listen(struct seat *s)
{
	unsigned turns = 0;
	char *room;
	ssize_t n;

	do {
		(void)stream_flush(s->stream);
		must(!buf_reserve(&s->got, 64 * 1024, &room));
		n = read(s->far, room, 64 * 1024);
		if (n > 0)
			buf_commit(&s->got, (size_t)n);
		loop_run_once(s->bench->loop, false);
		must(n > 0 || turns++ < LEGS_PATIENCE);
	} while (n > 0 ||
		 (stream_unsent(s->stream) && !stream_error(s->stream)));
}

/* As at the end of a turn: the scratch is somebody else's next. */
static inline void seat_settle(struct seat *s)
{
	assert_int_equal(h1_leg_settle(&s->h1), 0);
	memset(s->scratch, '#', WORKER_SCRATCH_BYTES);
	loop_run_once(s->bench->loop, false);
}

static inline void assert_bytes(struct span found, struct span expected)
{
	assert_int_equal(found.len, expected.len);
	if (expected.len)
		assert_memory_equal(found.ptr, expected.ptr, expected.len);
}

/* What was said after the body is there, whole and untouched. */
static inline void assert_rest(struct seat *s, struct span rest)
{
	CLEANUP(buf_fini) struct buf found = BUF_INIT(LEGS_WIRE_MAX);

	while (h1_leg_fill(&s->h1, SIZE_MAX) == LEG_PIECE) {
		must(!buf_put(&found, s->h1.raw));
		s->h1.raw = SPAN_NONE;
	}
	assert_bytes(buf_peek(&found), rest);
}
