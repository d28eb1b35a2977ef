/* SPDX-License-Identifier: Apache-2.0 */
/* create_ready.c - the step that waits until the daemon inside serves
 *
 * How it works: execd removes the file of its token when it listens, before it
 * starts anything (docs/execd.md). So Docker is asked whether the file is still
 * there; when it is not, the daemon serves and the token is nowhere but in its
 * memory. Asked at growing intervals, since most are ready in some
 * milliseconds. A container that ends meanwhile is told of by an event.
 */

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/control/control.h"
#include "src/control/docker/docker.h"
#include "src/control/lifecycle/creation.h"
#include "src/role/config.h"

enum { POLL_MS = 4, POLL_MS_MOST = 200 };

static void ask_again(struct creation *c);

static void on_asked(void *ctx, const struct docker_answer *a)
{
	struct creation *c = ctx;
	uint64_t wait = (uint64_t)POLL_MS << MIN(c->polls, 6U);

	if (!creation_goes_on(c))
		return;
	c->polls++;
	if (a->status == 404)
		creation_next(c);
	else if (!docker_is_ok(a))
		creation_fail(c, runtime_status_of(a),
			      "DOCKER::SANDBOX_EXECD_START_FAILED",
			      "it is not known whether execd serves: %s",
			      a->message);
	else if (clock_ms() >= c->ready_until_ms)
		creation_fail(c, 500, "DOCKER::SANDBOX_EXECD_START_FAILED",
			      "execd did not serve within %u ms",
			      c->lifecycle->control->config->sandbox_ready_ms);
	else
		timer_start(&c->timer, MIN(wait, (uint64_t)POLL_MS_MOST));
}

static void ask_again(struct creation *c)
{
	creation_ask(c, "HEAD", SPAN_NONE, on_asked,
		     "/containers/%s/archive?path=%%2F" CONTAINER_TOKEN,
		     c->container);
}

void step_ready(struct creation *c)
{
	c->ready_until_ms =
		clock_ms() + c->lifecycle->control->config->sandbox_ready_ms;
	c->on_time = ask_again;
	ask_again(c);
}
