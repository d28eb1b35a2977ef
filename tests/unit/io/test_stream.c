/* SPDX-License-Identifier: Apache-2.0 */
/* test_stream.c - plain streams: chunking, back-pressure, ends and errors */

#include "tests/unit/io/party.h"

#include <netinet/in.h>

static struct loop *loop;

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

static void stream__any_chunking_both_ways(void **state)
{
	static const struct {
		size_t bytes, piece_max, read_max;
		bool tcp, small;
	} rows[] = {
		{ 0, 1, 0, false, false },
		{ 1, 1, 0, false, false },
		{ 3000, 7, 5, false, false },
		{ 200000, 300, 100, false, true },
		{ 3 << 20, 70000, 0, false, false },
		{ 3 << 20, 300000, 0, false, true },
		{ 8 << 20, 300000, 9000, true, false },
		{ 1 << 20, 40000, 0, true, true },
	};
	struct party a, b;
	int fds[2];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		(rows[i].tcp ? tcp_pair : unix_pair)(fds);
		for (int j = 0; j < 2 && rows[i].small; j++)
			small_buffers(fds[j]);
		party_init(&a, stream_of(fds[0]), 11, 22, rows[i].bytes,
			   rows[i].piece_max);
		party_init(&b, stream_of(fds[1]), 22, 11, rows[i].bytes,
			   rows[i].piece_max);
		a.read_max = b.read_max = rows[i].read_max;
		if (!parties_run(loop, &a, &b))
			fail_msg("row %zu: sent %zu %zu got %zu %zu", i, a.sent,
				 b.sent, a.received, b.received);
		assert_int_equal(a.error, 0);
		assert_int_equal(b.error, 0);
		assert_int_equal(a.wrong + b.wrong, 0);
		assert_int_equal(a.received, rows[i].bytes);
		assert_int_equal(b.received, rows[i].bytes);
		assert_int_equal(stream_bytes_in(a.stream), rows[i].bytes);
		assert_int_equal(stream_bytes_out(a.stream), rows[i].bytes);
		parties_free(&a, &b);
	}
}

static void stream__pushes_back_and_resumes(void **state)
{
	static char chunk[60000];
	struct stream *s;
	struct party b;
	size_t sent = 0;
	int fds[2], r;

	(void)state;
	unix_pair(fds);
	s = stream_of(fds[0]);
	memset(chunk, sequence_at(0, 0), sizeof(chunk));
	while ((r = stream_write(s, span_of(chunk, sizeof(chunk)))) == 0)
		sent += sizeof(chunk);
	assert_int_equal(r, STREAM_AGAIN);
	assert_true(sent < (2u << 20));
	assert_true(stream_unsent(s) >= STREAM_UNSENT_MAX);
	assert_true(stream_unsent(s) < STREAM_UNSENT_MAX + sizeof(chunk));
	assert_int_equal(stream_flush(s), STREAM_AGAIN);
	turns(3);
	assert_true(stream_unsent(s) > 0);

	party_init(&b, stream_of(fds[1]), 0, 0, 0, 1);
	for (int i = 0; i < 100 && stream_unsent(s); i++)
		turns(1);
	assert_int_equal(stream_unsent(s), 0);
	assert_int_equal(stream_flush(s), 0);
	turns(10);
	assert_int_equal(b.received, sent);
	stream_free(s);
	stream_free(b.stream);
}

static void stream__small_writes_make_one_send(void **state)
{
	char bytes[64];
	struct stream *s;
	int fds[2];

	(void)state;
	assert_int_equal(
		socketpair(AF_UNIX,
			   SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
			   fds),
		0);
	s = stream_of(fds[0]);
	assert_int_equal(stream_write(s, SPAN("head ")), 0);
	assert_int_equal(stream_write(s, SPAN("")), 0);
	assert_int_equal(stream_write(s, SPAN("body")), 0);
	assert_int_equal(recv(fds[1], bytes, sizeof(bytes), 0), -1);
	turns(1);
	assert_int_equal(recv(fds[1], bytes, sizeof(bytes), 0), 9);
	stream_free(s);
	fd_close(fds[1]);
}

