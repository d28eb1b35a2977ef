/* SPDX-License-Identifier: Apache-2.0 */
/* child.h - one role process: its states, its channel, its restarts;
 * room-internal, used by supervise.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/io/chan.h"
#include "src/io/loop.h"
#include "src/role/msg.h"
#include "src/role/spawn.h"

/* Only child.c moves a child, and logs "old -> new". */
enum child_state {
	CHILD_DOWN,   /* no process; perhaps a timer that will start one */
	CHILD_UP,     /* it runs, its channel is open */
	CHILD_READY,  /* the same, and it said that it serves */
	CHILD_ENDING, /* no channel; killed or about to end, not yet gone */
	CHILD_STATE_NUM,
};

struct child;

struct child_ops {
	/* one message; false kills the child */
	bool (*message)(struct child *c, const struct chan_msg *m);
	/* it is DOWN now; status as of waitpid() */
	void (*down)(struct child *c, int status);
	/* the time to start it again has come */
	void (*restart)(struct child *c);
};

struct child {
	const struct child_ops *ops;
	void *ctx;
	struct loop *loop;
	const char *program; /* path */
	enum role role;
	enum child_state state;
	struct spawned process; /* while not DOWN */
	struct watch exit;
	struct chan *chan;  /* UP and READY */
	struct timer timer; /* DOWN: start it; ENDING: kill it */
	uint64_t started_ms, started_wall_ms;
	unsigned failures; /* in a row: the longer the delay */
	unsigned starts;
};

void child_init(struct child *c, struct loop *loop, enum role role);
/* Kills and waits when it runs. */
void child_fini(struct child *c);

static inline bool child_runs(const struct child *c)
{
	return c->state == CHILD_UP || c->state == CHILD_READY;
}

/* DOWN -> UP. 0 or -errno. */
WUNRES int child_start(struct child *c, int config_fd);
/* DOWN: ops->restart at once the first time, then after 100, 200, ... 5000 ms;
 * a minute of life is forgiven. */
void child_restart_later(struct child *c);
/* UP -> READY. */
void child_ready(struct child *c);
/* -> ENDING by SIGKILL; the log says why. Nothing when DOWN. */
void child_kill(struct child *c, const char *why);
/* -> ENDING by closing its channel, which a role takes for the order to end. */
void child_hang_up(struct child *c);

/* A message without tail; fd -1 = none. Who cannot be sent to is killed. Does
 * nothing when it does not run. */
void child_send(struct child *c, uint16_t type, uint32_t serial,
		const void *body, size_t len, int fd);
void child_send_fds(struct child *c, uint16_t type, uint32_t serial,
		    const void *body, size_t len, const int *fds,
		    unsigned count);
