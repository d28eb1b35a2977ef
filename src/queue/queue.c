/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c - packets and flows become questions, answers become verdicts
 *
 * How it works: a packet that the kernel holds is read for its flow and the
 * gateway is asked. An answer in time sets its mark (src/role/flow_mark.h) and
 * lets it go on to the rules that obey the mark; every other end drops it: no
 * flow, no gateway, too many questions, no answer in time.
 *
 * Later packets of an allowed flow never come here, so a change of policy must
 * reach what the kernel keeps. The gateway then asks for a review: each entry
 * of connection tracking with our tag is a question again, and who is denied is
 * deleted, by exactly its tuple and id. Nothing else has to be remembered, here
 * or in the gateway, and nobody else's flow is touched. A flow that was allowed
 * before the review is in the kernel's table before the review begins, because
 * a verdict carries its packet to its end before the next message is read.
 *
 * Going through the kernel's table takes as long as the table is large, however
 * few of its entries are ours. So a review that cannot find any is answered
 * without looking: when the last whole list had none, and no verdict let one
 * begin since that list was asked for. Entries with our tag come from nowhere
 * else, but for what the kernel relates to such an entry while it lives.
 *
 * A new gateway begins with nothing: packets that waited for the old one are
 * dropped, a review is forgotten; the new one asks for its own.
 */

#include "src/queue/queue.h"

#include <errno.h>
#include <net/ethernet.h>
#include <string.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/io/chan.h"
#include "src/io/loop.h"
#include "src/queue/conntrack.h"
#include "src/queue/drops.h"
#include "src/queue/nfqueue.h"
#include "src/queue/questions.h"
#include "src/role/config.h"
#include "src/role/flow_mark.h"
#include "src/role/msg.h"
#include "src/wire/packet.h"

enum {
	ANSWER_MS = 2000, /* longer, and the client has tried again */
	COUNTERS_MS = 500,
	REVIEW_TRIES = 5, /* of a list that the kernel did not finish */
};

/* A review under way: listing, or waiting for the last answers. */
struct review {
	uint32_t serial; /* of the gateway's wish; 0 = none */
	unsigned tries;
	bool listed; /* the kernel has no more */
	bool failed; /* something may have been left out */
};

struct queue {
	struct loop *loop;
	struct nfqueue *nfqueue;     /* NULL: this kernel has none */
	struct conntrack *conntrack; /* the same */
	struct questions *questions;
	struct drops *drops;
	struct chan *supervisor, *gateway; /* NULL: gone */
	struct review review;
	bool may_live; /* false: the kernel has no entry with our tag */
	struct msg_queue_counters counters, told;
	struct timer expiry, telling;
	int status;
};

/* --- counters --- */

static void on_telling(struct timer *t)
{
	struct queue *q = container_of(t, struct queue, telling);

	timer_start(t, COUNTERS_MS);
	if (!q->gateway || !memcmp(&q->counters, &q->told, sizeof(q->told)))
		return;
	q->told = q->counters;
	(void)chan_send(q->gateway, MSG_QUEUE_COUNTERS, 0, &q->told,
			sizeof(q->told), SPAN_NONE, NULL, 0);
}

/* --- questions --- */

static void expiry_set(struct queue *q)
{
	uint64_t due = questions_due(q->questions);
	uint64_t now = loop_now_ms(q->loop);

	if (!due)
		timer_stop(&q->expiry);
	else
		timer_start(&q->expiry, due > now ? due - now : 0);
}

static void on_expiry(struct timer *t)
{
	struct queue *q = container_of(t, struct queue, expiry);
	const struct question *x;

	while ((x = questions_expire(q->questions, loop_now_ms(q->loop)))) {
		nfqueue_drop(q->nfqueue, x->packet);
		q->counters.unanswered++;
		drops_put(q->drops, DROP_UNDECIDED, x->ifindex, &x->flow);
	}
	expiry_set(q);
}

static void accuse_gateway(struct queue *q)
{
	const struct msg_peer body = { .role = ROLE_GATEWAY };

	log_error("accused the gateway: it sent what it may not send");
	if (q->supervisor)
		(void)chan_send(q->supervisor, MSG_ROLE_ACCUSE, 0, &body,
				sizeof(body), SPAN_NONE, NULL, 0);
}

static void gateway_lose(struct queue *q)
{
	struct question *x;

	q->gateway = chan_free(q->gateway);
	q->review = (struct review){ 0 };
	while ((x = questions_first(q->questions))) {
		if (x->kind == QUESTION_PACKET) {
			nfqueue_drop(q->nfqueue, x->packet);
			q->counters.unanswered++;
		}
		questions_drop_first(q->questions);
	}
	timer_stop(&q->expiry);
}