static void stream__unread_comes_first(void **state)
{
	struct stream *s;
	char bytes[64];
	int fds[2];

	(void)state;
	unix_pair(fds);
	s = stream_of(fds[0]);
	assert_int_equal(write(fds[1], "world", 5), 5);
	assert_int_equal(stream_unread(s, SPAN("lo ")), 0);
	assert_int_equal(stream_unread(s, SPAN("hel")), 0);
	turns(1);
	assert_int_equal(stream_read(s, bytes, 4), 4);
	assert_memory_equal(bytes, "hell", 4);
	assert_int_equal(stream_read(s, bytes, sizeof(bytes)), 2);
	assert_int_equal(stream_read(s, bytes, sizeof(bytes)), 5);
	assert_int_equal(stream_read(s, bytes, sizeof(bytes)), STREAM_AGAIN);
	stream_free(s);
	fd_close(fds[1]);
}

struct watcher {
	unsigned calls, events;
	bool free_it;
};

static void watcher_on_event(struct stream *s, void *ctx, unsigned events)
{
	struct watcher *w = ctx;

	w->calls++;
	w->events |= events;
	if (w->free_it)
		stream_free(s);
	else
		stream_want(s, stream_wanted(s) & ~events);
}

static void stream__unread_bytes_are_announced(void **state)
{
	struct watcher w = { 0 };
	struct stream *s;
	int fds[2];

	(void)state;
	unix_pair(fds);
	s = stream_of(fds[0]);
	stream_set_owner(s, watcher_on_event, &w);
	stream_want(s, STREAM_READABLE);
	turns(2);
	assert_int_equal(w.calls, 0);
	assert_int_equal(stream_unread(s, SPAN("x")), 0);
	assert_int_equal(w.calls, 0);
	turns(1);
	assert_int_equal(w.calls, 1);
	stream_want(s, STREAM_READABLE);
	turns(1);
	assert_int_equal(w.calls, 2);
	stream_free(s);
	fd_close(fds[1]);
}

static void note_kick(struct stream *s, void *ctx, unsigned events)
{
	unsigned *kicks = ctx;

	(void)s;
	if (events & STREAM_KICKED)
		*kicks += 1;
	if (*kicks == 1)
		stream_kick(s); /* once more, in the next round */
}

/* Without a cause in the kernel, from the loop, once for each wish. */
static void stream__is_kicked(void **state)
{
	struct stream *s;
	unsigned kicks = 0;
	int fds[2];

	(void)state;
	unix_pair(fds);
	s = stream_of(fds[0]);
	stream_set_owner(s, note_kick, &kicks);
	stream_kick(s);
	turns(2);
	assert_int_equal(kicks, 0); /* nobody wanted it */
	stream_want(s, STREAM_KICKED);
	assert_int_equal(kicks, 0); /* from the loop only */
	turns(5);
	assert_int_equal(kicks, 2);
	stream_free(s);
	fd_close(fds[1]);
}

static void stream__may_be_freed_in_its_callback(void **state)
{
	struct watcher w = { .free_it = true };
	struct stream *s;
	int fds[2];

	(void)state;
	unix_pair(fds);
	s = stream_of(fds[0]);
	stream_set_owner(s, watcher_on_event, &w);
	stream_want(s, STREAM_READABLE | STREAM_WRITABLE);
	assert_int_equal(stream_write(s, SPAN("gone")), 0);
	turns(2);
	assert_int_equal(w.calls, 1);
	fd_close(fds[1]);
}

static void stream__half_close(void **state)
{
	struct party a, b;
	int fds[2];

	(void)state;
	tcp_pair(fds);
	party_init(&a, stream_of(fds[0]), 1, 2, 100, 100);
	party_init(&b, stream_of(fds[1]), 2, 1, 0, 1);
	b.keep_open = true;
	turns(4);
	assert_true(a.ended_out && b.ended_in);
	assert_false(a.ended_in);
	assert_int_equal(stream_write(a.stream, SPAN("x")), -EPIPE);
	/* The other direction still works. */
	b.to_send = 500000;
	b.piece_max = 5000;
	b.keep_open = false;
	party_want(&b);
	assert_true(parties_run(loop, &a, &b));
	assert_int_equal(a.received, 500000);
	assert_int_equal(a.wrong, 0);
	parties_free(&a, &b);
}

