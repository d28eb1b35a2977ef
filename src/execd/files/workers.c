/* SPDX-License-Identifier: Apache-2.0 */
/* workers.c - the threads, their queue, and the way back into the loop
 *
 * How it works: one lock, one queue of works that wait and one of works that
 * are finished. A thread takes the oldest waiting work, lets the lock go, runs
 * a slice, and puts the work at the end of one queue or the other. The first
 * finished work writes to an eventfd; the loop then takes all there are.
 *
 * Where no thread can be had (a fork bomb next door has eaten the processes)
 * and none is there, the loop itself does a slice per turn.
 *
 * A step is never interrupted. What it can be stuck in is one system call (a
 * file system that does not answer); with every thread stuck so, files wait,
 * and long bodies (body.h), and commands, terminals and the proxy do not.
 */

#include "src/execd/files/workers.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/io/loop.h"

enum { STACK_BYTES = 256 * 1024, REFUSED_MS = 10 };

struct workers {
	struct watch watch; /* of the eventfd */
	int wake_fd;
	struct timer turn; /* a slice in the loop, for want of a thread */
	bool ending;	   /* written by the loop's thread, under the lock */

	pthread_mutex_t lock;
	pthread_cond_t more; /* waiting is not empty, or it ends */
	pthread_cond_t left; /* a thread ended */
	/* under the lock: */
	struct list waiting, finished;
	unsigned threads, idle, waiting_count;
};

/* -- the threads ---------------------------------------------------------- */

static void wake_loop(struct workers *p)
{
	const uint64_t one = 1;

	(void)!write(p->wake_fd, &one, sizeof(one));
}

/* The oldest that waits, with the lock. */
static struct work *waiting_pop(struct workers *p)
{
	struct work *w = list_first(&p->waiting, struct work, link);

	if (w) {
		list_remove(&w->link);
		p->waiting_count--;
	}
	return w;
}

static void waiting_push(struct workers *p, struct work *w)
{
	list_push(&p->waiting, &w->link);
	p->waiting_count++;
}

/* Waits for work, with the lock. NULL: the thread has to end. */
static struct work *work_take(struct workers *p)
{
	struct timespec until;
	int r = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += WORKERS_IDLE_S;
	p->idle++;
	while (!p->waiting_count && !p->ending && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&p->more, &p->lock, &until);
	p->idle--;
	return p->ending ? NULL : waiting_pop(p);
}

/* A step as the user it is for. That the daemon may be that user was found out
 * before; what is left is a kernel without memory, and it is tried again. */
static enum work_next step_as(struct work *w)
{
	const struct timespec pause = { .tv_nsec = REFUSED_MS * 1000000L };
	enum work_next next;

	identity_look_up(&w->as);
	if (identity_enter(&w->as)) {
		(void)nanosleep(&pause, NULL);
		return WORK_AGAIN;
	}
	next = w->step(w);
	identity_leave();
	return next;
}

/* A slice, between a pop and a push; with the lock, which it lets go. */
static void work_slice(struct workers *p, struct work *w)
{
	enum work_next next;

	(void)pthread_mutex_unlock(&p->lock);
	next = step_as(w);
	must(pthread_mutex_lock(&p->lock) == 0);
	if (next == WORK_AGAIN) {
		waiting_push(p, w);
		return;
	}
	if (list_is_empty(&p->finished))
		wake_loop(p);
	list_push(&p->finished, &w->link);
}

