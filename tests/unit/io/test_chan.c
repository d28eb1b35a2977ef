/* SPDX-License-Identifier: Apache-2.0 */
/* test_chan.c - messages, fds, bounds and malformed packets on channels */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/io/chan.h"
#include "src/io/loop.h"

struct end {
	struct chan *chan;
	unsigned messages, closed, fds, wrong;
	uint32_t next_serial;
	int error, kept_fd;
	uint16_t type;
	size_t len;
	bool free_on_message, keep_fd;
	char last[64];
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

static void end_on_message(void *ctx, struct chan *c, struct chan_msg *m)
{
	struct end *e = ctx;

	e->messages++;
	e->wrong += m->serial != e->next_serial++;
	e->type = m->type;
	e->len = m->payload.len;
	memset(e->last, 0, sizeof(e->last));
	memcpy(e->last, m->payload.ptr,
	       MIN(m->payload.len, sizeof(e->last) - 1));
	e->fds += m->fd_count;
	if (e->keep_fd && m->fd_count) {
		e->kept_fd = m->fds[0];
		m->fds[0] = -1;
	}
	if (e->free_on_message)
		e->chan = chan_free(c);
}

static void end_on_closed(void *ctx, struct chan *c, int error)
{
	struct end *e = ctx;

	e->closed++;
	e->error = error;
	e->chan = chan_free(c);
}

static const struct chan_ops end_ops = { end_on_message, end_on_closed };

struct world {
	struct loop *loop;
	struct end a, b;
	int raw; /* the other side of b when a is not a channel */
};

static void world_new(struct world *w, bool raw)
{
	int fds[2];

	*w = (struct world){ .raw = -1, .a.kept_fd = -1, .b.kept_fd = -1 };
	assert_int_equal(loop_new(&w->loop), 0);
	assert_int_equal(chan_pair(fds), 0);
	if (raw)
		w->raw = fds[0];
	else
		assert_int_equal(
			chan_new(w->loop, fds[0], &end_ops, &w->a, &w->a.chan),
			0);
	assert_int_equal(chan_new(w->loop, fds[1], &end_ops, &w->b, &w->b.chan),
			 0);
}

static void world_free(struct world *w)
{
	chan_free(w->a.chan);
	chan_free(w->b.chan);
	loop_free(w->loop);
	fd_close(w->raw);
	fd_close(w->a.kept_fd);
	fd_close(w->b.kept_fd);
}

static void turns(struct world *w, int n)
{
	while (n--)
		loop_run_once(w->loop, false);
}

static void chan__carries_messages(void **state)
{
	struct world w;

	(void)state;
	world_new(&w, false);
	assert_int_equal(
		chan_send(w.a.chan, 7, 0, "body", 4, SPAN("+tail"), NULL, 0),
		0);
	turns(&w, 2);
	assert_int_equal(w.b.messages, 1);
	assert_int_equal(w.b.type, 7);
	assert_string_equal(w.b.last, "body+tail");
	assert_int_equal(w.b.wrong, 0);
	assert_int_equal(chan_send(w.b.chan, 9, 0, NULL, 0, SPAN_NONE, NULL, 0),
			 0);
	turns(&w, 2);
	assert_int_equal(w.a.type, 9);
	assert_int_equal(w.a.len, 0);
	assert_int_equal(chan_serial(w.a.chan), 1);
	assert_int_equal(chan_serial(w.a.chan), 2);
	world_free(&w);
}

static void chan__carries_fds_and_closes_them(void **state)
{
	unsigned before = open_fds();
	int null[CHAN_FDS_MAX + 1];
	struct world w;

	(void)state;
	world_new(&w, false);
	for (int i = 0; i <= CHAN_FDS_MAX; i++)
		null[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(chan_send(w.a.chan, 1, 0, NULL, 0, SPAN_NONE, null,
				   CHAN_FDS_MAX),
			 0);
	w.b.keep_fd = true;
	turns(&w, 2);
	assert_int_equal(w.b.fds, CHAN_FDS_MAX);
	assert_true(w.b.kept_fd >= 0);
	assert_int_equal(fcntl(w.b.kept_fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(chan_send(w.a.chan, 1, 0, NULL, 0, SPAN_NONE, null,
				   CHAN_FDS_MAX + 1),
			 -EINVAL);
	for (int i = 0; i <= CHAN_FDS_MAX; i++)
		fd_close(null[i]);
	world_free(&w);
	assert_int_equal(open_fds(), before);
}

static void chan__bounds(void **state)
{
	const size_t max = CHAN_MESSAGE_MAX - sizeof(struct msg_head);
	char *big = calloc(1, CHAN_MESSAGE_MAX);
	struct world w;

	(void)state;
	world_new(&w, false);
	assert_int_equal(chan_send(w.a.chan, 1, 0, big, 100,
				   span_of(big, max - 99), NULL, 0),
			 -EMSGSIZE);
	assert_int_equal(chan_send(w.a.chan, 1, 0, big, 100,
				   span_of(big, max - 100), NULL, 0),
			 0);
	turns(&w, 2);
	assert_int_equal(w.b.len, max);
	world_free(&w);
	free(big);
}

static void chan__queues_in_order_when_full(void **state)
{
	unsigned before = open_fds(), sent = 0, with_fd = 0;
	char *body = calloc(1, 8192);
	struct world w;
	int null, r = 0;

	(void)state;
	world_new(&w, false);
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (; sent < 100000; sent++) {
		unsigned fds = sent % 100 == 0;

		r = chan_send(w.a.chan, 3, sent, body, 8192, SPAN_NONE, &null,
			      fds);
		if (r)
			break;
		with_fd += fds;
	}
	fd_close(null);
	assert_int_equal(r, -ENOBUFS);
	assert_true(sent > CHAN_QUEUE_MAX / 8192 - 100);
	for (int i = 0; i < 20000 && w.b.messages < sent; i++)
		turns(&w, 1);
	assert_int_equal(w.b.messages, sent);
	assert_int_equal(w.b.wrong, 0);
	assert_int_equal(w.b.fds, with_fd);

	/* And what waits when the end comes is dropped, its fds too. */
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < 1000; i++)
		(void)chan_send(w.a.chan, 3, 0, body, 8192, SPAN_NONE, &null,
				1);
	fd_close(null);
	w.b.chan = chan_free(w.b.chan);
	turns(&w, 3);
	assert_int_equal(w.a.closed, 1);
	world_free(&w);
	free(body);
	assert_int_equal(open_fds(), before);
}

static void chan__end_comes_after_the_last_message(void **state)
{
	struct world w;

	(void)state;
	world_new(&w, false);
	assert_int_equal(chan_send(w.a.chan, 1, 0, "x", 1, SPAN_NONE, NULL, 0),
			 0);
	w.a.chan = chan_free(w.a.chan);
	assert_int_equal(chan_send(w.b.chan, 1, 0, "y", 1, SPAN_NONE, NULL, 0),
			 -EPIPE);
	turns(&w, 3);
	assert_int_equal(w.b.messages, 1);
	assert_int_equal(w.b.closed, 1);
	assert_int_equal(w.b.error, 0);
	world_free(&w);
}

static void chan__may_be_freed_in_a_message(void **state)
{
	struct world w;

	(void)state;
	world_new(&w, false);
	w.b.free_on_message = true;
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			chan_send(w.a.chan, 1, 0, "x", 1, SPAN_NONE, NULL, 0),
			0);
	turns(&w, 3);
	assert_int_equal(w.b.messages, 1);
	assert_int_equal(w.b.closed, 0);
	assert_int_equal(w.a.closed, 1);
	world_free(&w);
}

static void raw_send(struct world *w, const struct msg_head *head, size_t len,
		     const int *fds, unsigned fd_count)
{
	struct iovec iov = { (void *)head, len };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * 16)];
	} control = { 0 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd_count) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
		memcpy(CMSG_DATA(&control.align), fds, sizeof(int) * fd_count);
	}
	assert_int_equal(sendmsg(w->raw, &msg, MSG_NOSIGNAL), len);
}

