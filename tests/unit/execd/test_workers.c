/* SPDX-License-Identifier: Apache-2.0 */
/* test_workers.c - slices that take turns, ends, and no thread to be had */

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/base/clock.h"
#include "src/execd/files/workers.h"
#include "src/io/loop.h"

enum { COUNT = 200 };

static struct loop *loop;
static struct workers *workers;
static unsigned done_count;
static atomic_uint stepped;

struct task {
	struct work work;
	unsigned slices, sleep_us;
	unsigned done;
	unsigned again; /* given again from done() so often */
	uint64_t done_ms;
};

static enum work_next task_step(struct work *w)
{
	struct task *t = container_of(w, struct task, work);

	atomic_fetch_add(&stepped, 1);
	if (t->sleep_us)
		(void)usleep(t->sleep_us);
	return t->slices && --t->slices ? WORK_AGAIN : WORK_DONE;
}

static void task_done(struct work *w)
{
	struct task *t = container_of(w, struct task, work);

	t->done++;
	t->done_ms = clock_ms();
	if (t->again && !workers_are_ending(workers)) {
		t->again--;
		workers_give(workers, &t->work);
		return;
	}
	done_count++;
}

static void task_init(struct task *t, unsigned slices, unsigned sleep_us)
{
	*t = (struct task){ .slices = slices, .sleep_us = sleep_us };
	list_init(&t->work.link);
	t->work.step = task_step;
	t->work.done = task_done;
}

static void run_until(unsigned count)
{
	uint64_t end = clock_ms() + 60000;

	while (done_count < count) {
		loop_run_once(loop, true);
		assert_true(clock_ms() < end);
	}
}

static int setup(void **state)
{
	(void)state;
	done_count = 0;
	atomic_store(&stepped, 0);
	assert_int_equal(loop_new(&loop), 0);
	return workers_new(loop, &workers);
}

static int teardown(void **state)
{
	(void)state;
	workers = workers_free(workers);
	loop = loop_free(loop);
	return 0;
}

static void workers__many(void **state)
{
	static struct task tasks[COUNT];
	unsigned i;

	(void)state;
	for (i = 0; i < COUNT; i++) {
		task_init(&tasks[i], i % 5, 0);
		tasks[i].again = i % 3;
		workers_give(workers, &tasks[i].work);
	}
	run_until(COUNT);
	for (i = 0; i < COUNT; i++)
		assert_int_equal(tasks[i].done, 1 + i % 3);
}

/* More long works than threads: a short one does not wait for their end. */
static void workers__turns(void **state)
{
	static struct task longs[3 * WORKERS_MAX], quick;
	unsigned i;

	(void)state;
	for (i = 0; i < 3 * WORKERS_MAX; i++) {
		task_init(&longs[i], 100, 2000);
		workers_give(workers, &longs[i].work);
	}
	task_init(&quick, 1, 0);
	workers_give(workers, &quick.work);
	run_until(3 * WORKERS_MAX + 1);
	for (i = 0; i < 3 * WORKERS_MAX; i++)
		assert_true(quick.done_ms < longs[i].done_ms);
}

static void workers__end(void **state)
{
	static struct task tasks[COUNT];
	unsigned i;

	(void)state;
	for (i = 0; i < COUNT; i++) {
		task_init(&tasks[i], 1000, 1000);
		workers_give(workers, &tasks[i].work);
	}
	workers = workers_free(workers);
	assert_int_equal(done_count, COUNT);
	assert_int_equal(workers_new(loop, &workers), 0);
}

/* A file system that does not answer does not keep the daemon from ending. */
static void workers__stuck(void **state)
{
	static struct task stuck;
	static struct workers *left;
	uint64_t from = clock_ms();

	(void)state;
	task_init(&stuck, 1, (WORKERS_END_MS + 2000) * 1000);
	workers_give(workers, &stuck.work);
	while (!atomic_load(&stepped))
		(void)usleep(1000);
	left = workers_free(workers);
	assert_non_null(left);
	assert_in_range(clock_ms() - from, WORKERS_END_MS - 100,
			WORKERS_END_MS + 1500);
	assert_int_equal(done_count, 0);
	assert_int_equal(workers_new(loop, &workers), 0);
}

/* In a process that may have no thread more, the loop does it. */
static void workers__no_thread(void **state)
{
	static struct task tasks[20];
	const struct rlimit none = { 1, 1 };
	unsigned i;
	int status;
	pid_t pid;

	(void)state;
	pid = fork();
	assert_true(pid >= 0);
	if (pid) {
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		return;
	}
	if (setrlimit(RLIMIT_NPROC, &none) ||
	    (!geteuid() && setresuid(65533, 65533, 65533)))
		_exit(1);
	for (i = 0; i < 20; i++) {
		task_init(&tasks[i], 3, 0);
		workers_give(workers, &tasks[i].work);
	}
	if (done_count)
		_exit(2); /* not from inside of workers_give() */
	for (i = 0; i < 10000 && done_count < 20; i++)
		loop_run_once(loop, true);
	_exit(done_count == 20 ? 0 : 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(workers__no_thread, setup,
						teardown),
		cmocka_unit_test_setup_teardown(workers__many, setup, teardown),
		cmocka_unit_test_setup_teardown(workers__turns, setup,
						teardown),
		cmocka_unit_test_setup_teardown(workers__end, setup, teardown),
		cmocka_unit_test_setup_teardown(workers__stuck, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
