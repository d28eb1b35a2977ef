/* SPDX-License-Identifier: Apache-2.0 */
/* test_pace.c - streams that share what they may read: rate, turns, ends */

#include "tests/unit/io/party.h"

#include "src/io/pace.h"

enum {
	CHUNK = 1000,
	STREAMS = 10,
	BUDGET_PLENTY = 1000 * 1000 * 1000,
	TURNS_IN_SILENCE = 60,
	READ_BYTES = 64 * 1024,
};

static struct loop *loop;

/* An owner with so many bytes to give. */
struct owner {
	uint64_t budget;
	bool no_limit;
	unsigned draws, released;
};

static uint64_t owner_draw(void *ctx)
{
	struct owner *o = ctx;
	uint64_t chunk = MIN(o->budget, (uint64_t)CHUNK);

	o->draws++;
	if (o->no_limit)
		return UINT64_MAX;
	o->budget -= chunk;
	return chunk;
}

static void owner_release(void *ctx)
{
	((struct owner *)ctx)->released++;
}

static const struct pace_ops ops = {
	.draw = owner_draw,
	.release = owner_release,
};

/* A stream that reads all it can, fed by a socket that is always full. */
struct reader {
	struct stream *stream;
	int peer;
	size_t got;
	unsigned calls;
};

static int setup(void **state)
{
	(void)state;
	return loop_new(&loop);
}

static int teardown(void **state)
{
	(void)state;
	loop = loop_free(loop);
	return 0;
}

