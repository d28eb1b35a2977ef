/* SPDX-License-Identifier: Apache-2.0 */
/* change.c - the queue of changes, and what may go wrong with each step */

#include "src/control/change.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/control.h"
#include "src/control/gateway_link.h"
#include "src/control/vault_link.h"
#include "src/httpd/httpd.h"

struct change {
	struct control *control;
	struct list link;
	const struct change_ops *ops;
	void *data;
	struct httpd_request *request;
	struct timer timer; /* how long it may wait for its turn */
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

static void change_fail(struct change *ch, unsigned status, const char *code,
			const char *message)
{
	if (ch->request)
		httpd_reply_error(ch->request, status, code, "%s", message);
	change_free(ch);
}

/* -- in force ------------------------------------------------------------- */

static void on_synced(void *ctx, int status, const char *text, struct span tail)
{
	struct change *ch = ctx;
	const char *why = text;

	(void)tail;
	if (!status) {
		if (ch->request)
			ch->ops->reply(ch->control, ch->data, ch->request);
		change_free(ch);
		return;
	}
	if (status == ENOTCONN || status == EPIPE)
		why = "the gateway is down and gets it when it is back";
	else if (status == ETIMEDOUT)
		why = "the gateway did not confirm it in time";
	log_warn("a change is stored but not known to be in force: %s", why);
	if (ch->request)
		httpd_reply_error(ch->request, 503, "NOT_IN_FORCE",
				  "the change is stored (revision %llu) but "
				  "not yet in force: %s",
				  (unsigned long long)ch->revision, why);
	change_free(ch);
}

static void change_apply(struct change *ch, uint64_t revision)
{
	struct control *c = ch->control;

	ch->revision = revision;
	ch->ops->apply(c, ch->data, revision);
	c->changes.current = NULL;
	if (ch->ops->local)
		on_synced(ch, 0, "", SPAN_NONE);
	else
		gateway_link_sync(c->gateway, on_synced, ch);
	change_queue_run(c);
}

void change_locked(struct change *ch)
{
	change_apply(ch, ch->revision);
}

/* -- stored --------------------------------------------------------------- */

static void on_stored(void *ctx, int status, uint64_t revision,
		      const char *text)
{
	struct change *ch = ctx;
	struct control *c = ch->control;

	if (!status && ch->ops->lock) {
		ch->revision = revision;
		ch->ops->lock(c, ch->data, ch);
		return;
	}
	if (!status) {
		change_apply(ch, revision);
		return;
	}
	c->changes.current = NULL;
	if (status == EPIPE) {
		change_fail(ch, 503, "VAULT_LOST",
			    "the vault went away; it is not known whether the "
			    "change was stored");
	} else if (status == EAGAIN) {
		/* somebody else wrote: what we know is old */
		control_reload_vault(c);
		change_fail(ch, 409, "REVISION_CONFLICT", text);
	} else {
		log_error("the vault refused a change: %s", text);
		change_fail(ch, 500, "VAULT_FAILED", text);
	}
	change_queue_run(c);
}

/* -- the queue ------------------------------------------------------------ */

static void change_begin(struct change *ch)
{
	struct control *c = ch->control;
	struct refusal no = { .status = 400, .code = "INVALID" };

	switch (ch->ops->check(c, ch->data, &no)) {
	case CHANGE_STORE:
		vault_link_commit(c->vault, on_stored, ch);
		return;
	case CHANGE_APPLY:
		change_apply(ch, 0);
		return;
	case CHANGE_REFUSE:
		break;
	}
	c->changes.current = NULL;
	change_fail(ch, no.status, no.code, no.diag.msg);
}

void change_queue_run(struct control *c)
{
	struct change *ch;

	while (c->loaded && !c->changes.current) {
		ch = list_first(&c->changes.waiting, struct change, link);
		if (!ch)
			return;
		list_remove(&ch->link);
		timer_stop(&ch->timer);
		c->changes.count--;
		c->changes.current = ch;
		change_begin(ch);
	}
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
}

void change_queue_fini(struct change_queue *q)
{
	struct change *ch;

	while ((ch = list_first(&q->waiting, struct change, link)))
		change_fail(ch, 503, "STOPPED", "the control role stops");
	must(!q->current); /* the vault's link is gone */
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
