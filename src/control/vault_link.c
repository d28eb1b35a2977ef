/* SPDX-License-Identifier: Apache-2.0 */
/* vault_link.c - requests to the vault role, and who waits for the answers */

#include "src/control/vault_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/list.h"
#include "src/base/log.h"
#include "src/io/chan.h"
#include "src/io/loop.h"

/* One open request. The callback that is set tells which kind it is. */
struct wait {
	struct list link;
	struct timer timer; /* runs when it could not be sent */
	int failed;
	uint32_t serial;
	uint16_t reply_type;
	void *ctx;
	vault_result_fn *result;
	vault_ca_fn *ca;
	vault_record_fn *record;
	vault_done_fn *done;
	struct msg_read read; /* with .record: what was asked last */
};

struct vault_link {
	struct loop *loop;
	const struct vault_link_ops *ops;
	void *ctx;
	struct chan *chan; /* NULL: down */
	struct list waits;
	char scope[MSG_NAME_SIZE]; /* of the open transaction */
	int tx_error;		   /* first failure in it */
	size_t tx_bytes;	   /* of values put in it */
};

/* -- waiting -------------------------------------------------------------- */

static void wait_fail(struct wait *w, int status)
{
	list_remove(&w->link);
	timer_stop(&w->timer);
	if (w->result)
		w->result(w->ctx, status, 0, err_text(status));
	if (w->ca)
		w->ca(w->ctx, status, SPAN_NONE);
	if (w->done)
		w->done(w->ctx, status);
	free(w);
}

static void vault_link_fail_all(struct vault_link *v)
{
	struct list open = LIST_INIT(open);
	struct wait *w;

	/* callbacks may ask again, which ends up in v->waits */
	while ((w = list_first(&v->waits, struct wait, link))) {
		list_remove(&w->link);
		list_push(&open, &w->link);
	}
	while ((w = list_first(&open, struct wait, link)))
		wait_fail(w, EPIPE);
}

/* A request that could not be sent is answered from the loop, as any other. */
static void on_wait_timer(struct timer *t)
{
	struct wait *w = container_of(t, struct wait, timer);

	wait_fail(w, w->failed);
}

static struct wait *wait_new(struct vault_link *v, uint16_t reply_type,
			     void *ctx)
{
	struct wait *w = must_alloc(sizeof(*w));

	list_init(&w->link);
	list_push(&v->waits, &w->link);
	timer_init(&w->timer, v->loop, on_wait_timer);
	w->reply_type = reply_type;
	w->ctx = ctx;
	return w;
}

static void wait_fail_late(struct wait *w, int status)
{
	w->failed = status;
	timer_start(&w->timer, 0);
}

static int vault_link_send(struct vault_link *v, uint16_t type, uint32_t serial,
			   const void *body, struct span tail)
{
	if (!v->chan)
		return -EPIPE;
	if (tail.len > MSG_TAIL_MAX)
		return -E2BIG;
	return chan_send(v->chan, type, serial, body, msg_body_size(type), tail,
			 NULL, 0);
}

static void wait_send(struct vault_link *v, struct wait *w, uint16_t type,
		      const void *body)
{
	int r;

	w->serial = v->chan ? chan_serial(v->chan) : 0;
	r = vault_link_send(v, type, w->serial, body, SPAN_NONE);
	if (r)
		wait_fail_late(w, -r);
}

/* -- answers -------------------------------------------------------------- */

static void answer_record(struct vault_link *v, struct wait *w,
			  const struct msg_record *record, struct span tail)
{
	if (record->found) {
		/* the next one, before the owner sees this one */
		memcpy(w->read.name, record->name, sizeof(w->read.name));
		wait_send(v, w, MSG_CONTROL_READ, &w->read);
		w->record(w->ctx, record, tail);
		return;
	}
	list_remove(&w->link);
	w->done(w->ctx, 0);
	free(w);
}

static void answer(struct vault_link *v, struct wait *w, const void *body,
		   struct span tail)
{
	const struct msg_result *result = body;

	if (w->record) {
		answer_record(v, w, body, tail);
		return;
	}
	list_remove(&w->link);
	if (w->result)
		w->result(w->ctx, result->status, result->revision,
			  result->text);
	if (w->ca)
		w->ca(w->ctx, result->status,
		      result->status ? SPAN_NONE : tail);
	free(w);
}

static struct wait *wait_find(struct vault_link *v, const struct chan_msg *m)
{
	struct wait *w;

	list_for_each(it, &v->waits)
	{
		w = container_of(it, struct wait, link);
		if (w->serial == m->serial && w->reply_type == m->type)
			return w;
	}
	return NULL;
}

static void vault_link_lost(struct vault_link *v)
{
	v->chan = chan_free(v->chan);
	v->ops->down(v->ctx);
	vault_link_fail_all(v);
}

static void on_message(void *ctx, struct chan *c, struct chan_msg *m)
{
	struct vault_link *v = ctx;
	struct span tail = SPAN_NONE;
	const void *body = msg_body(m->type, m->payload, &tail);
	struct wait *w = body ? wait_find(v, m) : NULL;

	(void)c;
	if (w) {
		answer(v, w, body, tail);
		return; /* v may be down by now */
	}
	log_error("the vault sent an unexpected message of type %u", m->type);
	v->ops->accuse(v->ctx);
	vault_link_lost(v);
}