static void stream__connects(void **state)
{
	struct watcher w = { 0 };
	struct stream *s = NULL;
	struct addr addr;
	int listener;

	(void)state;
	listener = tcp_listen(&addr);
	assert_int_equal(stream_connect(loop, &addr, &s), 0);
	stream_set_owner(s, watcher_on_event, &w);
	assert_int_equal(stream_write(s, SPAN("early")), 0);
	turns(3);
	assert_int_equal(w.calls, 0); /* kept until it is wanted */
	assert_int_equal(stream_bytes_out(s), 5);
	stream_want(s, STREAM_CONNECTED);
	turns(2);
	assert_int_equal(w.calls, 1);
	assert_int_equal(w.events, STREAM_CONNECTED);
	assert_int_equal(stream_error(s), 0);
	stream_free(s);
	fd_close(listener);
}

/* A server hears that the connection stands, and what for, in one packet. */
static void stream__first_bytes_say_that_it_stands(void **state)
{
	struct stream *s = NULL;
	struct addr addr;
	char bytes[8];
	int listener, fd;

	(void)state;
	listener = tcp_listen(&addr);
	assert_int_equal(stream_connect_to_speak(loop, &addr, &s), 0);
	turns(3);
	assert_int_equal(packets_of(stream_fd(s)), 1); /* SYN */
	assert_int_equal(accept4(listener, NULL, NULL, 0), -1);
	assert_int_equal(stream_write(s, SPAN("hello")), 0);
	turns(1);
	assert_int_equal(packets_of(stream_fd(s)), 2);
	fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_int_equal(recv(fd, bytes, sizeof(bytes), 0), 5);

	/* What it says is acknowledged at once, as ever. */
	assert_int_equal(send(fd, "a", 1, 0), 1);
	turns(1);
	assert_int_equal(packets_of(stream_fd(s)), 3);
	stream_free(s);
	fd_close(fd);
	fd_close(listener);
}

/* Some greet, and do so once they hear it. */
static void stream__that_listens_is_heard_of_at_once(void **state)
{
	struct stream *s = NULL;
	struct addr addr;
	int listener, fd;

	(void)state;
	listener = tcp_listen(&addr);
	assert_int_equal(stream_connect(loop, &addr, &s), 0);
	assert_int_equal(packets_of(stream_fd(s)), 2); /* SYN, ACK */
	fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(fd >= 0);
	stream_free(s);
	fd_close(fd);
	fd_close(listener);
}

static void stream__end_goes_with_the_last_bytes(void **state)
{
	struct stream *s;
	unsigned before;
	char bytes[8];
	int fds[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		tcp_pair(fds);
		s = stream_of(fds[0]);
		before = packets_of(fds[0]);
		assert_int_equal(stream_write(s, SPAN("bye")), 0);
		if (i == 0)
			stream_shutdown_write(s);
		else
			stream_close(s, 1000);
		turns(2);
		assert_int_equal(packets_of(fds[0]), before + 1);
		assert_int_equal(recv(fds[1], bytes, sizeof(bytes), 0), 3);
		assert_int_equal(recv(fds[1], bytes, sizeof(bytes), 0), 0);
		fd_close(fds[1]);
		if (i == 0)
			stream_free(s);
		turns(2);
	}
}

static int option_of(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int on = -1;

	assert_int_equal(getsockopt(fd, level, name, &on, &len), 0);
	return on;
}

static int keepalive_of(int fd)
{
	return option_of(fd, SOL_SOCKET, SO_KEEPALIVE);
}

/* Not at once: most that we connect do not live that long. */
static void stream__that_lives_on_is_kept_alive(void **state)
{
	uint64_t until = clock_ms() + 5000;
	struct stream *s = NULL;
	struct addr addr;
	int listener;

	(void)state;
	listener = tcp_listen(&addr);
	assert_int_equal(stream_connect(loop, &addr, &s), 0);
	turns(3);
	assert_int_equal(keepalive_of(stream_fd(s)), 0);
	assert_int_equal(option_of(stream_fd(s), IPPROTO_TCP, TCP_NODELAY), 1);
	while (!keepalive_of(stream_fd(s)) && clock_ms() < until)
		turns(1);
	assert_int_equal(keepalive_of(stream_fd(s)), 1);
	stream_free(s);
	fd_close(listener);
}

