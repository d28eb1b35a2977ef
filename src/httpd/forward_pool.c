/* SPDX-License-Identifier: Apache-2.0 */
/* forward_pool.c - idle connections, and when they are not worth keeping */

#include "src/httpd/forward_pool.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "src/base/err.h"
#include "src/io/loop.h"
#include "src/io/stream.h"

struct idle {
	struct list link;
	struct forward_pool *pool;
	struct stream *stream;
	struct timer timer;
	struct addr to;
	char device[IFNAMSIZ];
};

/* Out of the pool; the stream is the caller's. */
static struct stream *idle_free(struct idle *i)
{
	struct stream *s = i->stream;

	timer_stop(&i->timer);
	list_remove(&i->link);
	i->pool->count--;
	stream_set_owner(s, NULL, NULL);
	free(i);
	return s;
}

static void idle_on_stream(struct stream *s, void *ctx, unsigned events)
{
	(void)events;
	(void)idle_free(ctx);
	(void)stream_free(s);
}

static void idle_on_timer(struct timer *t)
{
	(void)stream_free(idle_free(container_of(t, struct idle, timer)));
}

void forward_pool_init(struct forward_pool *p, struct loop *loop)
{
	p->loop = loop;
	list_init(&p->idle);
	p->count = 0;
}

void forward_pool_fini(struct forward_pool *p)
{
	list_for_each(it, &p->idle)(void)
		stream_free(idle_free(container_of(it, struct idle, link)));
}

void forward_pool_give(struct forward_pool *p, const struct addr *to,
		       const char *device, struct stream *s)
{
	struct idle *i;

	if (p->count >= FORWARD_POOL_MAX)
		(void)stream_free(
			idle_free(list_last(&p->idle, struct idle, link)));
	i = must_alloc(sizeof(*i));
	i->pool = p;
	i->stream = s;
	i->to = *to;
	(void)snprintf(i->device, sizeof(i->device), "%s", device);
	timer_init(&i->timer, p->loop, idle_on_timer);
	timer_start(&i->timer, FORWARD_POOL_IDLE_MS);
	list_init(&i->link);
	list_push_front(&p->idle, &i->link);
	p->count++;
	stream_set_owner(s, idle_on_stream, i);
	stream_want(s, STREAM_READABLE);
}

static bool leads_to(const struct idle *i, const struct addr *ip,
		     const char *device)
{
	return addr_eq_ip(&i->to, ip) && !strcmp(i->device, device);
}

struct stream *forward_pool_take(struct forward_pool *p, const struct addr *to,
				 const char *device)
{
	list_for_each(it, &p->idle)
	{
		struct idle *i = container_of(it, struct idle, link);

		if (i->to.port == to->port && leads_to(i, to, device))
			return idle_free(i);
	}
	return NULL;
}

void forward_pool_forget(struct forward_pool *p, const struct addr *ip,
			 const char *device)
{
	list_for_each(it, &p->idle)
	{
		struct idle *i = container_of(it, struct idle, link);

		if (leads_to(i, ip, device))
			(void)stream_free(idle_free(i));
	}
}