/* False: it could not be sent, and the gateway is lost. */
static bool question_send(struct queue *q, struct question *x,
			  const struct msg_flow *flow)
{
	int r;

	x->serial = chan_serial(q->gateway);
	r = chan_send(q->gateway, MSG_QUEUE_FLOW, x->serial, flow,
		      sizeof(*flow), SPAN_NONE, NULL, 0);
	if (!r)
		return true;
	log_error("could not ask the gateway: %s", err_text(r));
	gateway_lose(q);
	return false;
}

/* --- packets --- */

static void flow_fill(struct msg_flow *flow, const struct packet_flow *from,
		      uint32_t ifindex)
{
	*flow = (struct msg_flow){
		.ifindex = ifindex,
		.client_port = from->source.port,
		.port = from->destination.port,
		.protocol = from->protocol,
		.icmp_type = from->icmp_type,
		.icmp_code = from->icmp_code,
	};
	memcpy(flow->client, from->source.ip, sizeof(flow->client));
	memcpy(flow->destination, from->destination.ip,
	       sizeof(flow->destination));
}

static void packet_drop(struct queue *q, uint32_t id, uint64_t *counter)
{
	++*counter;
	nfqueue_drop(q->nfqueue, id);
}

/* What it says of itself, as far as that goes. */
static void unparsed_tell(struct queue *q, const struct nfqueue_packet *p)
{
	struct packet_flow sketch;
	struct msg_flow flow;
	bool is_v6 = p->bytes.len && (uint8_t)p->bytes.ptr[0] >> 4 == 6;

	packet_sketch(p->bytes, is_v6 ? ETHERTYPE_IPV6 : ETHERTYPE_IP, &sketch);
	flow_fill(&flow, &sketch, p->ifindex);
	drops_put(q->drops, DROP_MALFORMED, p->ifindex, &flow);
}

static void on_packet(void *ctx, const struct nfqueue_packet *p)
{
	struct packet_flow parsed;
	struct msg_flow flow;
	struct queue *q = ctx;
	struct question *x;

	q->counters.packets++;
	drops_received(q->drops);
	if (!p->ifindex || p->ifindex > FLOW_MARK_IFINDEX ||
	    !packet_parse(p->bytes, &parsed)) {
		packet_drop(q, p->id, &q->counters.unparsable);
		unparsed_tell(q, p);
		return;
	}
	flow_fill(&flow, &parsed, p->ifindex);
	if (!q->gateway) {
		packet_drop(q, p->id, &q->counters.unanswered);
		return;
	}
	x = questions_add(q->questions, QUESTION_PACKET, p->ifindex);
	if (!x) {
		packet_drop(q, p->id, &q->counters.overflowed);
		drops_put(q->drops, DROP_LIMIT, p->ifindex, &flow);
		return;
	}
	x->packet = p->id;
	x->due_ms = loop_now_ms(q->loop) + ANSWER_MS;
	x->flow = flow;
	if (question_send(q, x, &flow))
		expiry_set(q);
}

static void on_lost(void *ctx)
{
	((struct queue *)ctx)->counters.lost++;
}

static void on_drop(void *ctx, const struct msg_drop *d)
{
	struct queue *q = ctx;

	if (q->gateway)
		(void)chan_send(q->gateway, MSG_QUEUE_DROP, 0, d, sizeof(*d),
				SPAN_NONE, NULL, 0);
}

static void on_drop_sums(void *ctx, const struct msg_drops *sums)
{
	struct queue *q = ctx;

	if (q->gateway)
		(void)chan_send(q->gateway, MSG_QUEUE_DROPS, 0, sums,
				sizeof(*sums), SPAN_NONE, NULL, 0);
}

static const struct drops_ops drops_ops = { on_drop, on_drop_sums };
static const struct nfqueue_ops nfqueue_ops = { on_packet, on_lost };

static void packet_answer(struct queue *q, const struct question *x,
			  enum flow_verdict verdict)
{
	switch (verdict) {
	case FLOW_ALLOW:
		q->counters.allowed++;
		q->may_live = true;
		nfqueue_accept(q->nfqueue, x->packet,
			       FLOW_MARK_TAG | x->ifindex);
		return;
	case FLOW_REJECT:
		q->counters.rejected++;
		nfqueue_accept(q->nfqueue, x->packet, FLOW_MARK_REJECT);
		return;
	case FLOW_DROP:
	case FLOW_VERDICT_NUM:
		break;
	}
	packet_drop(q, x->packet, &q->counters.dropped);
}

