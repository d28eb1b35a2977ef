/* SPDX-License-Identifier: Apache-2.0 */
/* bounded.c - count what nobody would read */

#include "gateway/audit/bounded.h"

#include <stdlib.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/io/loop.h"

enum { ID_SIZE = 256 };

struct audit_bound {
	struct audit_log *log;
	struct timer end; /* of the second */
	unsigned written;
	/* of each kind the latest that was withheld, without what it borrowed;
	 * alike is how many it stands for */
	struct audit sums[AUDIT_KIND_NUM];
	char sandbox[ID_SIZE];
};

static void bound_sum(struct audit_bound *b)
{
	unsigned i;

	for (i = 0; i < AUDIT_KIND_NUM; i++) {
		if (b->sums[i].alike)
			audit_emit(b->log, &b->sums[i]);
		b->sums[i].alike = 0;
	}
	b->written = 0;
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

/* Only facts that belong to nobody else. */
static void bound_keep(struct audit_bound *b, const struct audit *a)
{
	struct audit *sum = &b->sums[a->kind];

	*sum = (struct audit){
		.kind = a->kind,
		.start_us = clock_us(),
		.client = a->client,
		.original = a->original,
		.scheme = a->scheme,
		.reason = a->reason,
		.alike = sum->alike + 1,
	};
	if (span_copy(a->sandbox, b->sandbox, sizeof(b->sandbox)))
		sum->sandbox = span_str(b->sandbox);
}

void audit_bound_emit(struct audit_bound *b, const struct audit *a)
{
	if (!b->end.due_ms)
		timer_start(&b->end, BOUNDED_MS);
	if (b->written == BOUNDED_RECORDS) {
		bound_keep(b, a);
		return;
	}
	b->written++;
	audit_emit(b->log, a);
}
