/* SPDX-License-Identifier: Apache-2.0 */
/* bounded.c - count what nobody would read */

#include "gateway/audit/bounded.h"

#include <stdlib.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/io/loop.h"

enum { ID_SIZE = 256, SUMS = 16 };

/* of one kind and reason the latest that was withheld, without what it
 * borrowed; alike is how many it stands for */
struct sums {
	struct audit of[SUMS];
	unsigned count;
	char sandbox[ID_SIZE];
};

struct audit_bound {
	struct audit_log *log;
	struct timer end; /* of the second */
	unsigned written[BOUNDED_NUM];
	struct sums *sums; /* NULL: nothing was withheld */
};

static void bound_sum(struct audit_bound *b)
{
	unsigned i;

	for (i = 0; b->sums && i < b->sums->count; i++)
		audit_emit(b->log, &b->sums->of[i]);
	free(b->sums);
	b->sums = NULL;
	for (i = 0; i < BOUNDED_NUM; i++)
		b->written[i] = 0;
}

static void on_end(struct timer *t)
{
	bound_sum(container_of(t, struct audit_bound, end));
}

struct audit_bound *audit_bound_new(struct loop *loop, struct audit_log *log)
{
	struct audit_bound *b = must_alloc(sizeof(*b));

	b->log = log;
	timer_init(&b->end, loop, on_end);
	return b;
}

struct audit_bound *audit_bound_free(struct audit_bound *b)
{
	if (!b)
		return NULL;
	timer_stop(&b->end);
	bound_sum(b);
	free(b);
	return NULL;
}

/* That of its kind and reason. Where there is room for no other, the last one
 * takes all. */
static struct audit *sum_at(struct sums *sums, const struct audit *a)
{
	struct audit *sum;

	for (sum = sums->of; sum < sums->of + sums->count; sum++)
		if (sum->kind == a->kind && sum->reason == a->reason)
			return sum;
	if (sums->count == SUMS)
		return &sums->of[SUMS - 1];
	sum = &sums->of[sums->count++];
	*sum = (struct audit){ .kind = a->kind, .reason = a->reason };
	return sum;
}

/* Only facts that belong to nobody else. */
static void bound_keep(struct audit_bound *b, const struct audit *a)
{
	struct audit *sum;

	if (!b->sums)
		b->sums = must_alloc(sizeof(*b->sums));
	sum = sum_at(b->sums, a);
	*sum = (struct audit){
		.kind = sum->kind,
		.start_us = clock_us(),
		.client = a->client,
		.original = a->original,
		.scheme = a->scheme,
		.reason = sum->reason,
		.alike = sum->alike + 1,
	};
	if (span_copy(a->sandbox, b->sums->sandbox, sizeof(b->sums->sandbox)))
		sum->sandbox = span_str(b->sums->sandbox);
}

void audit_bound_emit(struct audit_bound *b, enum audit_bounded which,
		      const struct audit *a)
{
	static const unsigned most[BOUNDED_NUM] = {
		[BOUNDED_FLOOD] = BOUNDED_FLOOD_RECORDS,
		[BOUNDED_DENIAL] = BOUNDED_DENIAL_RECORDS,
	};

	if (!b->end.due_ms)
		timer_start(&b->end, BOUNDED_MS);
	if (b->written[which] == most[which]) {
		audit_look(b->log, a);
		bound_keep(b, a);
		return;
	}
	b->written[which]++;
	audit_emit(b->log, a);
}