/* --- review --- */

static void review_end(struct queue *q)
{
	struct msg_result body = { .status = q->review.failed ? EIO : 0 };

	if (q->review.failed) {
		(void)span_copy(SPAN("the kernel did not list every flow"),
				body.text, sizeof(body.text));
		log_error("could not review every live flow");
	}
	(void)chan_send(q->gateway, MSG_QUEUE_REVIEWED, q->review.serial, &body,
			sizeof(body), SPAN_NONE, NULL, 0);
	q->review = (struct review){ 0 };
}

static void review_list(struct queue *q)
{
	int r;

	q->review.listed = q->review.failed = false;
	q->review.tries++;
	q->may_live = false; /* what is there will be heard of */
	r = conntrack_list(q->conntrack);
	if (!r)
		return;
	q->may_live = q->review.failed = true;
	review_end(q);
}

/* The list is through and every question of it answered. */
static void review_advance(struct queue *q)
{
	if (!q->review.serial || !q->review.listed ||
	    questions_reviews(q->questions))
		return;
	if (q->review.failed && q->review.tries < REVIEW_TRIES)
		review_list(q);
	else
		review_end(q);
}

static bool on_entry(void *ctx, const struct conntrack_entry *e)
{
	struct queue *q = ctx;
	struct question *x;

	q->may_live = true;
	if (!q->review.serial)
		return true; /* the gateway who wished it is gone */
	x = questions_add(q->questions, QUESTION_REVIEW, e->flow.ifindex);
	if (!x) {
		q->review.failed = true;
		return true;
	}
	x->key = e->key;
	q->counters.reviewed++;
	return question_send(q, x, &e->flow) &&
	       questions_may_review(q->questions);
}

static void on_list_end(void *ctx, bool complete)
{
	struct queue *q = ctx;

	q->review.listed = true;
	q->review.failed |= !complete;
	q->may_live |= !complete;
	review_advance(q);
}

static const struct conntrack_ops conntrack_ops = { on_entry, on_list_end };

static void review_begin(struct queue *q, uint32_t serial)
{
	q->review = (struct review){ .serial = serial };
	if (q->conntrack && q->may_live)
		review_list(q);
	else
		review_end(q); /* there are no flows */
}

static void review_answer(struct queue *q, const struct question *x,
			  enum flow_verdict verdict)
{
	int r;

	if (verdict == FLOW_ALLOW)
		return;
	r = conntrack_delete(q->conntrack, &x->key);
	if (r)
		q->review.failed = true;
	else
		q->counters.cut++;
}

/* --- channels --- */

static bool answer_take(struct queue *q, uint32_t serial, uint32_t verdict)
{
	struct question *x = questions_first(q->questions);

	if (!x || x->serial != serial || verdict >= FLOW_VERDICT_NUM)
		return false;
	if (x->kind == QUESTION_PACKET)
		packet_answer(q, x, (enum flow_verdict)verdict);
	else if (x->kind == QUESTION_REVIEW)
		review_answer(q, x, (enum flow_verdict)verdict);
	questions_drop_first(q->questions);
	expiry_set(q);
	if (q->conntrack && questions_may_review(q->questions))
		conntrack_resume(q->conntrack);
	review_advance(q);
	return true;
}

static void on_gateway(void *ctx, struct chan *c, struct chan_msg *m)
{
	struct queue *q = ctx;
	struct span tail;
	const void *body = msg_body(m->type, m->payload, &tail);
	bool fine = body && !tail.len && m->serial && !m->fd_count;

	(void)c;
	if (fine && m->type == MSG_GATEWAY_FLOW)
		fine = answer_take(
			q, m->serial,
			((const struct msg_flow_verdict *)body)->verdict);
	else if (fine && m->type == MSG_GATEWAY_REVIEW && !q->review.serial)
		review_begin(q, m->serial);
	else
		fine = false;
	if (fine)
		return;
	accuse_gateway(q);
	gateway_lose(q);
}

static void on_gateway_closed(void *ctx, struct chan *c, int error)
{
	struct queue *q = ctx;

	(void)c;
	log_warn("the gateway is gone: nothing new passes");
	if (error == -EPROTO)
		accuse_gateway(q);
	gateway_lose(q);
}

static const struct chan_ops gateway_ops = { on_gateway, on_gateway_closed };

