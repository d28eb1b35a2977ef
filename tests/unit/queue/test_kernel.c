/* SPDX-License-Identifier: Apache-2.0 */
/* test_kernel.c - the kernel's side of the queue role, in a network namespace
 * of its own; skipped where there is none
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/io/loop.h"
#include "src/queue/conntrack.h"
#include "src/queue/drops.h"
#include "src/queue/nflog.h"
#include "src/queue/nfqueue.h"
#include "src/role/config.h"
#include "src/role/fence_queue.h"
#include "src/role/tool.h"

enum { NUMBER = 4242 };

static void nfqueue__has_one_reader(void **state)
{
	struct nfqueue *first, *second;

	(void)state;
	assert_int_equal(nfqueue_open(NUMBER, &first), 0);
	assert_int_equal(nfqueue_open(NUMBER, &second), -EPERM);
	assert_int_equal(nfqueue_open(NUMBER + 1, &second), 0);
	nfqueue_free(second);
	first = nfqueue_free(first);
	/* and is free again when its reader is gone */
	assert_int_equal(nfqueue_open(NUMBER, &first), 0);
	nfqueue_free(first);
}

static struct {
	unsigned entries, ends;
	bool complete;
} seen;

static bool on_entry(void *ctx, const struct conntrack_entry *e)
{
	(void)ctx;
	(void)e;
	seen.entries++;
	return true;
}

static void on_end(void *ctx, bool complete)
{
	(void)ctx;
	seen.ends++;
	seen.complete = complete;
}

static const struct conntrack_ops ops = { on_entry, on_end };

/* A list ends, a list that is begun anew ends once. */
static void conntrack__lists(void **state)
{
	uint64_t end_ms = clock_ms() + 5000;
	struct conntrack *c;
	struct loop *loop;

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(conntrack_open(&c), 0);
	assert_int_equal(conntrack_start(c, loop, &ops, NULL), 0);
	assert_int_equal(conntrack_list(c), 0);
	assert_int_equal(conntrack_list(c), 0);
	while (!seen.ends && clock_ms() < end_ms)
		loop_run_once(loop, false);
	assert_int_equal(seen.ends, 1);
	assert_true(seen.complete);
	assert_int_equal(seen.entries, 0);
	assert_int_equal(conntrack_list(c), 0);
	while (seen.ends < 2 && clock_ms() < end_ms)
		loop_run_once(loop, false);
	assert_int_equal(seen.ends, 2);
	conntrack_free(c);
	loop_free(loop);
}

/* What ended by itself meanwhile is no failure. */
static void conntrack__deletes_what_is_not_there(void **state)
{
	/* CTA_TUPLE_ORIG of UDP 10.0.0.1:1 -> 10.0.0.2:2 */
	static const struct conntrack_key key = {
		.family = 2,
		.len = 52,
		.bytes = "\x34\0\x01\x80\x14\0\x01\x80\x08\0\x01\0\x0a\0\0\x01"
			 "\x08\0\x02\0\x0a\0\0\x02\x1c\0\x02\x80\x05\0\x01\0"
			 "\x11\0\0\0\x06\0\x02\0\0\x01\0\0\x06\0\x03\0\0\x02\0",
	};
	struct conntrack *c;

	(void)state;
	assert_int_equal(conntrack_open(&c), 0);
	assert_int_equal(conntrack_delete(c, &key), 0);
	assert_int_equal(fence_queue_forget(), 0);
	conntrack_free(c);
}

/* -- dropped packets --------------------------------------------------------
 */

static void nft(const char *script)
{
	const char *const argv[] = { "/usr/sbin/nft", "-f", "-", NULL };
	struct buf said = BUF_INIT(65536);

	if (tool_run(argv, span_str(script), &said, 10000))
		fail_msg("%.*s", SPAN_FMT(buf_peek(&said)));
	buf_fini(&said);
}

static void lo_up(void)
{
	const char *const argv[] = { "/usr/sbin/ip", "link", "set",
				     "lo",	     "up",   NULL };
	struct buf said = BUF_INIT(65536);

	assert_int_equal(tool_run(argv, SPAN_NONE, &said, 10000), 0);
	buf_fini(&said);
}

static void send_to(uint16_t port)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)sendto(fd, "x", 1, 0, (const struct sockaddr *)&to, sizeof(to));
	(void)close(fd);
}

static struct {
	unsigned drops;
	struct msg_drop last;
	struct msg_drops sums;
} told;

static void on_drop(void *ctx, const struct msg_drop *d)
{
	(void)ctx;
	told.drops++;
	told.last = *d;
}

static void on_sums(void *ctx, const struct msg_drops *sums)
{
	(void)ctx;
	told.sums = *sums;
}

static const struct drops_ops drop_ops = { on_drop, on_sums };

