/* SPDX-License-Identifier: Apache-2.0 */
/* create_ready.c - the step that waits until the daemon inside serves
 *
 * How it works: execd listens before it starts anything (docs/execd.md), and
 * nobody else is in the container yet. So a socket that listens on its port
 * says that it serves. The kernel is asked for one, by the container's first
 * process (/proc/PID/net/tcp). A runtime with a network stack of its own has
 * none there: so the port is knocked at as well. A connection that comes to be
 * says the same; it is closed, and nothing is read of it. Where nobody listens
 * yet both are tried again a little later: most are ready in some milliseconds.
 * A knock that nobody answers is given up for the next. A container that ends
 * meanwhile is told of by an event.
 */

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/control/control.h"
#include "src/control/lifecycle/creation.h"
#include "src/control/lifecycle/endpoint.h"
#include "src/role/config.h"

enum { TABLE_BYTES = 4096, PAUSE_MS = 2, PAUSE_MS_MOST = 64, ANSWER_MS = 300 };

void creation_knock_end(struct creation *c)
{
	if (c->knock_fd < 0)
		return;
	watch_fini(&c->knock);
	c->knock_fd = fd_close(c->knock_fd);
}

static void knock_later(struct creation *c)
{
	uint64_t pause = (uint64_t)PAUSE_MS << MIN(c->knocks, 5U);

	creation_knock_end(c);
	c->knocks++;
	if (clock_ms() >= c->ready_until_ms)
		creation_fail(c, 500, "DOCKER::SANDBOX_EXECD_START_FAILED",
			      "execd did not serve within %u ms",
			      c->lifecycle->control->config->sandbox_ready_ms);
	else
		timer_start(&c->timer, MIN(pause, (uint64_t)PAUSE_MS_MOST));
}

static void on_answer(struct watch *w, unsigned ready)
{
	struct creation *c = container_of(w, struct creation, knock);
	socklen_t size = sizeof(int);
	int error = 0;

	(void)ready;
	timer_stop(&c->timer);
	if (getsockopt(c->knock_fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 ||
	    error) {
		knock_later(c);
		return;
	}
	creation_knock_end(c);
	creation_next(c);
}

/* A line of the table is "n: address:port address:port state ...", in hex. */
static bool line_listens(const char *line, const char *end)
{
	unsigned port = 0, state = 0;

	return sscanf(line, " %*u: %*32[0-9A-F]:%4X %*32[0-9A-F]:%*4X %2X",
		      &port, &state) == 2 &&
	       line < end && port == ENDPOINT_EXECD_PORT && state == TCP_LISTEN;
}

/* Few sockets are there so early, and what listens comes first. */
static bool table_listens(pid_t pid, const char *name)
{
	char path[64], text[TABLE_BYTES + 1], *line;
	int fd CLEANUP_FD = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, TABLE_BYTES);
	if (n <= 0)
		return false;
	text[n] = '\0';
	for (line = text; line; line = line[0] ? strchr(line + 1, '\n') : NULL)
		if (line_listens(line, text + n))
			return true;
	return false;
}

static int knock_begin(struct creation *c)
{
	struct addr at = c->q->box->v4;
	struct sockaddr_storage to;
	socklen_t size;

	at.port = ENDPOINT_EXECD_PORT;
	size = addr_to_sockaddr(&at, &to);
	c->knock_fd = socket(to.ss_family,
			     SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->knock_fd < 0)
		return -errno;
	if (watch_init(&c->knock, c->lifecycle->control->loop, c->knock_fd,
		       on_answer)) {
		c->knock_fd = fd_close(c->knock_fd);
		return -ENOMEM;
	}
	if (setsockopt(c->knock_fd, SOL_SOCKET, SO_BINDTODEVICE, CONFIG_BRIDGE,
		       sizeof(CONFIG_BRIDGE) - 1) != 0)
		return -errno;
	if (connect(c->knock_fd, (const struct sockaddr *)&to, size) != 0 &&
	    errno != EINPROGRESS)
		return -errno;
	watch_want(&c->knock, WATCH_WRITE);
	return 0;
}

/* By the timer: a pause is over, or nobody answered. */
static void knock(struct creation *c)
{
	bool was_open = c->knock_fd >= 0;

	if (table_listens(c->pid, "tcp") || table_listens(c->pid, "tcp6")) {
		creation_knock_end(c);
		creation_next(c);
		return;
	}
	if (was_open || knock_begin(c))
		knock_later(c);
	else
		timer_start(&c->timer, ANSWER_MS);
}

void step_ready(struct creation *c)
{
	c->ready_until_ms =
		clock_ms() + c->lifecycle->control->config->sandbox_ready_ms;
	c->knocks = 0;
	c->on_time = knock;
	knock(c);
}
