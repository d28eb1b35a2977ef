/* SPDX-License-Identifier: Apache-2.0 */
/* child.c - spawn, watch the pidfd, kill, try again
 *
 * How it works: the end of a process is seen on its pidfd and nowhere else; a
 * closed channel only makes the end certain. So a child goes DOWN in one
 * place, on_exited(), and its number is never used after that.
 */

#include "src/role/child.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/log.h"

enum {
	RESTART_FIRST_MS = 100,
	RESTART_LAST_MS = 5000,
	FORGIVE_MS = 60 * 1000,
	LINGER_MS = 1000, /* after it closed its channel */
};

static const char *const state_names[CHILD_STATE_NUM] = {
	[CHILD_DOWN] = "down",
	[CHILD_UP] = "up",
	[CHILD_READY] = "ready",
	[CHILD_ENDING] = "ending",
};
static_assert(CHILD_STATE_NUM == 4, "state_names has one name per state");

static void child_move(struct child *c, enum child_state to)
{
	log_debug("%s: %s -> %s", role_name(c->role), state_names[c->state],
		  state_names[to]);
	c->state = to;
}

void child_kill(struct child *c, const char *why)
{
	if (c->state == CHILD_DOWN)
		return;
	log_error("killed the %s (%d): %s", role_name(c->role),
		  (int)c->process.pid, why);
	timer_stop(&c->timer);
	c->chan = chan_free(c->chan);
	(void)kill(c->process.pid, SIGKILL);
	child_move(c, CHILD_ENDING);
}

void child_hang_up(struct child *c)
{
	if (!child_runs(c))
		return;
	c->chan = chan_free(c->chan);
	child_move(c, CHILD_ENDING);
}

void child_ready(struct child *c)
{
	if (c->state == CHILD_UP)
		child_move(c, CHILD_READY);
}

static void on_message(void *ctx, struct chan *chan, struct chan_msg *m)
{
	struct child *c = ctx;

	(void)chan;
	if (!c->ops->message(c, m))
		child_kill(c, "it sent what it may not send");
}

/* Most often it is just ending. If not: of no use without its channel. */
static void on_closed(void *ctx, struct chan *chan, int error)
{
	struct child *c = ctx;

	(void)chan;
	if (error == -EPROTO) {
		child_kill(c, "it broke the framing of messages");
		return;
	}
	child_hang_up(c);
	timer_start(&c->timer, LINGER_MS);
}

static const struct chan_ops chan_ops = { on_message, on_closed };

static void on_exited(struct watch *w, unsigned ready)
{
	struct child *c = container_of(w, struct child, exit);
	int status = 0;

	if (waitpid(c->process.pid, &status, WNOHANG) == 0) {
		watch_spent(w, ready);
		return;
	}
	watch_fini(&c->exit);
	timer_stop(&c->timer);
	c->process.pidfd = fd_close(c->process.pidfd);
	c->chan = chan_free(c->chan);
	child_move(c, CHILD_DOWN);
	c->ops->down(c, status);
}

static void on_timer(struct timer *t)
{
	struct child *c = container_of(t, struct child, timer);

	if (c->state == CHILD_ENDING)
		child_kill(c, "it closed its channel and stayed");
	else if (c->state == CHILD_DOWN)
		c->ops->restart(c);
}

void child_init(struct child *c, struct loop *loop, enum role role)
{
	*c = (struct child){ .loop = loop, .role = role };
	c->process.pidfd = -1;
	timer_init(&c->timer, loop, on_timer);
}

void child_fini(struct child *c)
{
	timer_stop(&c->timer);
	c->chan = chan_free(c->chan);
	if (c->state == CHILD_DOWN)
		return;
	(void)kill(c->process.pid, SIGKILL);
	(void)waitpid(c->process.pid, NULL, 0);
	watch_fini(&c->exit);
	c->process.pidfd = fd_close(c->process.pidfd);
	child_move(c, CHILD_DOWN);
}

int child_start(struct child *c, int config_fd)
{
	int fds[2], r;

	must(c->state == CHILD_DOWN);
	c->started_ms = clock_ms(); /* a failed start counts as a short life */
	r = chan_pair(fds);
	if (r)
		return err_trace(r);
	r = chan_new(c->loop, fds[0], &chan_ops, c, &c->chan);
	if (!r)
		r = spawn_role(c->role, c->program, fds[1], config_fd,
			       &c->process);
	(void)fd_close(fds[1]);
	if (r) {
		c->chan = chan_free(c->chan);
		return err_trace(r);
	}
	c->starts++;
	c->started_wall_ms = clock_wall_ms();
	child_move(c, CHILD_UP);
	must(watch_init(&c->exit, c->loop, c->process.pidfd, on_exited) == 0);
	watch_want(&c->exit, WATCH_READ);
	return 0;
}

void child_restart_later(struct child *c)
{
	uint64_t delay_ms = 0;

	if (clock_ms() - c->started_ms >= FORGIVE_MS)
		c->failures = 0;
	if (c->failures)
		delay_ms = (uint64_t)RESTART_FIRST_MS
			   << MIN(c->failures - 1, 6U);
	c->failures++;
	timer_start(&c->timer, MIN(delay_ms, (uint64_t)RESTART_LAST_MS));
}

void child_send(struct child *c, uint16_t type, uint32_t serial,
		const void *body, size_t len, int fd)
{
	child_send_fds(c, type, serial, body, len, &fd, fd >= 0 ? 1 : 0);
}

void child_send_fds(struct child *c, uint16_t type, uint32_t serial,
		    const void *body, size_t len, const int *fds,
		    unsigned count)
{
	if (child_runs(c) &&
	    chan_send(c->chan, type, serial, body, len, SPAN_NONE, fds, count))
		child_kill(c, "it does not take its messages");
}
