/* SPDX-License-Identifier: Apache-2.0 */
/* local_interrupt.c - SIGINT for a cell, and for what it was about to start
 *
 * A driver that hears interrupts on its channel is asked there first; who is
 * not ended by that gets SIGINT with all of its group.
 *
 * What a shell is just starting may not meet it: between fork and exec the
 * shell's own handler takes the signal in the child. The program then runs on
 * as if nothing had been asked, and the shell waits for it. So the group is
 * looked at again, a few times: a member that was there when the signal was
 * sent, and neither catches nor ignores it, did not meet it, or it would be
 * gone; it is sent it now. Who catches it is never sent a second one, and who
 * is younger none at all: both could be the tidying up upon the first.
 */

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "src/base/attrib.h"
#include "src/execd/code/language.h"
#include "src/execd/code/local_inside.h"
#include "src/execd/execd.h"
#include "src/execd/process/procs.h"
#include "src/io/stream.h"

enum { HEARD_WITHIN_MS = 200 };

/* Waits between SIGINT and each look at who missed it. */
static const unsigned look_after_ms[] = { 10, 40, 200, 1000, 3000 };

static unsigned send_if_missed(void *ctx, pid_t pid, const struct proc_stat *p)
{
	const uint64_t bit = (uint64_t)1 << (SIGINT - 1);
	const struct local *l = ctx;

	return p->group == l->child.pid && pid <= l->interrupt_newest &&
	       !((p->caught | p->ignored) & bit) && !kill(pid, SIGINT);
}

static void on_interrupt(struct timer *t)
{
	struct local *l = container_of(t, struct local, interrupt);

	if (l->interrupt_looks) {
		(void)procs_each(send_if_missed, l);
	} else {
		l->interrupt_newest = procs_newest(); /* before it is sent */
		child_signal(&l->child, SIGINT, false);
	}
	if (l->interrupt_looks < ARRAY_LEN(look_after_ms))
		timer_start(t, look_after_ms[l->interrupt_looks++]);
}

void local_interrupt_init(struct local *l)
{
	timer_init(&l->interrupt, l->execd->loop, on_interrupt);
}

void local_interrupt_send(struct local *l)
{
	char text[32];
	int len;

	l->interrupt_due = false;
	l->interrupt_looks = 0;
	len = snprintf(text, sizeof(text), "int %" PRIu64 " 0\n", l->run);
	if (l->language->hears_interrupts &&
	    !stream_write(l->channel, span_of(text, (size_t)len)))
		timer_start(&l->interrupt, HEARD_WITHIN_MS);
	else
		on_interrupt(&l->interrupt);
}

void local_interrupt_stop(struct local *l)
{
	timer_stop(&l->interrupt);
}