static void *worker_run(void *arg)
{
	struct workers *p = arg;
	struct work *w;

	must(pthread_mutex_lock(&p->lock) == 0);
	while ((w = work_take(p)))
		work_slice(p, w);
	p->threads--;
	(void)pthread_cond_signal(&p->left);
	(void)pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Signals are the loop's: a thread inherits the mask with all of them. */
static int thread_start(struct workers *p)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	(void)sigfillset(&all);
	must(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
	must(pthread_attr_init(&attr) == 0);
	must(pthread_attr_setstacksize(&attr, STACK_BYTES) == 0);
	must(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) == 0);
	r = pthread_create(&thread, &attr, worker_run, p);
	(void)pthread_attr_destroy(&attr);
	must(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
	return -r;
}

/* -- the loop's side ------------------------------------------------------ */

/* done() of everything in the queue; it may give the works again. */
static void finish_all(struct workers *p)
{
	struct work *w;

	for (;;) {
		must(pthread_mutex_lock(&p->lock) == 0);
		w = list_first(&p->finished, struct work, link);
		if (!w && p->ending)
			w = waiting_pop(p);
		else if (w)
			list_remove(&w->link);
		(void)pthread_mutex_unlock(&p->lock);
		if (!w)
			return;
		w->done(w);
		/* w may be freed */
	}
}

static void on_wake(struct watch *watch, unsigned ready)
{
	struct workers *p = container_of(watch, struct workers, watch);
	uint64_t count;

	(void)ready;
	(void)!read(p->wake_fd, &count, sizeof(count));
	watch_spent(watch, WATCH_READ);
	finish_all(p);
}

/* Has a thread for what waits, or the timer that stands in for it. */
static void threads_want(struct workers *p)
{
	bool start, alone;

	must(pthread_mutex_lock(&p->lock) == 0);
	start = p->waiting_count > p->idle && p->threads < WORKERS_MAX;
	p->threads += start;
	(void)pthread_cond_signal(&p->more);
	(void)pthread_mutex_unlock(&p->lock);
	if (!start || !thread_start(p))
		return;

	must(pthread_mutex_lock(&p->lock) == 0);
	alone = !--p->threads;
	(void)pthread_mutex_unlock(&p->lock);
	if (alone)
		timer_start(&p->turn, 1);
}

static void on_turn(struct timer *t)
{
	struct workers *p = container_of(t, struct workers, turn);
	struct work *w;

	must(pthread_mutex_lock(&p->lock) == 0);
	w = p->threads ? NULL : waiting_pop(p);
	if (w)
		work_slice(p, w);
	(void)pthread_mutex_unlock(&p->lock);
	threads_want(p);
}

int workers_new(struct loop *loop, struct workers **ret)
{
	struct workers *p = must_alloc(sizeof(*p));
	pthread_condattr_t attr;
	int r;

	p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = p->wake_fd < 0 ? err_origin(-errno)
			   : watch_init(&p->watch, loop, p->wake_fd, on_wake);
	if (r) {
		(void)fd_close(p->wake_fd);
		free(p);
		return r;
	}
	watch_want(&p->watch, WATCH_READ);
	timer_init(&p->turn, loop, on_turn);
	list_init(&p->waiting);
	list_init(&p->finished);
	must(pthread_mutex_init(&p->lock, NULL) == 0);
	must(pthread_condattr_init(&attr) == 0);
	must(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
	must(pthread_cond_init(&p->more, &attr) == 0);
	must(pthread_cond_init(&p->left, &attr) == 0);
	(void)pthread_condattr_destroy(&attr);
	*ret = p;
	return 0;
}

/* Tells the threads to end. False: one did not. */
static bool threads_end(struct workers *p)
{
	struct timespec until;
	bool ended;
	int r = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += WORKERS_END_MS / 1000;
	must(pthread_mutex_lock(&p->lock) == 0);
	p->ending = true;
	(void)pthread_cond_broadcast(&p->more);
	while (p->threads && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&p->left, &p->lock, &until);
	ended = !p->threads;
	(void)pthread_mutex_unlock(&p->lock);
	return ended;
}

struct workers *workers_free(struct workers *p)
{
	if (!p)
		return NULL;
	timer_stop(&p->turn);
	watch_fini(&p->watch);
	if (!threads_end(p))
		return p;

	finish_all(p);
	(void)fd_close(p->wake_fd);
	(void)pthread_cond_destroy(&p->more);
	(void)pthread_cond_destroy(&p->left);
	(void)pthread_mutex_destroy(&p->lock);
	free(p);
	return NULL;
}

bool workers_are_ending(const struct workers *p)
{
	return p->ending;
}

void workers_give(struct workers *p, struct work *w)
{
	must(!p->ending && list_is_empty(&w->link));

	must(pthread_mutex_lock(&p->lock) == 0);
	waiting_push(p, w);
	(void)pthread_mutex_unlock(&p->lock);
	threads_want(p);
}