static void chan__malformed_packets_end_it(void **state)
{
	static const struct {
		const char *name;
		struct msg_head head;
		size_t len;
		unsigned fds;
	} rows[] = {
		{ "short head", { MSG_MAGIC, 1, 0, 0 }, 15, 0 },
		{ "one byte", { MSG_MAGIC, 1, 0, 0 }, 1, 0 },
		{ "bad magic", { 0x1234, 1, 0, 0 }, 16, 0 },
		{ "len too long", { MSG_MAGIC, 1, 0, 1 }, 16, 0 },
		{ "len too short", { MSG_MAGIC, 1, 0, 3 }, 20, 0 },
		{ "not zero", { MSG_MAGIC, 1, 0, 0, 1 }, 16, 0 },
		{ "len huge", { MSG_MAGIC, 1, 0, UINT32_MAX }, 16, 0 },
		{ "too many fds", { MSG_MAGIC, 1, 0, 0 }, 16, 6 },
		{ "over the maximum",
		  { MSG_MAGIC, 1, 0, CHAN_MESSAGE_MAX },
		  CHAN_MESSAGE_MAX + 16,
		  1 },
	};
	char *packet = calloc(1, CHAN_MESSAGE_MAX + 16);
	unsigned before = open_fds();
	struct world w;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const int fds[6] = { 0, 1, 2, 0, 1, 2 };

		world_new(&w, true);
		memcpy(packet, &rows[i].head, sizeof(rows[i].head));
		raw_send(&w, (struct msg_head *)packet, rows[i].len, fds,
			 rows[i].fds);
		turns(&w, 3);
		if (w.b.closed != 1 || w.b.error != -EPROTO || w.b.messages)
			fail_msg("%s: closed %u error %d", rows[i].name,
				 w.b.closed, w.b.error);
		world_free(&w);
	}
	free(packet);
	assert_int_equal(open_fds(), before);
}

