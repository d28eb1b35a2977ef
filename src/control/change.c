/* SPDX-License-Identifier: Apache-2.0 */
/* change.c - the queue of changes, and what may go wrong with each step */

#include "src/control/change.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/control.h"
#include "src/control/gateway_link.h"
#include "src/control/locks.h"
#include "src/control/publish.h"
#include "src/control/vault_link.h"
#include "src/httpd/httpd.h"

enum { CLAIM_BYTES_MAX = 1 + MSG_NAME_SIZE };

struct change {
	struct control *control;
	struct list link; /* waiting, in the group, or to be confirmed */
	const struct change_ops *ops;
	void *data;
	struct httpd_request *request;
	struct timer timer; /* how long it may wait for its turn */
	bool alone;	    /* its group could not be stored */
};

/* Those that one confirmation of the gateway is about. */
struct confirmation {
	struct control *control;
	struct list changes;
	uint64_t revision;
};

static struct change *change_free(struct change *ch)
{
	list_remove(&ch->link);
	timer_stop(&ch->timer);
	ch->ops->free(ch->data);
	free(ch);
	return NULL;
}

/* Who asked is told; with status 0 that it is in force. */
static void change_end(struct change *ch, unsigned status, const char *code,
		       const char *message)
{
	struct refusal why = { .status = status, .code = code };

	if (ch->request && status) {
		httpd_reply_error(ch->request, status, code, "%s", message);
	} else if (ch->request) {
		ch->ops->reply(ch->control, ch->data, ch->request);
	} else if (ch->ops->done) {
		if (status)
			(void)diag_set(&why.diag, 0, 0, "%s", message);
		ch->ops->done(ch->control, ch->data, &why);
	}
	change_free(ch);
}

static void change_fail(struct change *ch, unsigned status, const char *code,
			const char *message)
{
	change_end(ch, status, code, message);
}

static struct change *change_of(struct list *all)
{
	return list_first(all, struct change, link);
}

static void change_move(struct change *ch, struct list *to)
{
	list_remove(&ch->link);
	list_push(to, &ch->link);
}

bool change_claim(struct map *claims, char kind, struct span name)
{
	char bytes[CLAIM_BYTES_MAX] = { kind };

	must(name.len < sizeof(bytes));
	if (name.len)
		memcpy(bytes + 1, name.ptr, name.len);
	return !map_set(claims, span_of(bytes, 1 + name.len), claims);
}

/* -- in force ------------------------------------------------------------- */

static void change_confirm(struct change *ch)
{
	change_end(ch, 0, "", "");
}

static void change_doubt(struct change *ch, uint64_t revision, const char *why)
{
	char text[512];

	(void)snprintf(text, sizeof(text),
		       "the change is stored (revision %llu) but not yet in "
		       "force: %s",
		       (unsigned long long)revision, why);
	change_fail(ch, 503, "NOT_IN_FORCE", text);
}

static void on_synced(void *ctx, int status, const char *text, struct span tail)
{
	struct confirmation *x = ctx;
	const char *why = text;
	struct change *ch;

	(void)tail;
	if (status == ENOTCONN || status == EPIPE)
		why = "the gateway is down and gets it when it is back";
	else if (status == ETIMEDOUT)
		why = "the gateway did not confirm it in time";
	if (status)
		log_warn("a change is stored but not known to be in force: %s",
			 why);
	while ((ch = change_of(&x->changes))) {
		if (status)
			change_doubt(ch, x->revision, why);
		else
			change_confirm(ch);
	}
	free(x);
}

static void group_sync(struct control *c)
{
	struct change_queue *q = &c->changes;
	struct confirmation *x = must_alloc(sizeof(*x));
	struct change *ch;

	x->control = c;
	x->revision = q->revision;
	list_init(&x->changes);
	while ((ch = change_of(&q->group)))
		change_move(ch, &x->changes);
	gateway_link_sync(c->gateway, on_synced, x);
}

static void group_end(struct control *c)
{
	struct change_queue *q = &c->changes;

	map_fini(&q->claims);
	q->group_count = 0;
	q->storing = q->busy = false;
	change_queue_run(c);
}

/* In force already. */
static void group_confirm_local(struct control *c)
{
	struct list local = LIST_INIT(local);
	struct change *ch;

	list_for_each(it, &c->changes.group)
	{
		ch = container_of(it, struct change, link);
		if (ch->ops->local)
			change_move(ch, &local);
	}
	while ((ch = change_of(&local)))
		change_confirm(ch);
}

static void group_apply(struct control *c)
{
	struct change_queue *q = &c->changes;

	list_for_each(it, &q->group)
	{
		struct change *ch = container_of(it, struct change, link);

		ch->ops->apply(c, ch->data, q->revision);
	}
	if (q->publish) {
		publish_policies(c->gateway, &c->policies, &c->sandboxes,
				 false);
		locks_pace(c);
	}
	q->publish = false;
	group_confirm_local(c);
	if (change_of(&q->group))
		group_sync(c);
	group_end(c);
}

void change_publish_policies(struct control *c)
{
	c->changes.publish = true;
}

/* -- locked --------------------------------------------------------------- */

void change_locked(struct change *ch)
{
	struct control *c = ch->control;

	must(c->changes.locking);
	if (!--c->changes.locking)
		group_apply(c);
}

static void group_lock(struct control *c)
{
	struct change_queue *q = &c->changes;

	q->locking = 1; /* this function */
	list_for_each(it, &q->group)
	{
		struct change *ch = container_of(it, struct change, link);

		if (!ch->ops->lock)
			continue;
		q->locking++;
		ch->ops->lock(c, ch->data, ch);
	}
	change_locked(change_of(&q->group));
}

