/* SPDX-License-Identifier: Apache-2.0 */
/* doubt.c - a daemon that fails is asked whether it is still there
 *
 * How it works: a daemon on its way down goes on with the connections that it
 * has, and answers with whatever has broken first: status 500 for what was no
 * fault of the request, nor of a daemon that runs. It takes no new connections.
 * So such an answer is not told before a knock on a new one was answered; else
 * the call ends as those do whose connection broke. Where systemd holds the
 * socket, the next daemon answers the knock: but then connections of the one
 * before have broken since the call began, its events if nothing else.
 */

#include <errno.h>

#include "src/control/docker/inside.h"

enum { FAILURE = 500, KNOCK_MS = 5000 };

struct docker_call *docker_knock(struct docker *d, docker_fn *fn, void *ctx)
{
	static const struct docker_request q = {
		.method = "GET",
		.path = "/_ping",
		.unversioned = true,
		.fresh = true,
		.silence_ms = KNOCK_MS,
	};
	struct docker_call *call = docker_begin(d, &q, fn, ctx);

	call->was_doubted = true; /* any answer will do */
	return call;
}

static void on_knocked(void *ctx, const struct docker_answer *a)
{
	struct docker_call *call = ctx;
	struct docker *d = call->docker;

	call->knock = NULL;
	if (a->status == -ECANCELED)
		call->error = -ECANCELED;
	else if (a->status < 0 || d->losses != call->losses)
		call->error = -ECONNRESET;
	list_remove(&call->link);
	list_push(&d->ended, &call->link);
}

bool doubt_begin(struct docker_call *call)
{
	if (call->error < FAILURE || call->was_doubted || !call->fn)
		return false;
	call->was_doubted = true;
	list_remove(&call->link);
	list_push(&call->docker->doubted, &call->link);
	call->knock = docker_knock(call->docker, on_knocked, call);
	return true;
}
