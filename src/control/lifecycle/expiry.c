/* SPDX-License-Identifier: Apache-2.0 */
/* expiry.c - sandboxes whose time is over
 *
 * How it works: one timer waits for the earliest expiry there is, at most a
 * minute, since the wall clock may be set. Changes of records only ever make it
 * look earlier: were it set anew by each, a node on which something always
 * changes would never look. A sandbox that is due is marked as stopping by a
 * change of its record, which looks again at its expiry: a renewal that came
 * before has moved it. What is marked is removed, and if that fails, tried
 * again; so is one whose creation has failed before it was marked.
 */

#include "src/control/lifecycle/runtime.h"

#include <stdlib.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/control.h"
#include "src/control/lifecycle/record.h"

enum { LOOK_MS = 60 * 1000, AGAIN_MS = 30 * 1000 };

struct due {
	struct lifecycle *lifecycle;
	char id[BOX_ID_SIZE];
};

static bool is_due(const struct box *b, uint64_t now_ms)
{
	return b->expires_ms && b->expires_ms <= now_ms;
}

static bool edit_stopping(void *data, struct box *b)
{
	uint64_t now = clock_wall_ms();

	(void)data;
	if (b->state == BOX_STOPPING || !is_due(b, now))
		return false;
	box_set_state(b, BOX_STOPPING, "", "The sandbox has expired.", now);
	return true;
}

static void on_marked(void *ctx, const struct refusal *why)
{
	struct due *due = ctx;

	if (!why->status && !due->lifecycle->ended) {
		log_info("sandbox %s has expired", due->id);
		lifecycle_remove(due->lifecycle, span_str(due->id), NULL, NULL);
	}
	free(due);
}

static void box_expire(struct lifecycle *l, const struct box *b)
{
	struct due *due = must_alloc(sizeof(*due));

	due->lifecycle = l;
	(void)span_copy(span_str(b->id), due->id, sizeof(due->id));
	record_edit(l, span_str(b->id), edit_stopping, NULL, on_marked, due);
}

/* Half made or half removed, and nobody is at it. */
static bool is_left_over(const struct lifecycle *l, const struct box *b)
{
	return (b->state == BOX_STOPPING || b->state == BOX_PENDING) &&
	       !creation_is_on(l, span_str(b->id)) &&
	       !removal_is_on(l, span_str(b->id));
}

/* Ids first: removing and marking may exchange boxes. */
static void due_collect(struct lifecycle *l, uint64_t now,
			char (*ids)[BOX_ID_SIZE], unsigned *count,
			uint64_t *earliest)
{
	size_t cursor = 0;
	struct box *b;

	while ((b = map_next(&l->boxes.by_id, &cursor, NULL))) {
		if ((b->state != BOX_STOPPING && is_due(b, now)) ||
		    is_left_over(l, b))
			memcpy(ids[(*count)++], b->id, BOX_ID_SIZE);
		else if (b->expires_ms > now)
			*earliest = MIN(*earliest, b->expires_ms);
	}
}

static void look_after(struct runtime *r, uint64_t ms)
{
	r->expiry_ms = clock_ms() + ms;
	timer_start(&r->expiry, ms);
}

static void look_within(struct runtime *r, uint64_t ms)
{
	if (!r->expiry_ms || clock_ms() + ms < r->expiry_ms)
		look_after(r, ms);
}

static void on_expiry(struct timer *t)
{
	struct runtime *r = container_of(t, struct runtime, expiry);
	struct lifecycle *l = r->lifecycle;
	uint64_t now = clock_wall_ms(), earliest = now + LOOK_MS;
	unsigned count = 0, i;
	char(*ids)[BOX_ID_SIZE];
	const struct box *b;

	if (l->ended)
		return;
	if (!l->control->loaded) {
		look_after(r, RUNTIME_RETRY_MS);
		return;
	}
	ids = must_alloc((map_count(&l->boxes.by_id) + 1) * sizeof(*ids));
	due_collect(l, now, ids, &count, &earliest);
	for (i = 0; i < count; i++) {
		b = boxes_find(&l->boxes, span_str(ids[i]));
		if (b && is_left_over(l, b))
			lifecycle_remove(l, span_str(ids[i]), NULL, NULL);
		else if (b)
			box_expire(l, b);
	}
	free(ids);
	earliest = count ? MIN(earliest, now + AGAIN_MS) : earliest;
	look_after(r, earliest - now);
}

void runtime_look(struct lifecycle *l)
{
	uint64_t now = clock_wall_ms(), earliest = now + LOOK_MS;
	struct runtime *r = l->runtime;
	size_t cursor = 0;
	struct box *b;

	if (l->ended)
		return;
	while ((b = map_next(&l->boxes.by_id, &cursor, NULL)))
		if (b->expires_ms && b->state != BOX_STOPPING)
			earliest = MIN(earliest, MAX(b->expires_ms, now + 1));
	look_within(r, earliest - now);
}

void runtime_look_again(struct lifecycle *l)
{
	look_within(l->runtime, AGAIN_MS);
}

void expiry_init(struct runtime *r)
{
	timer_init(&r->expiry, r->lifecycle->control->loop, on_expiry);
}