static void on_closed(void *ctx, struct chan *c, int error)
{
	struct vault_link *v = ctx;

	(void)c;
	log_warn("lost the vault: %s", error ? err_text(error) : "it ended");
	if (error == -EPROTO)
		v->ops->accuse(v->ctx);
	vault_link_lost(v);
}

/* -- the link ------------------------------------------------------------- */

int vault_link_new(struct loop *loop, const struct vault_link_ops *ops,
		   void *ctx, struct vault_link **ret)
{
	struct vault_link *v = must_alloc(sizeof(*v));

	v->loop = loop;
	v->ops = ops;
	v->ctx = ctx;
	list_init(&v->waits);
	*ret = v;
	return 0;
}

struct vault_link *vault_link_free(struct vault_link *v)
{
	if (!v)
		return NULL;
	v->chan = chan_free(v->chan);
	while (!list_is_empty(&v->waits))
		vault_link_fail_all(v);
	free(v);
	return NULL;
}

void vault_link_connect(struct vault_link *v, int fd)
{
	static const struct chan_ops chan_ops = { on_message, on_closed };
	int r;

	if (v->chan)
		vault_link_lost(v);
	r = chan_new(v->loop, fd, &chan_ops, v, &v->chan);
	if (r) {
		log_error("could not use the vault's channel: %s", err_text(r));
		v->chan = NULL;
		return;
	}
	v->ops->up(v->ctx);
}

bool vault_link_is_up(const struct vault_link *v)
{
	return v->chan != NULL;
}

/* -- transactions --------------------------------------------------------- */

void vault_link_begin(struct vault_link *v, const char *scope, int64_t expected)
{
	struct msg_begin body = { .expected_revision = expected };

	must(span_copy(span_str(scope), body.scope, sizeof(body.scope)));
	memcpy(v->scope, body.scope, sizeof(v->scope));
	v->tx_bytes = 0;
	v->tx_error =
		vault_link_send(v, MSG_CONTROL_BEGIN, 0, &body, SPAN_NONE);
}

static void vault_link_op(struct vault_link *v, uint16_t type,
			  enum record_kind kind, struct span name,
			  struct span value)
{
	struct msg_record body = { .kind = kind };

	v->tx_bytes += value.len;
	if (v->tx_error)
		return;
	memcpy(body.scope, v->scope, sizeof(body.scope));
	if (!span_copy(name, body.name, sizeof(body.name)))
		v->tx_error = -ENAMETOOLONG;
	else
		v->tx_error = vault_link_send(v, type, 0, &body, value);
}

void vault_link_put(struct vault_link *v, enum record_kind kind,
		    struct span name, struct span value)
{
	vault_link_op(v, MSG_CONTROL_PUT, kind, name, value);
}

void vault_link_remove(struct vault_link *v, enum record_kind kind,
		       struct span name)
{
	vault_link_op(v, MSG_CONTROL_REMOVE, kind, name, SPAN_NONE);
}

size_t vault_link_put_bytes(const struct vault_link *v)
{
	return v->tx_bytes;
}

void vault_link_commit(struct vault_link *v, vault_result_fn *fn, void *ctx)
{
	const struct msg_none body = { 0 };
	struct wait *w = wait_new(v, MSG_VAULT_RESULT, ctx);

	w->result = fn;
	if (v->tx_error)
		wait_fail_late(w, -v->tx_error);
	else
		wait_send(v, w, MSG_CONTROL_COMMIT, &body);
}

/* -- questions ------------------------------------------------------------ */

void vault_link_read(struct vault_link *v, enum record_kind kind,
		     const char *scope, vault_record_fn *record,
		     vault_done_fn *done, void *ctx)
{
	struct wait *w = wait_new(v, MSG_VAULT_RECORD, ctx);

	w->record = record;
	w->done = done;
	w->read.kind = kind;
	must(span_copy(span_str(scope), w->read.scope, sizeof(w->read.scope)));
	wait_send(v, w, MSG_CONTROL_READ, &w->read);
}

void vault_link_revision(struct vault_link *v, const char *scope,
			 vault_result_fn *fn, void *ctx)
{
	struct msg_record body = { .kind = RECORD_CREDENTIAL };
	struct wait *w = wait_new(v, MSG_VAULT_RESULT, ctx);

	w->result = fn;
	must(span_copy(span_str(scope), body.scope, sizeof(body.scope)));
	wait_send(v, w, MSG_CONTROL_REVISION, &body);
}

void vault_link_maintain(struct vault_link *v, enum maintain_verb verb,
			 vault_result_fn *fn, void *ctx)
{
	const struct msg_maintain body = { .verb = verb };
	struct wait *w = wait_new(v, MSG_VAULT_RESULT, ctx);

	w->result = fn;
	wait_send(v, w, MSG_CONTROL_MAINTAIN, &body);
}

void vault_link_ca(struct vault_link *v, vault_ca_fn *fn, void *ctx)
{
	const struct msg_none body = { 0 };
	struct wait *w = wait_new(v, MSG_VAULT_CA, ctx);

	w->ca = fn;
	wait_send(v, w, MSG_ROLE_GET_CA, &body);
}
