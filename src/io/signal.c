/* SPDX-License-Identifier: Apache-2.0 */
/* signal.c - signals of the process become calls in a loop
 *
 * How it works: the handler marks the signal and wakes the loop it belongs to,
 * whichever thread it runs in; the loop looks at its own at the top of a turn.
 * What the handler touches is static, so a signal that arrives while its loop
 * ends finds no freed memory.
 */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/io/inside.h"

static struct {
	_Atomic(int) wake_fd; /* of its loop, plus 1; 0 = nobody's */
	atomic_bool came;
} caught[NSIG];

struct loop_signal {
	struct list link; /* in loop.signals */
	struct sigaction before;
	int signal;
	void (*fn)(void *ctx);
	void *ctx;
};

static void on_signal(int signal)
{
	const uint64_t one = 1;
	int error = errno, fd;

	atomic_store(&caught[signal].came, true);
	fd = atomic_load(&caught[signal].wake_fd);
	if (fd)
		(void)!write(fd - 1, &one, sizeof(one));
	errno = error;
}

void signals_run(struct loop *loop)
{
	list_for_each(it, &loop->signals)
	{
		struct loop_signal *s =
			container_of(it, struct loop_signal, link);

		if (atomic_load_explicit(&caught[s->signal].came,
					 memory_order_relaxed) &&
		    atomic_exchange(&caught[s->signal].came, false))
			s->fn(s->ctx);
	}
}

int loop_on_signal(struct loop *loop, int signal, void (*fn)(void *ctx),
		   void *ctx)
{
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = SA_RESTART };
	struct loop_signal *s;
	int none = 0;

	if (signal <= 0 || signal >= NSIG)
		return err_origin(-EINVAL);
	if (!atomic_compare_exchange_strong(&caught[signal].wake_fd, &none,
					    loop->wake_fd + 1))
		return err_origin(-EBUSY);
	s = must_alloc(sizeof(*s));
	*s = (struct loop_signal){ .signal = signal, .fn = fn, .ctx = ctx };
	sigfillset(&action.sa_mask);
	if (sigaction(signal, &action, &s->before)) {
		free(s);
		atomic_store(&caught[signal].wake_fd, 0);
		return err_origin(-EINVAL);
	}
	list_init(&s->link);
	list_push(&loop->signals, &s->link);
	return 0;
}

void signals_end(struct loop *loop)
{
	struct loop_signal *s;

	while ((s = list_first(&loop->signals, struct loop_signal, link))) {
		(void)sigaction(s->signal, &s->before, NULL);
		atomic_store(&caught[s->signal].wake_fd, 0);
		atomic_store(&caught[s->signal].came, false);
		list_remove(&s->link);
		free(s);
	}
}