static void stream__connect_is_refused(void **state)
{
	struct watcher w = { 0 };
	struct stream *s = NULL;
	struct addr addr;
	char byte;

	(void)state;
	fd_close(tcp_listen(&addr));
	assert_int_equal(stream_connect(loop, &addr, &s), 0);
	stream_set_owner(s, watcher_on_event, &w);
	stream_want(s, STREAM_CONNECTED | STREAM_READABLE);
	turns(3);
	assert_true(w.events & STREAM_CONNECTED);
	assert_int_equal(stream_error(s), -ECONNREFUSED);
	assert_int_equal(stream_read(s, &byte, 1), -ECONNREFUSED);
	assert_int_equal(stream_write(s, SPAN("x")), -ECONNREFUSED);
	stream_free(s);

	assert_true(addr_parse_port(span_str("[ff02::1]:9"), 9, &addr));
	w = (struct watcher){ 0 };
	assert_int_equal(stream_connect(loop, &addr, &s), 0);
	stream_set_owner(s, watcher_on_event, &w);
	stream_want(s, STREAM_CONNECTED);
	assert_int_equal(w.calls, 0);
	turns(2);
	assert_int_equal(w.calls, 1);
	assert_true(stream_error(s) < 0);
	stream_free(s);
}

static void stream__reset_is_an_error(void **state)
{
	struct watcher w = { 0 };
	struct stream *s;
	char byte;
	int fds[2];

	(void)state;
	tcp_pair(fds);
	s = stream_of(fds[0]);
	stream_set_owner(s, watcher_on_event, &w);
	stream_want(s, STREAM_READABLE);
	stream_reset(stream_of(fds[1]));
	turns(3);
	assert_int_equal(w.calls, 1);
	assert_int_equal(stream_read(s, &byte, 1), -ECONNRESET);
	assert_int_equal(stream_error(s), -ECONNRESET);
	stream_free(s);
}

/* The reset hides behind bytes that came with it: see stream_read.c. */
static void stream__reset_right_after_bytes_is_found(void **state)
{
	struct watcher w = { 0 };
	uint64_t end_ms = clock_ms() + 3000;
	struct stream *s;
	char bytes[64];
	int fds[2];

	(void)state;
	tcp_pair(fds);
	s = stream_of(fds[0]);
	turns(1);
	assert_int_equal(write(fds[1], "last", 4), 4);
	stream_reset(stream_of(fds[1]));
	turns(1);
	if (stream_read(s, bytes, sizeof(bytes)) == 4)
		assert_memory_equal(bytes, "last", 4);
	stream_set_owner(s, watcher_on_event, &w);
	stream_want(s, STREAM_READABLE);
	while (!w.calls && clock_ms() < end_ms) {
		loop_run_once(loop, false);
		usleep(1000);
	}
	assert_int_equal(w.calls, 1);
	assert_int_equal(stream_read(s, bytes, 1), -ECONNRESET);
	stream_free(s);
}

/* An early answer must be readable although our write met a reset. */
static void stream__failed_write_does_not_hide_input(void **state)
{
	struct watcher w = { 0 };
	struct stream *s;
	char bytes[64];
	int fds[2];

	(void)state;
	unix_pair(fds);
	s = stream_of(fds[0]);
	assert_int_equal(write(fds[1], "413", 3), 3);
	fd_close(fds[1]);
	stream_set_owner(s, watcher_on_event, &w);
	stream_want(s, STREAM_READABLE);
	assert_int_equal(stream_write(s, SPAN("body")), 0);
	turns(2);
	assert_int_equal(stream_error(s), -EPIPE);
	assert_int_equal(stream_read(s, bytes, sizeof(bytes)), 3);
	assert_true(stream_read(s, bytes, sizeof(bytes)) <= 0);
	assert_int_equal(stream_write(s, SPAN("body")), -EPIPE);
	stream_free(s);
}

