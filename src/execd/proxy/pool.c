/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - idle connections, and when they are not worth keeping */

#include "src/execd/proxy/pool.h"

#include "src/base/err.h"
#include "src/io/loop.h"
#include "src/io/stream.h"

struct idle {
	struct list link;
	struct pool *pool;
	struct stream *stream;
	struct timer timer;
	uint16_t port;
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

void pool_init(struct pool *p, struct loop *loop)
{
	p->loop = loop;
	list_init(&p->idle);
	p->count = 0;
}

void pool_fini(struct pool *p)
{
	list_for_each(it, &p->idle)(void)
		stream_free(idle_free(container_of(it, struct idle, link)));
}

void pool_give(struct pool *p, uint16_t port, struct stream *s)
{
	struct idle *i;

	if (p->count >= POOL_MAX)
		(void)stream_free(
			idle_free(list_last(&p->idle, struct idle, link)));
	i = must_alloc(sizeof(*i));
	i->pool = p;
	i->stream = s;
	i->port = port;
	timer_init(&i->timer, p->loop, idle_on_timer);
	timer_start(&i->timer, POOL_IDLE_MS);
	list_init(&i->link);
	list_push_front(&p->idle, &i->link);
	p->count++;
	stream_set_owner(s, idle_on_stream, i);
	stream_want(s, STREAM_READABLE);
}

struct stream *pool_take(struct pool *p, uint16_t port)
{
	list_for_each(it, &p->idle)
	{
		struct idle *i = container_of(it, struct idle, link);

		if (i->port == port)
			return idle_free(i);
	}
	return NULL;
}