static void reader_feed(struct reader *r)
{
	static const char bytes[READ_BYTES];

	while (send(r->peer, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static void on_readable(struct stream *s, void *ctx, unsigned events)
{
	static char bytes[READ_BYTES];
	struct reader *r = ctx;
	ssize_t n;

	(void)events;
	r->calls++;
	n = stream_read(s, bytes, sizeof(bytes));
	if (n > 0)
		r->got += (size_t)n;
}

static void reader_open(struct reader *r, struct pace *p)
{
	int fds[2];

	*r = (struct reader){ .peer = -1 };
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	r->peer = fds[1];
	assert_int_equal(stream_new(loop, fds[0], &r->stream), 0);
	stream_set_pace(r->stream, p);
	stream_set_owner(r->stream, on_readable, r);
	stream_want(r->stream, STREAM_READABLE);
}

static void reader_init(struct reader *r, struct pace *p)
{
	reader_open(r, p);
	reader_feed(r);
}

static void reader_fini(struct reader *r)
{
	r->stream = stream_free(r->stream);
	r->peer = fd_close(r->peer);
}

/* The loop for so long. */
static void run_ms(uint64_t ms, struct reader *readers, unsigned count)
{
	uint64_t end_ms = clock_ms() + ms;
	unsigned i;

	while (clock_ms() < end_ms) {
		for (i = 0; i < count; i++)
			reader_feed(&readers[i]);
		loop_run_once(loop, false);
		(void)usleep(200);
	}
}

/* The same, but the loop sleeps as long as it likes; how often it turned. */
static unsigned turns_in_ms(uint64_t ms)
{
	uint64_t end_ms = clock_ms() + ms;
	unsigned turns = 0;

	for (; clock_ms() < end_ms; turns++)
		loop_run_once(loop, true);
	return turns;
}

static void pace__reads_what_it_may(void **state)
{
	struct owner o = { .budget = 2500 };
	struct pace *p = pace_new(loop, &ops, &o);
	struct reader r;
	unsigned calls;

	(void)state;
	pace_limit(p, true);
	reader_init(&r, p);
	run_ms(60, &r, 1);
	assert_int_equal(r.got, 2500);

	/* silence is cheap: the loop looks now and then, the owner of the
	 * stream is not called */
	calls = r.calls;
	assert_true(turns_in_ms(100) < TURNS_IN_SILENCE);
	assert_int_equal(r.calls, calls);
	assert_int_equal(r.got, 2500);

	o.budget = 700;
	run_ms(60, &r, 1);
	assert_int_equal(r.got, 3200);
	reader_fini(&r);
	(void)pace_unref(p);
	assert_int_equal(o.released, 1);
}

static void pace__streams_take_turns(void **state)
{
	struct owner o = { .budget = 0 };
	struct pace *p = pace_new(loop, &ops, &o);
	struct reader r[STREAMS];
	unsigned i, round;

	(void)state;
	pace_limit(p, true);
	for (i = 0; i < STREAMS; i++)
		reader_init(&r[i], p);
	run_ms(20, r, STREAMS);
	for (round = 0; round < 20; round++) {
		o.budget += (uint64_t)CHUNK * STREAMS / 2;
		run_ms(16, r, STREAMS);
	}
	run_ms(30, r, STREAMS);
	for (i = 0; i < STREAMS; i++)
		assert_in_range(r[i].got, 9 * CHUNK, 11 * CHUNK);
	for (i = 0; i < STREAMS; i++)
		reader_fini(&r[i]);
	(void)pace_unref(p);
}

/* What the one that was called does not take is the next one's. */
static void pace__leftovers_are_not_lost(void **state)
{
	struct owner o = { .budget = CHUNK };
	struct pace *p = pace_new(loop, &ops, &o);
	struct reader r;
	char bytes[100] = { 0 };
	unsigned i;

	(void)state;
	pace_limit(p, true);
	reader_init(&r, NULL);
	run_ms(20, NULL, 0);
	r.got = 0;
	stream_set_pace(r.stream, p);
	for (i = 0; i < 10; i++) {
		assert_int_equal(send(r.peer, bytes, sizeof(bytes), 0), 100);
		run_ms(5, NULL, 0);
	}
	assert_int_equal(r.got, CHUNK);
	assert_int_equal(o.budget, 0);
	reader_fini(&r);
	(void)pace_unref(p);
}

static void pace__without_a_limit_nobody_is_asked(void **state)
{
	struct owner o = { .budget = 0 };
	struct pace *p = pace_new(loop, &ops, &o);
	struct reader r;

	(void)state;
	reader_init(&r, p);
	run_ms(20, &r, 1);
	assert_true(r.got > READ_BYTES);
	assert_int_equal(o.draws, 0);
	reader_fini(&r);
	(void)pace_unref(p);
}

static void pace__a_limit_comes_and_goes(void **state)
{
	struct owner o = { .budget = 0 };
	struct pace *p = pace_new(loop, &ops, &o);
	struct reader r[2];
	size_t got;

	(void)state;
	reader_init(&r[0], p);
	reader_init(&r[1], p);
	run_ms(10, r, 2);
	pace_limit(p, true);
	run_ms(20, r, 2);
	got = r[0].got;
	run_ms(20, r, 2);
	assert_int_equal(r[0].got, got);
	pace_limit(p, false);
	run_ms(20, r, 2);
	assert_true(r[0].got > got + READ_BYTES);

	/* the owner says it first */
	pace_limit(p, true);
	run_ms(20, r, 2);
	got = r[1].got;
	o.no_limit = true;
	run_ms(20, r, 2);
	assert_true(r[1].got > got + READ_BYTES);
	reader_fini(&r[0]);
	reader_fini(&r[1]);
	(void)pace_unref(p);
}

static void pace__a_stream_may_end_in_the_line(void **state)
{
	struct owner o = { .budget = 0 };
	struct pace *p = pace_new(loop, &ops, &o);
	struct reader r[3];

	(void)state;
	pace_limit(p, true);
	reader_init(&r[0], p);
	reader_init(&r[1], p);
	reader_init(&r[2], p);
	(void)pace_unref(p); /* the streams keep it */
	run_ms(10, r, 3);
	reader_fini(&r[1]);
	stream_set_pace(r[2].stream, NULL);
	run_ms(10, r, 3);
	assert_true(r[2].got > READ_BYTES);
	o.budget = CHUNK;
	run_ms(30, r, 3);
	assert_int_equal(r[0].got, CHUNK);
	assert_int_equal(o.released, 0);
	reader_fini(&r[0]);
	assert_int_equal(o.released, 1);
	reader_fini(&r[2]);
}

/* An end that came while the stream stood in the line is told. */
static void pace__an_end_is_not_lost(void **state)
{
	struct owner o = { .budget = 10 };
	struct pace *p = pace_new(loop, &ops, &o);
	struct reader r;
	static char rest[READ_BYTES];

	(void)state;
	pace_limit(p, true);
	reader_init(&r, p);
	run_ms(20, NULL, 0);
	r.peer = fd_close(r.peer);
	run_ms(20, NULL, 0);
	assert_int_equal(r.got, 10);
	stream_set_owner(r.stream, NULL, NULL);
	o.budget = BUDGET_PLENTY;
	while (stream_read(r.stream, rest, sizeof(rest)) != 0)
		run_ms(1, NULL, 0);
	reader_fini(&r);
	(void)pace_unref(p);
}

struct spliced {
	uint64_t there, back;
	unsigned calls;
};

static void on_spliced(void *ctx, uint64_t there, uint64_t back, int error)
{
	struct spliced *s = ctx;

	assert_int_equal(error, 0);
	s->there = there;
	s->back = back;
	s->calls++;
}

static void pace__spliced_streams_wait_too(void **state)
{
	struct owner o = { .budget = 100 * CHUNK };
	struct pace *p = pace_new(loop, &ops, &o);
	struct spliced done = { 0 };
	struct splice *splice;
	struct reader from, to;
	static char sink[READ_BYTES];
	size_t got = 0;
	ssize_t n;

	(void)state;
	pace_limit(p, true);
	reader_init(&from, p);
	reader_open(&to, NULL);
	stream_set_owner(from.stream, NULL, NULL);
	stream_want(from.stream, 0);
	run_ms(5, NULL, 0);
	assert_int_equal(stream_splice(from.stream, to.stream, 0, on_spliced,
				       &done, &splice),
			 0);
	for (int i = 0; i < 20; i++) {
		run_ms(10, &from, 1);
		while ((n = recv(to.peer, sink, sizeof(sink), 0)) > 0)
			got += (size_t)n;
	}
	assert_int_equal(got + from.got, 100 * CHUNK);
	o.budget = BUDGET_PLENTY;
	from.peer = fd_close(from.peer);
	(void)shutdown(to.peer, SHUT_WR);
	for (int i = 0; i < 1000 && !done.calls; i++) {
		run_ms(5, NULL, 0);
		while (recv(to.peer, sink, sizeof(sink), 0) > 0)
			;
	}
	assert_int_equal(done.calls, 1);
	to.peer = fd_close(to.peer);
	(void)pace_unref(p);
	assert_int_equal(o.released, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pace__reads_what_it_may),
		cmocka_unit_test(pace__streams_take_turns),
		cmocka_unit_test(pace__leftovers_are_not_lost),
		cmocka_unit_test(pace__without_a_limit_nobody_is_asked),
		cmocka_unit_test(pace__a_limit_comes_and_goes),
		cmocka_unit_test(pace__a_stream_may_end_in_the_line),
		cmocka_unit_test(pace__an_end_is_not_lost),
		cmocka_unit_test(pace__spliced_streams_wait_too),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
