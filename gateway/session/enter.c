/* SPDX-License-Identifier: Apache-2.0 */
/* enter.c - identify a connection, charge it, or refuse it */

#include "gateway/session/enter.h"

#include <sys/socket.h>

#include "gateway/registry/quota.h"
#include "gateway/worker.h"
#include "src/base/clock.h"
#include "src/base/fd.h"

static void fd_reset(int fd)
{
	const struct linger now = { .l_onoff = 1, .l_linger = 0 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	(void)fd_close(fd);
}

static void enter_refuse(struct worker *w, struct sandbox *s,
			 const struct entrant *e)
{
	const struct audit a = {
		.kind = AUDIT_CONNECT,
		.start_us = clock_us(),
		.sandbox = s ? span_str(s->id) : SPAN_NONE,
		.client = e->client,
		.original = e->original,
		.reason = s ? AUDIT_REASON_LIMIT : AUDIT_REASON_UNKNOWN_SANDBOX,
	};

	if (s)
		worker_counted(w, connections_limited);
	else
		worker_counted(w, connections_unknown);
	worker_refused(w, s, &a);
}

struct sandbox *enter(struct worker *w, int fd, const struct entrant *e)
{
	struct sandbox *s = facts_find_sandbox(&w->facts, &e->client, e->iface);

	worker_counted(w, connections);
	if (s && quota_take(s->quota, QUOTA_CONNECTS, clock_us()) &&
	    quota_open(s->quota))
		return sandbox_ref(s);
	enter_refuse(w, s, e);
	fd_reset(fd);
	return NULL;
}

void enter_leave(struct sandbox *s)
{
	quota_close(s->quota);
	(void)sandbox_unref(s);
}
