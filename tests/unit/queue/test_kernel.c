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
#include <sched.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/io/loop.h"
#include "src/queue/conntrack.h"
#include "src/queue/nfqueue.h"
#include "src/role/fence_queue.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nfqueue__has_one_reader),
		cmocka_unit_test(conntrack__lists),
		cmocka_unit_test(conntrack__deletes_what_is_not_there),
	};

	if (geteuid() != 0 || unshare(CLONE_NEWNET) != 0)
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
