/* SPDX-License-Identifier: Apache-2.0 */
/* gateway_link.c - the channel to the gateway, and who waits for its answers */

#include "src/control/gateway_link.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/err.h"
#include "src/base/list.h"
#include "src/base/log.h"
#include "src/io/chan.h"
#include "src/io/loop.h"

struct question {
	struct list link;
	struct timer timer; /* the limit; or, at once, why it failed */
	uint32_t serial;
	uint16_t reply_type;
	int failed; /* what the timer reports */
	gateway_result_fn *fn;
	void *ctx;
};

struct gateway_link {
	struct loop *loop;
	const struct gateway_link_ops *ops;
	void *ctx;
	struct chan *chan; /* NULL: down */
	struct list questions;
};

static void question_end(struct question *q, int status, const char *text,
			 struct span tail)
{
	list_remove(&q->link);
	timer_stop(&q->timer);
	q->fn(q->ctx, status, text, tail);
	free(q);
}

static void on_question_timer(struct timer *t)
{
	struct question *q = container_of(t, struct question, timer);

	question_end(q, q->failed, err_text(q->failed), SPAN_NONE);
}

/* Questions that are open end with EPIPE, from the loop. */
static void gateway_link_lost(struct gateway_link *g)
{
	struct question *q;

	g->chan = chan_free(g->chan);
	list_for_each(it, &g->questions)
	{
		q = container_of(it, struct question, link);
		q->failed = q->failed == ENOTCONN ? ENOTCONN : EPIPE;
		q->serial = 0;
		timer_start(&q->timer, 0);
	}
	g->ops->down(g->ctx);
}

static struct question *question_find(struct gateway_link *g,
				      const struct chan_msg *m)
{
	struct question *q;

	list_for_each(it, &g->questions)
	{
		q = container_of(it, struct question, link);
		if (q->serial && q->serial == m->serial &&
		    q->reply_type == m->type)
			return q;
	}
	return NULL;
}

/* False: it is not one of these, or malformed. */
static bool news_take(struct gateway_link *g, struct chan_msg *m)
{
	struct span tail;
	const void *body = msg_body(m->type, m->payload, &tail);
	int fd;

	if (!body)
		return false;
	if (m->type == MSG_GATEWAY_ACCESSED) {
		const struct msg_scope *scope = body;

		g->ops->accessed(g->ctx, scope->scope);
		return true;
	}
	if (m->type == MSG_GATEWAY_DENIED) {
		g->ops->denied(g->ctx, body);
		return true;
	}
	if (m->type != MSG_GATEWAY_EGRESS_CLIENT || m->fd_count != 1)
		return false;
	fd = m->fds[0];
	m->fds[0] = -1; /* theirs now */
	g->ops->egress_client(g->ctx, body, fd);
	return true;
}

static void on_message(void *ctx, struct chan *c, struct chan_msg *m)
{
	struct gateway_link *g = ctx;
	struct span tail = SPAN_NONE;
	const struct msg_result *result;
	struct question *q;

	(void)c;
	if (m->type == MSG_GATEWAY_SYNCED || m->type == MSG_GATEWAY_STATUS ||
	    m->type == MSG_GATEWAY_USAGE) {
		result = msg_body(m->type, m->payload, &tail);
		q = question_find(g, m);
		if (result && q)
			question_end(q, result->status, result->text, tail);
		if (result)
			return; /* one that came too late is no crime */
	}
	if (news_take(g, m))
		return;
	log_error("the gateway sent an unexpected message of type %u", m->type);
	g->ops->accuse(g->ctx);
	gateway_link_lost(g);
}

static void on_closed(void *ctx, struct chan *c, int error)
{
	struct gateway_link *g = ctx;

	(void)c;
	log_warn("lost the gateway: %s", error ? err_text(error) : "it ended");
	if (error == -EPROTO)
		g->ops->accuse(g->ctx);
	gateway_link_lost(g);
}