/* -- stored --------------------------------------------------------------- */

/* To the front of those that wait, in their order, each for itself. */
static void group_separate(struct control *c)
{
	struct change_queue *q = &c->changes;
	struct list others = LIST_INIT(others);
	struct change *ch;

	while ((ch = change_of(&q->waiting)))
		change_move(ch, &others);
	while ((ch = change_of(&q->group))) {
		change_move(ch, &q->waiting);
		ch->alone = true;
		timer_start(&ch->timer, CHANGE_WAIT_MS);
		q->count++;
	}
	while ((ch = change_of(&others)))
		change_move(ch, &q->waiting);
}

static void group_fail(struct control *c, int status, const char *text)
{
	struct change_queue *q = &c->changes;
	struct change *ch;

	if (status == EAGAIN)
		control_reload_vault(c); /* somebody else wrote: what we know
					    is old */
	if (status != EPIPE && status != EAGAIN)
		log_error("the vault refused a change: %s", text);
	while ((ch = change_of(&q->group))) {
		if (status == EPIPE)
			change_fail(ch, 503, "VAULT_LOST",
				    "the vault went away; it is not known "
				    "whether the change was stored");
		else if (status == EAGAIN)
			change_fail(ch, 409, "REVISION_CONFLICT", text);
		else
			change_fail(ch, 500, "VAULT_FAILED", text);
	}
}

static void on_stored(void *ctx, int status, uint64_t revision,
		      const char *text)
{
	struct control *c = ctx;

	c->changes.revision = revision;
	if (!status) {
		group_lock(c);
		return;
	}
	if (status != EPIPE && c->changes.group_count > 1)
		group_separate(c);
	else
		group_fail(c, status, text);
	group_end(c);
}

void change_store_begin(struct control *c)
{
	if (!c->changes.storing)
		vault_link_begin(c->vault, VAULT_SCOPE_CONTROL, -1);
	c->changes.storing = true;
}

/* -- the queue ------------------------------------------------------------ */

static bool goes_alone(const struct change *ch)
{
	return ch->alone || !ch->ops->claim;
}

/* May ch go with those that are in the group? */
static bool change_joins(struct change *ch)
{
	struct change_queue *q = &ch->control->changes;
	bool free_of_others = goes_alone(ch) ||
			      ch->ops->claim(ch->control, ch->data, &q->claims);

	if (!q->group_count)
		return true;
	return free_of_others && !goes_alone(ch) &&
	       !goes_alone(change_of(&q->group)) &&
	       q->group_count < CHANGES_TOGETHER_MAX &&
	       vault_link_put_bytes(ch->control->vault) <
		       CHANGES_TOGETHER_BYTES;
}

/* Into the group, or refused. */
static void change_begin(struct change *ch)
{
	struct control *c = ch->control;
	struct change_queue *q = &c->changes;
	struct refusal no = { .status = 400, .code = "INVALID" };

	timer_stop(&ch->timer);
	q->count--;
	switch (ch->ops->check(c, ch->data, &no)) {
	case CHANGE_APPLY:
		must(!q->group_count && !ch->ops->claim);
		q->storing = false;
		change_move(ch, &q->group);
		q->group_count++;
		return;
	case CHANGE_STORE:
		change_move(ch, &q->group);
		q->storing = true;
		q->group_count++;
		return;
	case CHANGE_REFUSE:
		break;
	}
	change_fail(ch, no.status, no.code, no.diag.msg);
}

static void group_begin(struct control *c)
{
	struct change_queue *q = &c->changes;
	struct change *ch;

	q->busy = true;
	while ((ch = change_of(&q->waiting)) && change_joins(ch))
		change_begin(ch);
	if (!q->group_count) {
		map_fini(&q->claims); /* all were refused */
		q->busy = false;
	} else if (q->storing) {
		vault_link_commit(c->vault, on_stored, c);
	} else {
		q->revision = 0;
		group_apply(c);
	}
}

void change_queue_run(struct control *c)
{
	while (c->loaded && !c->changes.busy && change_of(&c->changes.waiting))
		group_begin(c);
}

static void on_waited(struct timer *t)
{
	struct change *ch = container_of(t, struct change, timer);
	struct control *c = ch->control;

	list_remove(&ch->link);
	c->changes.count--;
	change_fail(ch, 503, "NOT_READY",
		    c->loaded ? "too many changes are waiting; nothing was "
				"changed"
			      : "the vault is not there; nothing was changed");
}

void change_queue_init(struct change_queue *q)
{
	*q = (struct change_queue){ 0 };
	list_init(&q->waiting);
	list_init(&q->group);
	map_init(&q->claims);
}

void change_queue_fini(struct change_queue *q)
{
	struct change *ch;

	while ((ch = change_of(&q->waiting)))
		change_fail(ch, 503, "STOPPED", "the control role stops");
	must(!q->busy); /* the vault's link is gone */
}

void change_submit(struct control *c, const struct change_ops *ops, void *data,
		   struct httpd_request *r)
{
	struct change *ch = must_alloc(sizeof(*ch));

	ch->control = c;
	ch->ops = ops;
	ch->data = data;
	ch->request = r;
	list_init(&ch->link);
	timer_init(&ch->timer, c->loop, on_waited);
	if (c->changes.count >= CHANGES_WAITING_MAX) {
		change_fail(ch, 503, "BUSY", "too many changes are waiting");
		return;
	}
	list_push(&c->changes.waiting, &ch->link);
	c->changes.count++;
	timer_start(&ch->timer, CHANGE_WAIT_MS);
	change_queue_run(c);
}