/* An empty packet cannot be told from the end: it ends the channel, and the
 * fds it brought are closed. */
static void chan__empty_packet_is_the_end(void **state)
{
	unsigned before = open_fds();
	const int fd = 0;
	struct world w;

	(void)state;
	world_new(&w, true);
	raw_send(&w, NULL, 0, &fd, 1);
	turns(&w, 3);
	assert_int_equal(w.b.closed, 1);
	world_free(&w);
	assert_int_equal(open_fds(), before);
}

static void chan__blocking_twins(void **state)
{
	static char buffer[CHAN_MESSAGE_MAX];
	struct chan_msg m;
	int fds[2], null;

	(void)state;
	assert_int_equal(chan_pair(fds), 0);
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(
		chan_send_now(fds[0], 5, 6, "ab", 2, SPAN("cd"), &null, 1), 0);
	assert_int_equal(chan_recv_now(fds[1], buffer, sizeof(buffer), &m), 0);
	assert_int_equal(m.type, 5);
	assert_int_equal(m.serial, 6);
	assert_true(span_eq(m.payload, SPAN("abcd")));
	assert_int_equal(m.fd_count, 1);
	fd_close(m.fds[0]);
	fd_close(null);

	/* A buffer that is too small is a violation, not a cut message. */
	assert_int_equal(
		chan_send_now(fds[0], 5, 6, "ab", 2, SPAN("cd"), NULL, 0), 0);
	assert_int_equal(chan_recv_now(fds[1], buffer, 14, &m), -EPROTO);
	fd_close(fds[0]);
	assert_int_equal(chan_recv_now(fds[1], buffer, sizeof(buffer), &m),
			 -EPIPE);
	assert_int_equal(
		chan_send_now(fds[1], 5, 6, NULL, 0, SPAN_NONE, NULL, 0),
		-EPIPE);
	fd_close(fds[1]);
}

static void chan__sealed_memory(void **state)
{
	const void *p = NULL;
	int fd, open_fd;

	(void)state;
	fd = chan_memfd(SPAN("snapshot"));
	assert_true(fd >= 0);
	assert_int_equal(chan_map(fd, 8, &p), 0);
	assert_memory_equal(p, "snapshot", 8);
	assert_int_equal(munmap((void *)p, 8), 0);
	assert_int_equal(chan_map(fd, 7, &p), -EPROTO);
	assert_int_equal(chan_map(fd, 9, &p), -EPROTO);
	assert_int_equal(chan_map(fd, 0, &p), -EPROTO);
	assert_true(pwrite(fd, "x", 1, 0) < 0);
	assert_true(ftruncate(fd, 4) < 0);
	fd_close(fd);

	open_fd = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(open_fd, 8), 0);
	assert_int_equal(chan_map(open_fd, 8, &p), -EPERM);
	fd_close(open_fd);
	assert_int_equal(chan_map(0, 8, &p), -EPERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chan__carries_messages),
		cmocka_unit_test(chan__carries_fds_and_closes_them),
		cmocka_unit_test(chan__bounds),
		cmocka_unit_test(chan__queues_in_order_when_full),
		cmocka_unit_test(chan__end_comes_after_the_last_message),
		cmocka_unit_test(chan__may_be_freed_in_a_message),
		cmocka_unit_test(chan__malformed_packets_end_it),
		cmocka_unit_test(chan__empty_packet_is_the_end),
		cmocka_unit_test(chan__blocking_twins),
		cmocka_unit_test(chan__sealed_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
