/* SPDX-License-Identifier: Apache-2.0 */
/* test_splice.c - joined streams: order, ends, bulk, idle time, cancelling */

#include "tests/unit/io/party.h"

#include <dirent.h>

static struct loop *loop;

struct outcome {
	unsigned calls;
	uint64_t a_to_b, b_to_a;
	int error;
};

/* client - a | b - server */
struct joint {
	struct party client, server;
	struct splice *splice;
	struct outcome outcome;
};

static unsigned open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

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

static struct stream *stream_of(int fd)
{
	struct stream *s = NULL;

	assert_int_equal(stream_new(loop, fd, &s), 0);
	return s;
}

static void turns(int n)
{
	while (n--)
		loop_run_once(loop, false);
}

static void on_done(void *ctx, uint64_t a_to_b, uint64_t b_to_a, int error)
{
	struct outcome *o = ctx;

	o->calls++;
	o->a_to_b = a_to_b;
	o->b_to_a = b_to_a;
	o->error = error;
}

static void joint_init(struct joint *j, bool tcp, bool small, size_t up,
		       size_t down, uint64_t idle_ms)
{
	struct stream *a, *b;
	int x[2], y[2];

	memset(j, 0, sizeof(*j));
	(tcp ? tcp_pair : unix_pair)(x);
	(tcp ? tcp_pair : unix_pair)(y);
	for (int i = 0; i < 2 && small; i++) {
		small_buffers(x[i]);
		small_buffers(y[i]);
	}
	party_init(&j->client, stream_of(x[0]), 1, 2, up, 200000);
	party_init(&j->server, stream_of(y[1]), 2, 1, down, 200000);
	a = stream_of(x[1]);
	b = stream_of(y[0]);
	assert_int_equal(
		stream_splice(a, b, idle_ms, on_done, &j->outcome, &j->splice),
		0);
}

static void joint_fini(struct joint *j)
{
	parties_free(&j->client, &j->server);
}

static void splice__moves_both_ways(void **state)
{
	static const struct {
		bool tcp, small;
		size_t up, down;
	} rows[] = {
		{ true, false, 0, 0 },
		{ true, false, 10, 0 },
		{ true, false, 0, 300 },
		{ true, false, 5000, 20 << 20 },
		{ true, true, 2 << 20, 2 << 20 },
		{ false, false, 8 << 20, 8 << 20 },
		{ false, true, 1 << 20, 30000 },
	};
	struct joint j;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		joint_init(&j, rows[i].tcp, rows[i].small, rows[i].up,
			   rows[i].down, 10000);
		if (!parties_run(loop, &j.client, &j.server))
			fail_msg("row %zu: %zu of %zu, %zu of %zu", i,
				 j.server.received, rows[i].up,
				 j.client.received, rows[i].down);
		turns(3);
		assert_int_equal(j.client.error, 0);
		assert_int_equal(j.server.error, 0);
		assert_int_equal(j.client.wrong + j.server.wrong, 0);
		assert_int_equal(j.outcome.calls, 1);
		assert_int_equal(j.outcome.error, 0);
		assert_int_equal(j.outcome.a_to_b, rows[i].up);
		assert_int_equal(j.outcome.b_to_a, rows[i].down);
		joint_fini(&j);
	}
}

static void splice__half_close_passes(void **state)
{
	struct joint j;

	(void)state;
	joint_init(&j, true, false, 1000, 0, 10000);
	j.server.keep_open = true;
	turns(30);
	assert_true(j.server.ended_in);
	assert_false(j.client.ended_in);
	assert_int_equal(j.outcome.calls, 0);
	j.server.keep_open = false;
	j.server.to_send = 400000;
	party_want(&j.server);
	assert_true(parties_run(loop, &j.client, &j.server));
	turns(3);
	assert_int_equal(j.client.received, 400000);
	assert_int_equal(j.client.wrong, 0);
	assert_int_equal(j.outcome.calls, 1);
	joint_fini(&j);
}

static void splice__what_was_read_ahead_goes_first(void **state)
{
	struct outcome o = { 0 };
	struct splice *sp;
	struct stream *a, *b;
	char bytes[64];
	int x[2], y[2];

	(void)state;
	tcp_pair(x);
	tcp_pair(y);
	a = stream_of(x[1]);
	b = stream_of(y[0]);
	assert_int_equal(write(x[0], "hello world", 11), 11);
	turns(2);
	assert_int_equal(stream_read(a, bytes, 6), 6);
	assert_int_equal(stream_unread(a, span_of(bytes, 6)), 0);
	assert_int_equal(stream_write(b, SPAN("first ")), 0);
	assert_int_equal(stream_splice(a, b, 0, on_done, &o, &sp), 0);
	turns(4);
	assert_int_equal(recv(y[1], bytes, sizeof(bytes), 0), 17);
	assert_memory_equal(bytes, "first hello world", 17);
	fd_close(x[0]);
	fd_close(y[1]);
	turns(4);
	assert_int_equal(o.calls, 1);
	assert_int_equal(o.a_to_b, 11);
}

