/* SPDX-License-Identifier: Apache-2.0 */
/* reaper.c - who waits for children: one place, for all of them
 *
 * How it works: a dead child is first looked at (WNOWAIT), told to its owner
 * while it is still a zombie, so that its number and its group are certainly
 * still its own, and only then reaped. A turn reaps REAP_ROUND at most and goes
 * on in the next one: where children die as fast as they are made, clients
 * still get their turn.
 */

#include "src/execd/process/reaper.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "src/base/err.h"
#include "src/io/loop.h"

enum { BUCKETS = 256, REAP_ROUND = 512 };

struct reaper {
	struct loop *loop;
	struct timer more;
	struct list buckets[BUCKETS];
};

static struct list *bucket_of(struct reaper *r, pid_t pid)
{
	return &r->buckets[(unsigned)pid % BUCKETS];
}

static struct reaper_child *child_find(struct reaper *r, pid_t pid)
{
	struct reaper_child *c;

	list_for_each(it, bucket_of(r, pid))
	{
		c = container_of(it, struct reaper_child, link);
		if (c->pid == pid)
			return c;
	}
	return NULL;
}

/* waitid()'s answer as waitpid() would have put it. */
static int status_of(const siginfo_t *info)
{
	if (info->si_code == CLD_EXITED)
		return (info->si_status & 0xff) << 8;
	return (info->si_status & 0x7f) |
	       (info->si_code == CLD_DUMPED ? WCOREFLAG : 0);
}

static void tell(struct reaper *r, const siginfo_t *info)
{
	struct reaper_child *c = child_find(r, info->si_pid);

	if (!c)
		return;
	reaper_remove(r, c);
	c->exited(c, status_of(info));
	/* c may be gone */
}

/* False: nobody is dead. */
static bool reap_one(struct reaper *r)
{
	siginfo_t info = { 0 };
	int waited;

	do {
		waited = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
	} while (waited && errno == EINTR);
	if (waited || !info.si_pid)
		return false;
	tell(r, &info);
	do {
		waited = waitid(P_PID, (id_t)info.si_pid, NULL,
				WEXITED | WNOHANG);
	} while (waited && errno == EINTR);
	return true;
}

static void reap(void *ctx)
{
	struct reaper *r = ctx;
	unsigned i;

	for (i = 0; i < REAP_ROUND; i++)
		if (!reap_one(r))
			return;
	timer_start(&r->more, 1);
}

static void on_more(struct timer *t)
{
	reap(container_of(t, struct reaper, more));
}

int reaper_new(struct loop *loop, struct reaper **ret)
{
	struct reaper *r = must_alloc(sizeof(*r));
	size_t i;
	int e;

	r->loop = loop;
	timer_init(&r->more, loop, on_more);
	for (i = 0; i < BUCKETS; i++)
		list_init(&r->buckets[i]);
	e = loop_on_signal(loop, SIGCHLD, reap, r);
	if (e) {
		free(r);
		return err_trace(e);
	}
	/* who died before us (an init takes over children) */
	timer_start(&r->more, 1);
	*ret = r;
	return 0;
}

struct reaper *reaper_free(struct reaper *r)
{
	if (!r)
		return NULL;
	timer_stop(&r->more);
	free(r);
	return NULL;
}

void reaper_add(struct reaper *r, struct reaper_child *c)
{
	must(c->pid > 0 && c->exited);

	list_init(&c->link);
	list_push(bucket_of(r, c->pid), &c->link);
}

void reaper_remove(struct reaper *r, struct reaper_child *c)
{
	(void)r;
	if (!c->pid)
		return;
	list_remove(&c->link);
	c->pid = 0;
}
