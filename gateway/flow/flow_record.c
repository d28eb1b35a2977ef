/* SPDX-License-Identifier: Apache-2.0 */
/* flow_record.c - audit records of flows, by two kinds of buckets
 *
 * A bucket fills by so many a second up to its burst. There is one for the
 * node, and a small table of them in which sandboxes are found by a hash: two
 * that meet in one share it.
 */

#include "gateway/flow/flow_record.h"

#include "gateway/flow/flow_decide.h"
#include "gateway/pipeline/decide.h"
#include "gateway/worker.h"
#include "src/base/arena.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/map.h"

enum {
	BUCKETS = 1024,
	SANDBOX_PER_SECOND = 20,
	SANDBOX_BURST = 100,
	NODE_PER_SECOND = 500,
	NODE_BURST = 2000,
	RECORD_ARENA_BYTES = 16 * 1024,
};

/* In thousandths of a record. */
struct bucket {
	uint64_t filled_ms;
	uint64_t level;
};

struct flow_rate {
	struct bucket node, sandboxes[BUCKETS];
};

struct flow_rate *flow_rate_new(void)
{
	return must_alloc(sizeof(struct flow_rate));
}

struct flow_rate *flow_rate_free(struct flow_rate *r)
{
	free(r);
	return NULL;
}

static bool bucket_has(struct bucket *b, uint64_t now_ms, uint64_t per_second,
		       uint64_t burst)
{
	b->level = MIN(burst * 1000,
		       b->level + (now_ms - b->filled_ms) * per_second);
	b->filled_ms = now_ms;
	return b->level >= 1000;
}

bool flow_rate_allows(struct flow_rate *r, struct span sandbox, uint64_t now_ms)
{
	struct bucket *own = &r->sandboxes[map_hash(sandbox) % BUCKETS];

	if (!bucket_has(own, now_ms, SANDBOX_PER_SECOND, SANDBOX_BURST) ||
	    !bucket_has(&r->node, now_ms, NODE_PER_SECOND, NODE_BURST))
		return false;
	own->level -= 1000;
	r->node.level -= 1000;
	return true;
}

void flow_record(struct worker *w, struct flow_rate *rate,
		 const struct msg_flow *flow, const struct flow_decision *d)
{
	struct span id = d->sandbox ? span_str(d->sandbox->id) : SPAN_NONE;
	struct audit a = {
		.kind = AUDIT_FLOW,
		.start_us = clock_us(),
		.sandbox = id,
		.client = d->client,
		.original = d->destination,
		.scheme = d->scheme,
		.host = host_span(&d->host),
		.host_learned = d->host.len > 0,
		.port = d->destination.port,
		.reason = d->reason,
	};
	struct arena arena;

	if (!flow_rate_allows(rate, id, loop_now_ms(w->loop))) {
		worker_counted(w, flows_unrecorded);
		return;
	}
	arena_init(&arena, RECORD_ARENA_BYTES);
	if (d->sandbox)
		decide_audit(w, d->sandbox, &d->by, &arena, &a);
	a.allowed = d->verdict == FLOW_ALLOW;
	if (flow->again)
		a.reason = AUDIT_REASON_CUT;
	audit_emit(w->audit_log, &a);
	arena_fini(&arena);
}
