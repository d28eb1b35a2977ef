/* SPDX-License-Identifier: Apache-2.0 */
/* bounded.c - count what nobody would read */

#include "gateway/audit/bounded.h"

#include <inttypes.h>
#include <stdio.h>

#include "src/base/clock.h"

static void bound_sum(struct audit_bound *b)
{
	struct audit a = b->last;
	char text[64];

	(void)snprintf(text, sizeof(text), "stands for %" PRIu64 " alike",
		       b->withheld);
	a.detail = span_str(text);
	if (b->withheld)
		audit_emit(b->log, &a);
	b->withheld = 0;
	b->written = 0;
}

static void on_end(struct timer *t)
{
	bound_sum(container_of(t, struct audit_bound, end));
}

void audit_bound_init(struct audit_bound *b, struct loop *loop,
		      struct audit_log *log)
{
	*b = (struct audit_bound){ .log = log };
	timer_init(&b->end, loop, on_end);
}

void audit_bound_fini(struct audit_bound *b)
{
	if (!b->log)
		return;
	timer_stop(&b->end);
	bound_sum(b);
	b->log = NULL;
}

/* Keeps facts that belong to nobody else. */
static void bound_keep(struct audit_bound *b, const struct audit *a)
{
	b->last = (struct audit){
		.kind = a->kind,
		.start_us = clock_us(),
		.client = a->client,
		.original = a->original,
		.scheme = a->scheme,
		.reason = a->reason,
	};
	if (span_copy(a->sandbox, b->sandbox, sizeof(b->sandbox)))
		b->last.sandbox = span_str(b->sandbox);
}

void audit_bound_emit(struct audit_bound *b, const struct audit *a)
{
	if (!b->end.due_ms)
		timer_start(&b->end, BOUNDED_MS);
	if (b->written < BOUNDED_RECORDS) {
		b->written++;
		audit_emit(b->log, a);
		return;
	}
	b->withheld++;
	bound_keep(b, a);
}