static void stream__close_delivers_everything(void **state)
{
	static char big[200000];
	struct stream *s;
	struct party b;
	int fds[2];

	(void)state;
	tcp_pair(fds);
	small_buffers(fds[0]);
	s = stream_of(fds[0]);
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = sequence_at(1, i);
	assert_int_equal(stream_write(s, span_of(big, sizeof(big))), 0);
	/* Unread input at the closing side must not destroy the output. */
	assert_int_equal(write(fds[1], "late", 4), 4);
	assert_null(stream_close(s, 5000));
	party_init(&b, stream_of(fds[1]), 2, 1, 0, 1);
	for (int i = 0; i < 100000 && !b.finished; i++)
		turns(1);
	assert_int_equal(b.received, sizeof(big));
	assert_int_equal(b.wrong, 0);
	assert_int_equal(b.error, 0);
	stream_free(b.stream);
	turns(3);
}

static void stream__close_gives_up(void **state)
{
	static char big[200000];
	int fds[2], more[2];
	struct stream *s;

	(void)state;
	unix_pair(fds);
	s = stream_of(fds[0]);
	assert_int_equal(stream_write(s, span_of(big, sizeof(big))), 0);
	assert_null(stream_close(s, 30));
	for (int i = 0; i < 60; i++) {
		usleep(1000);
		turns(1);
	}
	assert_int_equal(fcntl(fds[0], F_GETFD), -1);
	/* One that still lingers at the end of the loop is not leaked. */
	unix_pair(more);
	assert_null(stream_close(stream_of(more[0]), 100000));
	fd_close(fds[1]);
	fd_close(more[1]);
}

static size_t read_all(int fd)
{
	static char bytes[65536];
	size_t got = 0;
	ssize_t n;

	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		got += (size_t)n;
	return got;
}

static void turns_for(int ms)
{
	while (ms--) {
		usleep(1000);
		turns(1);
	}
}

static void stream__close_waits_while_the_peer_takes(void **state)
{
	static char big[1000000];
	struct stream *s;
	size_t got = 0;
	int fds[2], pauses;

	(void)state;
	tcp_pair(fds);
	small_buffers(fds[0]);
	small_buffers(fds[1]);
	assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	s = stream_of(fds[0]);
	assert_int_equal(stream_write(s, span_of(big, sizeof(big))), 0);
	loop_end_soon(loop);
	assert_false(loop_has_unsent(loop));
	assert_null(stream_close(s, 100));
	/* longer than its patience in all, but never as long at a time */
	for (pauses = 0; got < sizeof(big) && pauses < 500; pauses++) {
		assert_true(loop_has_unsent(loop));
		turns_for(40);
		got += read_all(fds[1]);
	}
	assert_int_equal(got, sizeof(big));
	assert_in_range(pauses, 4, 499);
	turns_for(300);
	assert_false(loop_has_unsent(loop));
	assert_int_equal(fcntl(fds[0], F_GETFD), -1);
	fd_close(fds[1]);
}

static void stream__alert_in_the_clear(void **state)
{
	unsigned char record[16];
	struct stream *s;
	int fds[2];

	(void)state;
	tcp_pair(fds);
	s = stream_of(fds[0]);
	assert_null(stream_close_alert(s, 49));
	turns(2);
	assert_int_equal(recv(fds[1], record, sizeof(record), 0), 7);
	assert_memory_equal(record, "\x15\x03\x01\x00\x02\x02\x31", 7);
	fd_close(fds[1]);
	turns(2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(stream__any_chunking_both_ways),
		TEST(stream__pushes_back_and_resumes),
		TEST(stream__small_writes_make_one_send),
		TEST(stream__unread_comes_first),
		TEST(stream__unread_bytes_are_announced),
		TEST(stream__is_kicked),
		TEST(stream__may_be_freed_in_its_callback),
		TEST(stream__half_close),
		TEST(stream__connects),
		TEST(stream__first_bytes_say_that_it_stands),
		TEST(stream__that_listens_is_heard_of_at_once),
		TEST(stream__end_goes_with_the_last_bytes),
		TEST(stream__that_lives_on_is_kept_alive),
		TEST(stream__connect_is_refused),
		TEST(stream__reset_is_an_error),
		TEST(stream__reset_right_after_bytes_is_found),
		TEST(stream__failed_write_does_not_hide_input),
		TEST(stream__close_delivers_everything),
		TEST(stream__close_gives_up),
		TEST(stream__close_waits_while_the_peer_takes),
		TEST(stream__alert_in_the_clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