static void splice__idle_pair_holds_no_pipe(void **state)
{
	unsigned before = open_fds();
	struct joint j;

	(void)state;
	joint_init(&j, true, false, 4 << 20, 4 << 20, 10000);
	j.client.keep_open = j.server.keep_open = true;
	for (int i = 0; i < 100000 && (j.client.received < 4 << 20 ||
				       j.server.received < 4 << 20);
	     i++)
		turns(1);
	turns(4);
	assert_int_equal(j.client.wrong + j.server.wrong, 0);
	/* Both pipes are in the loop's store: 4 sockets and those. */
	assert_in_range(open_fds() - before, 4, 8);
	joint_fini(&j);
	turns(6);
	assert_int_equal(j.outcome.calls, 1);
	loop_free(loop);
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(open_fds(), before);
}

static void splice__idle_time_ends_it(void **state)
{
	uint64_t start_ms = clock_ms();
	struct joint j;

	(void)state;
	joint_init(&j, true, false, 100, 100, 60);
	j.client.keep_open = j.server.keep_open = true;
	while (!j.outcome.calls && clock_ms() < start_ms + 2000) {
		turns(1);
		usleep(500);
	}
	assert_int_equal(j.outcome.calls, 1);
	assert_int_equal(j.outcome.error, -ETIMEDOUT);
	assert_true(clock_ms() >= start_ms + 60);
	turns(3);
	assert_int_equal(j.client.error, -ECONNRESET);
	assert_int_equal(j.server.error, -ECONNRESET);
	joint_fini(&j);
}

static void splice__cancel_tells_from_the_loop(void **state)
{
	struct joint j;

	(void)state;
	joint_init(&j, true, true, 64 << 20, 0, 0);
	turns(20);
	splice_cancel(j.splice, -EACCES);
	splice_cancel(j.splice, -EIO);
	assert_int_equal(j.outcome.calls, 0);
	turns(5);
	assert_int_equal(j.outcome.calls, 1);
	assert_int_equal(j.outcome.error, -EACCES);
	assert_true(j.client.error < 0);
	assert_int_equal(j.server.error, -ECONNRESET);
	joint_fini(&j);
}

static void splice__reset_passes(void **state)
{
	struct joint j;

	(void)state;
	joint_init(&j, true, false, 100, 100, 10000);
	j.client.keep_open = j.server.keep_open = true;
	turns(10);
	j.client.stream = stream_reset(j.client.stream);
	turns(5);
	assert_int_equal(j.outcome.calls, 1);
	assert_int_equal(j.outcome.error, -ECONNRESET);
	assert_int_equal(j.server.error, -ECONNRESET);
	joint_fini(&j);
}

/* The end of a way came with its last bytes, and goes on with them. */
static void splice__last_bytes_and_end_are_one_packet(void **state)
{
	struct outcome outcome = { 0 };
	struct splice *sp;
	int x[2], y[2];
	unsigned before;
	char bytes[8];

	(void)state;
	tcp_pair(x);
	tcp_pair(y);
	assert_int_equal(write(x[0], "last", 4), 4);
	assert_int_equal(shutdown(x[0], SHUT_WR), 0);
	before = packets_of(y[0]);
	assert_int_equal(stream_splice(stream_of(x[1]), stream_of(y[0]), 10000,
				       on_done, &outcome, &sp),
			 0);
	turns(5);
	assert_int_equal(packets_of(y[0]), before + 1);
	assert_int_equal(recv(y[1], bytes, sizeof(bytes), 0), 4);
	assert_memory_equal(bytes, "last", 4);
	assert_int_equal(recv(y[1], bytes, sizeof(bytes), 0), 0);

	/* The other way goes on, and ends the same way. */
	assert_int_equal(write(y[1], "answer", 6), 6);
	assert_int_equal(shutdown(y[1], SHUT_WR), 0);
	turns(5);
	assert_int_equal(recv(x[0], bytes, sizeof(bytes), 0), 6);
	assert_int_equal(recv(x[0], bytes, sizeof(bytes), 0), 0);
	assert_int_equal(outcome.calls, 1);
	assert_int_equal(outcome.error, 0);
	assert_int_equal(outcome.a_to_b, 4);
	assert_int_equal(outcome.b_to_a, 6);
	fd_close(x[0]);
	fd_close(y[1]);
}

static void splice__ends_with_the_loop(void **state)
{
	unsigned before = open_fds();
	struct joint j;

	(void)state;
	joint_init(&j, true, true, 8 << 20, 8 << 20, 10000);
	turns(20);
	joint_fini(&j);
	loop_free(loop);
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(j.outcome.calls, 0);
	assert_int_equal(open_fds(), before);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(splice__moves_both_ways),
		TEST(splice__half_close_passes),
		TEST(splice__what_was_read_ahead_goes_first),
		TEST(splice__idle_pair_holds_no_pipe),
		TEST(splice__idle_time_ends_it),
		TEST(splice__cancel_tells_from_the_loop),
		TEST(splice__reset_passes),
		TEST(splice__last_bytes_and_end_are_one_packet),
		TEST(splice__ends_with_the_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