int gateway_link_new(struct loop *loop, const struct gateway_link_ops *ops,
		     void *ctx, struct gateway_link **ret)
{
	struct gateway_link *g = must_alloc(sizeof(*g));

	g->loop = loop;
	g->ops = ops;
	g->ctx = ctx;
	list_init(&g->questions);
	*ret = g;
	return 0;
}

struct gateway_link *gateway_link_free(struct gateway_link *g)
{
	struct question *q;

	if (!g)
		return NULL;
	g->chan = chan_free(g->chan);
	while ((q = list_first(&g->questions, struct question, link)))
		question_end(q, EPIPE, err_text(EPIPE), SPAN_NONE);
	free(g);
	return NULL;
}

void gateway_link_connect(struct gateway_link *g, int fd)
{
	static const struct chan_ops chan_ops = { on_message, on_closed };
	int r;

	if (g->chan)
		gateway_link_lost(g);
	r = chan_new(g->loop, fd, &chan_ops, g, &g->chan);
	if (r) {
		log_error("could not use the gateway's channel: %s",
			  err_text(r));
		g->chan = NULL;
		return;
	}
	g->ops->up(g->ctx);
}

bool gateway_link_is_up(const struct gateway_link *g)
{
	return g->chan != NULL;
}

void gateway_link_send(struct gateway_link *g, uint16_t type, const void *body,
		       int memfd)
{
	int r;

	if (!g->chan)
		return;
	r = chan_send(g->chan, type, 0, body, msg_body_size(type), SPAN_NONE,
		      &memfd, memfd >= 0);
	if (!r)
		return;
	log_error("the gateway takes no messages: %s", err_text(r));
	gateway_link_lost(g);
}

/* What is asked, and how long one waits for the answer. */
struct ask {
	uint16_t type, reply_type;
	uint64_t limit_ms;
	const void *body; /* of the type */
};

static void gateway_link_ask(struct gateway_link *g, const struct ask *a,
			     gateway_result_fn *fn, void *ctx)
{
	struct question *q = must_alloc(sizeof(*q));
	uint64_t limit_ms = a->limit_ms;
	int r = -ENOTCONN;

	q->reply_type = a->reply_type;
	q->fn = fn;
	q->ctx = ctx;
	q->failed = ETIMEDOUT;
	list_init(&q->link);
	list_push(&g->questions, &q->link);
	timer_init(&q->timer, g->loop, on_question_timer);
	if (g->chan) {
		q->serial = chan_serial(g->chan);
		r = chan_send(g->chan, a->type, q->serial, a->body,
			      msg_body_size(a->type), SPAN_NONE, NULL, 0);
	}
	if (r) {
		q->failed = ENOTCONN;
		limit_ms = 0;
	}
	timer_start(&q->timer, limit_ms);
}

void gateway_link_sync(struct gateway_link *g, gateway_result_fn *fn, void *ctx)
{
	const struct msg_none body = { 0 };
	const struct ask a = {
		.type = MSG_CONTROL_SYNC,
		.reply_type = MSG_GATEWAY_SYNCED,
		.limit_ms = GATEWAY_SYNC_MS,
		.body = &body,
	};

	gateway_link_ask(g, &a, fn, ctx);
}

void gateway_link_status(struct gateway_link *g, gateway_result_fn *fn,
			 void *ctx)
{
	const struct msg_none body = { 0 };
	const struct ask a = {
		.type = MSG_CONTROL_STATUS,
		.reply_type = MSG_GATEWAY_STATUS,
		.limit_ms = GATEWAY_STATUS_MS,
		.body = &body,
	};

	gateway_link_ask(g, &a, fn, ctx);
}

void gateway_link_usage(struct gateway_link *g, struct span sandbox,
			gateway_result_fn *fn, void *ctx)
{
	struct msg_scope body = { .size = 0 };
	const struct ask a = {
		.type = MSG_CONTROL_USAGE,
		.reply_type = MSG_GATEWAY_USAGE,
		.limit_ms = GATEWAY_STATUS_MS,
		.body = &body,
	};

	must(span_copy(sandbox, body.scope, sizeof(body.scope)));
	gateway_link_ask(g, &a, fn, ctx);
}
