/* SPDX-License-Identifier: Apache-2.0 */
/* test_cost.c - prints what an exchange and bulk cost; judges nothing
 *
 * Client and server share one loop, so a figure is the CPU time of both sides.
 * "bare" is the same exchange by blocking system calls, the floor.
 */

#include "tests/unit/io/tls_party.h"

#include <time.h>

enum { WARM_UP = 500, EXCHANGES = 20000, REQUEST = 300, ANSWER = 800 };

struct side {
	struct stream *stream;
	struct loop *loop;
	unsigned left;
	size_t answer, expect, got;
};

static char bytes[256 * 1024];

/* Of this process: the machine may be busy with something else. */
static double cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void side_on_event(struct stream *s, void *ctx, unsigned events)
{
	struct side *side = ctx;
	ssize_t n;

	(void)events;
	n = stream_read(s, bytes, sizeof(bytes));
	if (n <= 0)
		return;
	side->got += (size_t)n;
	if (side->got < side->expect)
		return;
	side->got = 0;
	if (!side->left--)
		loop_stop(side->loop);
	else
		assert_int_equal(stream_write(s, span_of(bytes, side->answer)),
				 0);
}

static double exchanges_run(struct loop *loop, struct stream *a,
			    struct stream *b)
{
	struct side client = { a, loop, WARM_UP, REQUEST, ANSWER, 0 };
	struct side server = { b, loop, UINT32_MAX, ANSWER, REQUEST, 0 };
	double start_ns;

	stream_set_owner(a, side_on_event, &client);
	stream_set_owner(b, side_on_event, &server);
	stream_want(a, STREAM_READABLE);
	stream_want(b, STREAM_READABLE);
	assert_int_equal(stream_write(a, span_of(bytes, REQUEST)), 0);
	loop_run(loop);

	client.left = EXCHANGES;
	assert_int_equal(stream_write(a, span_of(bytes, REQUEST)), 0);
	start_ns = cpu_ns();
	loop_run(loop);
	return (cpu_ns() - start_ns) / EXCHANGES;
}

static double bare_run(const int fds[2])
{
	double start_ns = cpu_ns();

	for (int i = 0; i < EXCHANGES; i++) {
		assert_int_equal(send(fds[0], bytes, REQUEST, 0), REQUEST);
		assert_int_equal(recv(fds[1], bytes, 65536, 0), REQUEST);
		assert_int_equal(send(fds[1], bytes, ANSWER, 0), ANSWER);
		assert_int_equal(recv(fds[0], bytes, 65536, 0), ANSWER);
	}
	return (cpu_ns() - start_ns) / EXCHANGES;
}

static void cost__of_an_exchange(void **state)
{
	static const char *const kinds[] = { "unix", "tcp" };
	struct tls_world w;
	struct stream *a, *b;
	struct loop *loop;
	double ns[3];
	int fds[2];

	(void)state;
	tls_world_init(&w, 0);
	assert_int_equal(loop_new(&loop), 0);
	for (int tcp = 0; tcp < 2; tcp++) {
		(tcp ? tcp_pair : unix_pair)(fds);
		ns[0] = bare_run(fds);
		assert_int_equal(stream_new(loop, fds[0], &a), 0);
		assert_int_equal(stream_new(loop, fds[1], &b), 0);
		ns[1] = exchanges_run(loop, a, b);
		assert_int_equal(
			stream_start_tls(a, ssl_client(&w, "origin.test")), 0);
		assert_int_equal(stream_start_tls(b, ssl_server(&w)), 0);
		for (int i = 0; i < 20; i++)
			loop_run_once(loop, false);
		ns[2] = exchanges_run(loop, a, b);
		print_message("exchange over %s: bare %.0f ns, plain %.0f ns, "
			      "TLS %.0f ns\n",
			      kinds[tcp], ns[0], ns[1], ns[2]);
		stream_free(a);
		stream_free(b);
	}
	loop_free(loop);
	tls_world_fini(&w);
}

struct flow {
	struct loop *loop;
	size_t left;
};

static void source_on_event(struct stream *s, void *ctx, unsigned events)
{
	(void)ctx;
	(void)events;
	assert_int_equal(stream_write(s, span_of(bytes, 128 * 1024)), 0);
}

static void sink_on_event(struct stream *s, void *ctx, unsigned events)
{
	struct flow *f = ctx;
	ssize_t n;

	(void)events;
	n = stream_read(s, bytes, 128 * 1024);
	if (n > 0)
		f->left -= MIN(f->left, (size_t)n);
	if (!f->left)
		loop_stop(f->loop);
}

static double bulk_run(struct loop *loop, struct stream *a, struct stream *b)
{
	const size_t total = 256u << 20;
	struct flow f = { loop, total };
	double start_ns = cpu_ns();

	stream_set_owner(a, source_on_event, NULL);
	stream_set_owner(b, sink_on_event, &f);
	stream_want(a, STREAM_WRITABLE);
	stream_want(b, STREAM_READABLE);
	loop_run(loop);
	return (double)total * 1000 / (cpu_ns() - start_ns);
}

static void cost__of_bulk(void **state)
{
	struct stream *a, *b;
	struct tls_world w;
	struct loop *loop;
	double rate[2];
	int fds[2];

	(void)state;
	tls_world_init(&w, 0);
	assert_int_equal(loop_new(&loop), 0);
	for (int tls = 0; tls < 2; tls++) {
		tcp_pair(fds);
		assert_int_equal(stream_new(loop, fds[0], &a), 0);
		assert_int_equal(stream_new(loop, fds[1], &b), 0);
		if (tls) {
			assert_int_equal(
				stream_start_tls(a,
						 ssl_client(&w, "origin.test")),
				0);
			assert_int_equal(stream_start_tls(b, ssl_server(&w)),
					 0);
		}
		rate[tls] = bulk_run(loop, a, b);
		stream_free(a);
		stream_free(b);
	}
	print_message("bulk over tcp: plain %.0f MB/s, TLS %.0f MB/s\n",
		      rate[0], rate[1]);
	loop_free(loop);
	tls_world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cost__of_an_exchange),
		cmocka_unit_test(cost__of_bulk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
