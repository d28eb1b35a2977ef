/* SPDX-License-Identifier: Apache-2.0 */
/* flow_desk.c - answer, and have live flows asked about again
 *
 * How it works: changes are numbered. A review covers all changes up to its
 * beginning; a barrier of control is answered when a review has covered the
 * changes before it. One review runs at a time. If the queue role is not there,
 * or could not finish, barriers wait: nobody is told that a denial is in force
 * while the kernel may still forward what it denies.
 *
 * Before control has told everything once there is nothing to decide by:
 * questions wait, as connections do, until the queue role's patience with them
 * ends; and live flows are left alone, because a gateway that was just
 * restarted would deny them all.
 *
 * A review also runs from time to time without a change, so that the names that
 * live flows rest on are held as long as these live.
 */

#include "gateway/flow/flow_desk.h"

#include <errno.h>

#include "gateway/flow/drop_record.h"
#include "gateway/flow/flow_decide.h"
#include "gateway/flow/flow_record.h"
#include "gateway/inside.h"
#include "gateway/registry/learned.h"
#include "src/base/err.h"
#include "src/base/list.h"
#include "src/base/log.h"
#include "src/role/config.h"

enum {
	TICK_MS = 1000,
	HELD_MAX = 4096, /* more than the queue role asks at a time */
};

/* A barrier that waits for the changes before it. */
struct flow_wait {
	struct list link;
	uint32_t serial;
	uint64_t change;
};

/* A question that came too early. */
struct flow_held {
	struct list link;
	uint32_t serial;
	struct msg_flow flow;
};

struct flow_desk {
	struct worker *worker;
	struct chan *queue; /* NULL: gone */
	struct msg_queue_counters counters;
	struct msg_drops drops;
	struct flow_rate *rate;
	struct drop_seen *seen;
	struct timer tick;
	bool synced;
	uint64_t changed;  /* the number of the last change */
	uint64_t reviewed; /* covered by reviews that ended */
	uint64_t covering; /* by the one under way */
	uint32_t serial;   /* of the review under way; 0 = none */
	uint64_t refresh_ms;
	struct list waits; /* oldest first */
	struct list held;  /* the same; until synced */
	unsigned held_count;
};

/* --- reviews --- */

static void review_begin(struct flow_desk *d)
{
	const struct msg_none body = { 0 };

	if (!d->queue || d->serial || !d->synced)
		return;
	d->serial = chan_serial(d->queue);
	d->covering = d->changed;
	/* What flows use is held on by this: well before it is over. */
	d->refresh_ms = loop_now_ms(d->worker->loop) +
			d->worker->config->dns_hold_s * 1000ull / 3;
	(void)chan_send(d->queue, MSG_GATEWAY_REVIEW, d->serial, &body,
			sizeof(body), SPAN_NONE, NULL, 0);
}

static void waits_answer(struct flow_desk *d)
{
	struct flow_wait *wait;

	while ((wait = list_first(&d->waits, struct flow_wait, link)) &&
	       wait->change <= d->reviewed) {
		gateway_flows_synced(d->worker->gateway, wait->serial);
		list_remove(&wait->link);
		free(wait);
	}
}

static bool review_take(struct flow_desk *d, uint32_t serial, int status)
{
	if (!d->serial || serial != d->serial)
		return false;
	d->serial = 0;
	if (status)
		return true; /* the next tick tries again */
	d->reviewed = d->covering;
	waits_answer(d);
	if (d->changed > d->reviewed && !list_is_empty(&d->waits))
		review_begin(d);
	return true;
}

static void on_tick(struct timer *t)
{
	struct flow_desk *d = container_of(t, struct flow_desk, tick);

	timer_start(t, TICK_MS);
	if (d->changed > d->reviewed ||
	    loop_now_ms(d->worker->loop) >= d->refresh_ms)
		review_begin(d);
}

/* --- questions --- */

static void flow_answer(struct flow_desk *d, uint32_t serial,
			const struct msg_flow *flow)
{
	struct worker *w = d->worker;
	struct msg_flow_verdict body = { .verdict = FLOW_DROP };
	struct flow_decision decision = { .quiet = true };

	if (!w->draining || flow->again) {
		flow_decide(w, flow, &decision);
		body.verdict = decision.verdict;
		worker_counted(w, flows);
	}
	(void)chan_send(d->queue, MSG_GATEWAY_FLOW, serial, &body, sizeof(body),
			SPAN_NONE, NULL, 0);
	if (decision.quiet)
		return;
	if (decision.verdict != FLOW_ALLOW && flow->again)
		worker_counted(w, flows_cut);
	else if (decision.verdict != FLOW_ALLOW)
		worker_counted(w, flows_denied);
	else if (!flow->again)
		worker_counted(w, flows_allowed);
	if (decision.verdict != FLOW_ALLOW || !flow->again)
		flow_record(w, d->rate, flow, &decision);
}