static bool gateway_take(struct queue *q, const struct msg_peer *peer,
			 struct chan_msg *m)
{
	int r;

	if (m->fd_count != 1 || peer->role != ROLE_GATEWAY)
		return false;
	gateway_lose(q);
	r = chan_new(q->loop, m->fds[0], &gateway_ops, q, &q->gateway);
	m->fds[0] = -1;
	q->told = (struct msg_queue_counters){ 0 };
	drops_repeat(q->drops);
	if (r) {
		q->gateway = NULL;
		log_error("could not use the channel to the gateway: %s",
			  err_text(r));
	}
	return true;
}

static void queue_stop(struct queue *q, int status)
{
	q->status = status;
	loop_stop(q->loop);
}

static void on_supervisor(void *ctx, struct chan *c, struct chan_msg *m)
{
	struct queue *q = ctx;
	struct span tail;
	const void *body = msg_body(m->type, m->payload, &tail);

	(void)c;
	if (body && m->type == MSG_SUPERVISOR_PEER && gateway_take(q, body, m))
		return;
	log_error("the supervisor sent a malformed %s", msg_type_name(m->type));
	queue_stop(q, EXIT_FAILURE);
}

static void on_supervisor_closed(void *ctx, struct chan *c, int error)
{
	struct queue *q = ctx;

	(void)c;
	(void)error;
	q->supervisor = chan_free(q->supervisor);
	queue_stop(q, EXIT_SUCCESS);
}

static const struct chan_ops supervisor_ops = { on_supervisor,
						on_supervisor_closed };

/* --- life --- */

int queue_open(const struct config *config, struct queue **ret)
{
	struct queue *q = must_alloc(sizeof(*q));
	int r;

	r = nfqueue_open(config->queue_number, &q->nfqueue);
	if (r == -EPERM)
		log_error("could not take packet queue %u: another program "
			  "reads it (see queueNumber)",
			  config->queue_number);
	else if (r && r != -EOPNOTSUPP)
		log_error("could not take packet queue %u: %s",
			  config->queue_number, err_text(r));
	if (!r)
		r = conntrack_open(&q->conntrack);
	q->may_live = true; /* of an earlier life */
	if (r == -EOPNOTSUPP) {
		log_warn("this kernel has no packet queues or no connection "
			 "tracking: UDP and ICMP of sandboxes are dropped");
		q->nfqueue = nfqueue_free(q->nfqueue);
		r = 0;
	}
	if (r) {
		queue_free(q);
		return r;
	}
	q->questions = questions_new();
	q->drops = drops_open(config);
	*ret = q;
	return 0;
}

static int queue_start(struct queue *q, int supervisor_fd)
{
	int r = loop_new(&q->loop);

	if (r) {
		(void)fd_close(supervisor_fd);
		return r;
	}
	timer_init(&q->expiry, q->loop, on_expiry);
	timer_init(&q->telling, q->loop, on_telling);
	r = chan_new(q->loop, supervisor_fd, &supervisor_ops, q,
		     &q->supervisor);
	if (!r && q->nfqueue)
		r = nfqueue_start(q->nfqueue, q->loop, &nfqueue_ops, q);
	if (!r && q->conntrack)
		r = conntrack_start(q->conntrack, q->loop, &conntrack_ops, q);
	if (!r)
		r = drops_start(q->drops, q->loop, &drops_ops, q);
	return r;
}

int queue_run(struct queue *q, int supervisor_fd)
{
	const struct msg_none ready = { 0 };
	int r = queue_start(q, supervisor_fd);

	if (r) {
		log_error("could not start: %s", err_text(r));
		return EXIT_FAILURE;
	}
	timer_start(&q->telling, COUNTERS_MS);
	(void)chan_send(q->supervisor, MSG_ROLE_READY, 0, &ready, sizeof(ready),
			SPAN_NONE, NULL, 0);
	loop_run(q->loop);
	return q->status;
}

struct queue *queue_free(struct queue *q)
{
	if (!q)
		return NULL;
	if (q->loop) {
		timer_stop(&q->expiry);
		timer_stop(&q->telling);
	}
	q->gateway = chan_free(q->gateway);
	q->supervisor = chan_free(q->supervisor);
	q->nfqueue = nfqueue_free(q->nfqueue);
	q->conntrack = conntrack_free(q->conntrack);
	q->drops = drops_free(q->drops);
	q->questions = questions_free(q->questions);
	q->loop = loop_free(q->loop);
	free(q);
	return NULL;
}
