/* SPDX-License-Identifier: Apache-2.0 */
/* locks.c - questions to the supervisor, and restoring all locks after a start
 *
 * How it works: a question is a message with a serial; the reply, or a timer,
 * ends it. Restoring walks the registry with a bounded number of questions on
 * the way, and says the end when the last was answered. Nothing changes the
 * registry meanwhile, because changes begin when restoring has ended; when the
 * vault is read again, restoring begins again, and answers to the one before
 * are told by its number.
 */

#include "src/control/locks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/control.h"
#include "src/control/policies.h"
#include "src/control/sandboxes.h"
#include "src/io/chan.h"
#include "src/role/config.h"
#include "src/role/msg.h"

struct question {
	struct list link;
	struct timer timer;
	uint32_t serial;
	int failed;   /* what the timer reports */
	locks_fn *fn; /* NULL: nobody waits */
	void *ctx;
};

static void question_end(struct question *q, const struct msg_locked *reply)
{
	locks_fn *fn = q->fn;
	void *ctx = q->ctx;

	list_remove(&q->link);
	timer_stop(&q->timer);
	free(q);
	if (fn)
		fn(ctx, reply);
}

static void question_fail(struct question *q, int status)
{
	struct msg_locked reply = { .status = status };

	(void)snprintf(reply.text, sizeof(reply.text),
		       "the supervisor did not answer: %s", err_text(status));
	question_end(q, &reply);
}

static void on_question_timer(struct timer *t)
{
	struct question *q = container_of(t, struct question, timer);

	question_fail(q, q->failed);
}

static void ask(struct control *c, uint16_t type, const void *body,
		locks_fn *fn, void *ctx)
{
	struct question *q = must_alloc(sizeof(*q));
	int r = -ENOTCONN;

	q->fn = fn;
	q->ctx = ctx;
	list_init(&q->link);
	list_push(&c->locks.questions, &q->link);
	timer_init(&q->timer, c->loop, on_question_timer);
	if (c->supervisor) {
		q->serial = chan_serial(c->supervisor);
		r = chan_send(c->supervisor, type, q->serial, body,
			      msg_body_size(type), SPAN_NONE, NULL, 0);
	}
	q->failed = r ? ENOTCONN : ETIMEDOUT;
	timer_start(&q->timer, r ? 0 : LOCK_ANSWER_MS);
}

void locks_on_reply(struct control *c, uint32_t serial,
		    const struct msg_locked *reply)
{
	struct question *q;

	list_for_each(it, &c->locks.questions)
	{
		q = container_of(it, struct question, link);
		if (q->serial != serial)
			continue;
		question_end(q, reply);
		return;
	}
}

/* Bytes per second that policy, else the configuration, lets it have. */
static uint64_t pace_of(const struct control *c, const struct sandbox *s)
{
	const struct policy_entry *e = policies_select(&c->policies, s);

	if (e && e->model->limits.of[LIMIT_BYTES] != LIMIT_UNSAID)
		return e->model->limits.of[LIMIT_BYTES];
	return c->config->bytes_per_s;
}

/* Docker says the port of a sandbox that it starts when it has started it. */
static bool awaits_port(const struct control *c, const struct sandbox *s)
{
	return c->config->lifecycle_listen.port && !s->port[0] &&
	       !strcmp(s->iface, CONFIG_BRIDGE);
}

void locks_put(struct control *c, struct sandbox *s, locks_fn *fn, void *ctx)
{
	struct msg_lock body = { .addr_count = s->addr_count,
				 .has_mac = s->has_mac };
	unsigned i;

	body.bytes_per_s = s->bytes_per_s = pace_of(c, s);
	body.awaits_port = s->awaits_port = awaits_port(c, s);
	must(span_copy(s->id, body.id, sizeof(body.id)));
	memcpy(body.iface, s->iface, sizeof(body.iface));
	memcpy(body.port, s->port, sizeof(body.port));
	memcpy(body.mac, s->mac, sizeof(body.mac));
	for (i = 0; i < s->addr_count; i++)
		memcpy(body.addrs[i], s->addrs[i].ip, sizeof(body.addrs[i]));
	ask(c, s->iface[0] ? MSG_CONTROL_LOCK : MSG_CONTROL_UNLOCK, &body, fn,
	    ctx);
}

void locks_pace(struct control *c)
{
	struct sandbox *s;
	size_t cursor = 0;

	while ((s = map_next(&c->sandboxes.by_id, &cursor, NULL)))
		if (s->iface[0] && s->bytes_per_s != pace_of(c, s))
			locks_put(c, s, NULL, NULL);
}

void locks_drop(struct control *c, struct span id)
{
	struct msg_lock body = { 0 };

	must(span_copy(id, body.id, sizeof(body.id)));
	ask(c, MSG_CONTROL_UNLOCK, &body, NULL, NULL);
}

/* -- all of them ---------------------------------------------------------- */

static void restore_on(struct control *c);

static void restore_stop(struct locks *l)
{
	free(l->restoring);
	l->restoring = NULL;
	l->restore_at = l->restore_count = l->restore_open = 0;
	l->round++;
}

/* One reply to a restoring that may have been given up since. */
struct restored {
	struct control *control;
	uint64_t round; /* locks.round then */
	struct sandbox *sandbox;
};

static void on_restored(void *ctx, const struct msg_locked *reply)
{
	struct restored *r = ctx;
	struct locks *l = &r->control->locks;

	if (l->round == r->round) {
		sandbox_set_lock(r->sandbox, reply);
		if (reply->status)
			log_error("sandbox %s stays cut off: %s",
				  r->sandbox->id.ptr, reply->text);
		l->restore_open--;
		restore_on(r->control);
	}
	free(r);
}

static void on_all_restored(void *ctx, const struct msg_locked *reply)
{
	struct restored *r = ctx;
	struct control *c = r->control;
	bool current = c->locks.round == r->round;

	free(r);
	if (!current)
		return;
	restore_stop(&c->locks);
	if (reply->status)
		log_error("the locks of sandboxes are not in force: %s",
			  reply->text);
	control_locked(c);
}

static struct restored *restored_new(struct control *c, struct sandbox *s)
{
	struct restored *r = must_alloc(sizeof(*r));

	*r = (struct restored){ c, c->locks.round, s };
	return r;
}

static void restore_on(struct control *c)
{
	const struct msg_none end = { 0 };
	struct locks *l = &c->locks;
	struct sandbox *s;

	while (l->restore_at < l->restore_count &&
	       l->restore_open < LOCKS_AT_ONCE) {
		s = l->restoring[l->restore_at++];
		if (!s->iface[0])
			continue;
		l->restore_open++;
		locks_put(c, s, on_restored, restored_new(c, s));
	}
	if (l->restore_open || l->restore_at < l->restore_count)
		return;
	l->restore_open++; /* the end itself, asked once */
	ask(c, MSG_CONTROL_LOCKS_END, &end, on_all_restored,
	    restored_new(c, NULL));
}

void locks_restore(struct control *c)
{
	struct locks *l = &c->locks;

	restore_stop(l);
	l->restoring = sandboxes_sorted(&c->sandboxes, &l->restore_count);
	restore_on(c);
}

void locks_init(struct locks *l)
{
	*l = (struct locks){ 0 };
	list_init(&l->questions);
}

void locks_fini(struct control *c)
{
	struct question *q;

	restore_stop(&c->locks);
	while ((q = list_first(&c->locks.questions, struct question, link)))
		question_fail(q, ENOTCONN);
}