#define TABLE(log)                                                      \
	"table inet sallyport\n"                                        \
	"delete table inet sallyport\n"                                 \
	"table inet sallyport {\n"                                      \
	"\tcounter drop_protocol { }\n"                                 \
	"\tcounter queued { }\n"                                        \
	"\tchain in {\n"                                                \
	"\t\ttype filter hook input priority 0; policy accept;\n"       \
	"\t\tudp dport 7 " log " counter name \"drop_protocol\" drop\n" \
	"\t\tudp dport 9 counter name \"queued\" drop\n"                \
	"\t}\n}\n"
#define LOGGED TABLE("log prefix \"protocol\" group 4242 snaplen 128")

static void run_until(struct loop *loop, const unsigned *count, unsigned value,
		      uint64_t ms)
{
	uint64_t end_ms = clock_ms() + ms;

	while (*count < value && clock_ms() < end_ms)
		loop_run_once(loop, false);
}

/* Each packet that the log tells of, and no number for it. */
static void drops__are_told_by_the_log(void **state)
{
	const struct config config = { .log_group = NUMBER };
	struct nflog *second;
	unsigned never = 0;
	struct drops *d;
	struct loop *loop;

	(void)state;
	memset(&told, 0, sizeof(told));
	nft(LOGGED);
	assert_int_equal(loop_new(&loop), 0);
	d = drops_open(&config);
	assert_int_equal(nflog_open(NUMBER, &second), -EPERM);
	assert_int_equal(drops_start(d, loop, &drop_ops, NULL), 0);
	send_to(7);
	send_to(7);
	run_until(loop, &told.drops, 2, 5000);
	assert_int_equal(told.drops, 2);
	assert_int_equal(told.last.reason, DROP_PROTOCOL);
	assert_int_equal(told.last.count, 1);
	assert_int_equal(told.last.protocol, 17);
	assert_int_equal(told.last.port, 7);
	assert_int_equal(told.last.ethertype, 0x0800);
	assert_true(told.last.ifindex != 0);
	run_until(loop, &never, 1, 3500);
	assert_int_equal(told.drops, 2);
	assert_int_equal(told.sums.of[DROP_PROTOCOL], 2);
	assert_int_equal(told.sums.told, 1);
	drops_free(d);
	loop_free(loop);
}

/* Somebody else has the group: then there is a number, also when the table was
 * made anew meanwhile. */
static void drops__are_counted_without_the_log(void **state)
{
	const struct config config = { .log_group = NUMBER };
	struct nflog *other;
	struct drops *d;
	struct loop *loop;
	unsigned i;

	(void)state;
	memset(&told, 0, sizeof(told));
	nft(LOGGED);
	for (i = 0; i < 5; i++)
		send_to(7); /* before anybody looked: not ours to tell */
	assert_int_equal(nflog_open(NUMBER, &other), 0);
	assert_int_equal(loop_new(&loop), 0);
	d = drops_open(&config);
	assert_int_equal(drops_start(d, loop, &drop_ops, NULL), 0);
	nft(LOGGED);
	send_to(7);
	send_to(7);
	send_to(7);
	run_until(loop, &told.drops, 1, 5000);
	assert_int_equal(told.drops, 1);
	assert_int_equal(told.last.reason, DROP_PROTOCOL);
	assert_int_equal(told.last.count, 3);
	assert_int_equal(told.last.ifindex, 0);
	assert_int_equal(told.sums.of[DROP_PROTOCOL], 3);
	assert_int_equal(told.sums.told, 0);
	drops_free(d);
	nflog_free(other);
	loop_free(loop);
}

/* What was given to the queue and never came. */
static void drops__the_queue_was_full(void **state)
{
	const struct config config = { .log_group = NUMBER };
	struct drops *d;
	struct loop *loop;

	(void)state;
	memset(&told, 0, sizeof(told));
	nft(LOGGED);
	assert_int_equal(loop_new(&loop), 0);
	d = drops_open(&config);
	assert_int_equal(drops_start(d, loop, &drop_ops, NULL), 0);
	send_to(9);
	send_to(9);
	send_to(9);
	drops_received(d);
	run_until(loop, &told.drops, 1, 8000);
	assert_int_equal(told.drops, 1);
	assert_int_equal(told.last.reason, DROP_QUEUE_FULL);
	assert_int_equal(told.last.count, 2);
	drops_free(d);
	loop_free(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nfqueue__has_one_reader),
		cmocka_unit_test(conntrack__lists),
		cmocka_unit_test(conntrack__deletes_what_is_not_there),
		cmocka_unit_test(drops__are_told_by_the_log),
		cmocka_unit_test(drops__are_counted_without_the_log),
		cmocka_unit_test(drops__the_queue_was_full),
	};

	if (geteuid() != 0 || unshare(CLONE_NEWNET) != 0)
		return 77;
	lo_up();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