/* False: more than anybody may ask at a time. */
static bool flow_asked(struct flow_desk *d, uint32_t serial,
		       const struct msg_flow *flow)
{
	struct flow_held *held;

	if (d->synced) {
		flow_answer(d, serial, flow);
		return true;
	}
	if (d->held_count == HELD_MAX)
		return false;
	held = must_alloc(sizeof(*held));
	list_init(&held->link);
	held->serial = serial;
	held->flow = *flow;
	list_push(&d->held, &held->link);
	d->held_count++;
	return true;
}

static void held_end(struct flow_desk *d, bool answer)
{
	struct flow_held *held;

	while ((held = list_first(&d->held, struct flow_held, link))) {
		if (answer)
			flow_answer(d, held->serial, &held->flow);
		list_remove(&held->link);
		free(held);
	}
	d->held_count = 0;
}

/* --- the channel --- */

static void queue_lose(struct flow_desk *d)
{
	d->queue = chan_free(d->queue);
	d->serial = 0;
	held_end(d, false);
}

static void on_accuse(void *ctx)
{
	gateway_accuse(ctx, ROLE_QUEUE);
}

static void queue_accuse(struct flow_desk *d)
{
	struct gateway *g = d->worker->gateway;

	loop_post(g->loop, on_accuse, g);
	queue_lose(d);
}

static void on_queue(void *ctx, struct chan *c, struct chan_msg *m)
{
	struct flow_desk *d = ctx;
	struct span tail;
	const void *body = msg_body(m->type, m->payload, &tail);
	bool fine = body && !tail.len && !m->fd_count;

	(void)c;
	if (fine && m->type == MSG_QUEUE_FLOW && m->serial)
		fine = flow_asked(d, m->serial, body);
	else if (fine && m->type == MSG_QUEUE_REVIEWED)
		fine = review_take(d, m->serial,
				   ((const struct msg_result *)body)->status);
	else if (fine && m->type == MSG_QUEUE_COUNTERS)
		d->counters = *(const struct msg_queue_counters *)body;
	else if (fine && m->type == MSG_QUEUE_DROP)
		fine = drop_record(d->worker, d->rate, d->seen, body);
	else if (fine && m->type == MSG_QUEUE_DROPS)
		d->drops = *(const struct msg_drops *)body;
	else
		fine = false;
	if (!fine)
		queue_accuse(d);
}

static void on_queue_closed(void *ctx, struct chan *c, int error)
{
	struct flow_desk *d = ctx;

	(void)c;
	log_warn("the queue role is gone: no new flows of UDP and ICMP");
	if (error == -EPROTO)
		queue_accuse(d);
	else
		queue_lose(d);
}

static const struct chan_ops queue_ops = { on_queue, on_queue_closed };

void flow_desk_attach(struct flow_desk *d, int fd)
{
	queue_lose(d);
	d->counters = (struct msg_queue_counters){ 0 };
	d->drops = (struct msg_drops){ 0 };
	if (chan_new(d->worker->loop, fd, &queue_ops, d, &d->queue)) {
		d->queue = NULL;
		return;
	}
	if (d->changed > d->reviewed)
		review_begin(d);
}

/* --- the object --- */

void flow_desk_changed(struct flow_desk *d)
{
	if (d)
		d->changed++;
}

void flow_desk_sync(struct flow_desk *d, uint32_t serial, bool must_review)
{
	struct flow_wait *wait = must_alloc(sizeof(*wait));

	if (!d->synced) {
		d->synced = true;
		held_end(d, true);
	}
	list_init(&wait->link);
	wait->serial = serial;
	wait->change = must_review ? d->changed : 0;
	list_push(&d->waits, &wait->link);
	waits_answer(d);
	if (d->changed > d->reviewed)
		review_begin(d);
}

const struct msg_queue_counters *flow_desk_counters(const struct flow_desk *d)
{
	return &d->counters;
}

const struct msg_drops *flow_desk_drops(const struct flow_desk *d)
{
	return &d->drops;
}

struct flow_desk *flow_desk_new(struct worker *w)
{
	struct flow_desk *d = must_alloc(sizeof(*d));

	d->worker = w;
	d->rate = flow_rate_new();
	d->seen = drop_seen_new();
	list_init(&d->waits);
	list_init(&d->held);
	timer_init(&d->tick, w->loop, on_tick);
	timer_start(&d->tick, TICK_MS);
	return d;
}

struct flow_desk *flow_desk_free(struct flow_desk *d)
{
	struct flow_wait *wait;

	if (!d)
		return NULL;
	timer_stop(&d->tick);
	queue_lose(d);
	while ((wait = list_first(&d->waits, struct flow_wait, link))) {
		list_remove(&wait->link);
		free(wait);
	}
	d->rate = flow_rate_free(d->rate);
	d->seen = drop_seen_free(d->seen);
	free(d);
	return NULL;
}
