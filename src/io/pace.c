/* SPDX-License-Identifier: Apache-2.0 */
/* pace.c - the line of streams that wait for bytes they may read
 *
 * Bytes that were drawn are in one of two places: promised to a stream that was
 * called from the line (s->share), which may then pass those who wait; or left
 * over, for whoever is next (p->spare).
 */

#include "src/base/err.h"
#include "src/io/stream_inside.h"

enum {
	/* How often the line is looked at, with a spread: loops that draw from
	 * one owner should not always come in the same order. */
	LOOK_MS = 3,
	LOOK_SPREAD_MS = 4,
};

struct pace {
	struct loop *loop;
	const struct pace_ops *ops;
	void *ctx;
	unsigned refs;
	bool limited;
	uint64_t spare;
	struct list waiting; /* struct stream.paced, who came first is first */
	struct timer look;
	uint32_t spread;
};

static void pace_look_later(struct pace *p)
{
	/* any sequence will do that differs from pace to pace */
	p->spread = p->spread * 1664525 + 1013904223;
	timer_start(&p->look, LOOK_MS + (p->spread >> 16) % LOOK_SPREAD_MS);
}

static void pace_call(struct stream *s, uint64_t share)
{
	list_remove(&s->paced);
	s->paused = false;
	s->share = share;
	stream_rearm(s);
}

/* The next chunk: 0 none, UINT64_MAX no limit. */
static uint64_t pace_draw(struct pace *p)
{
	uint64_t chunk = p->spare;

	if (!p->limited)
		return UINT64_MAX;
	p->spare = 0;
	return chunk ? chunk : p->ops->draw(p->ctx);
}

static void on_look(struct timer *t)
{
	struct pace *p = container_of(t, struct pace, look);
	struct stream *s;
	uint64_t chunk;

	while ((s = list_first(&p->waiting, struct stream, paced))) {
		chunk = pace_draw(p);
		if (!chunk)
			break;
		pace_call(s, chunk == UINT64_MAX ? 0 : chunk);
	}
	if (s)
		pace_look_later(p);
}

struct pace *pace_new(struct loop *loop, const struct pace_ops *ops, void *ctx)
{
	struct pace *p = must_alloc(sizeof(*p));

	p->loop = loop;
	p->ops = ops;
	p->ctx = ctx;
	p->refs = 1;
	p->spread = (uint32_t)((uintptr_t)p >> 6);
	list_init(&p->waiting);
	timer_init(&p->look, loop, on_look);
	return p;
}

struct pace *pace_ref(struct pace *p)
{
	if (p)
		p->refs++;
	return p;
}

struct pace *pace_unref(struct pace *p)
{
	if (!p || --p->refs)
		return NULL;
	must(list_is_empty(&p->waiting)); /* they would hold references */
	timer_stop(&p->look);
	if (p->ops->release)
		p->ops->release(p->ctx);
	free(p);
	return NULL;
}

void pace_limit(struct pace *p, bool limited)
{
	p->limited = limited;
	if (!limited)
		p->spare = 0;
	if (!list_is_empty(&p->waiting))
		timer_start(&p->look, 1);
}

void pace_leave(struct stream *s)
{
	list_remove(&s->paced);
	s->paused = false;
	if (s->pace)
		s->pace->spare += s->share;
	s->share = 0;
	s->pace = pace_unref(s->pace);
}

void stream_set_pace(struct stream *s, struct pace *p)
{
	if (s->pace == p)
		return;
	pace_leave(s);
	s->pace = pace_ref(p);
	stream_rearm(s);
}

static size_t pace_wait(struct stream *s)
{
	struct pace *p = s->pace;

	s->paused = true;
	if (list_is_empty(&s->paced))
		list_push(&p->waiting, &s->paced);
	if (!p->look.due_ms)
		pace_look_later(p);
	stream_rearm(s);
	return 0;
}

size_t pace_ask(struct stream *s, size_t len)
{
	struct pace *p = s->pace;
	uint64_t chunk, share = s->share;

	if (!p->limited)
		return len;
	s->share = 0;
	if (s->paused || (!share && !list_is_empty(&p->waiting)))
		return pace_wait(s);
	chunk = share ? share : pace_draw(p);
	if (!chunk)
		return pace_wait(s);
	if (chunk == UINT64_MAX) /* the limit is going away */
		return len;
	p->spare += chunk; /* until pace_pay(), which comes right away */
	return MIN(len, chunk);
}

void pace_pay(struct stream *s, size_t len)
{
	s->pace->spare -= MIN(s->pace->spare, len);
}
