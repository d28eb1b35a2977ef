/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - changes of the records of sandboxes
 *
 * How it works: a record is in force when it is stored, so a gateway that is
 * down fails none of them. But who is told that it is done may ask the gateway
 * at once, which must not answer by the former state: so the word waits until
 * every loop of a gateway that is there has it.
 */

#include "src/control/lifecycle/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/control/api.h"
#include "src/control/control.h"
#include "src/control/gateway_link.h"
#include "src/control/lifecycle/inside.h"
#include "src/control/lifecycle/lifecycle.h"
#include "src/control/lifecycle/runtime.h"
#include "src/control/vault_link.h"
#include "src/text/json.h"

struct wish {
	struct lifecycle *lifecycle;
	char id[BOX_ID_SIZE];
	struct box *next; /* as it will be; NULL: removed, or not made yet */
	record_edit_fn *edit;
	void *data;
	changed_fn *fn;
	void *ctx;
};

static int box_store(struct control *c, const struct box *b)
{
	struct buf text = BUF_INIT(MSG_TAIL_MAX);
	struct json_out o;
	int r;

	json_start(&o, &text);
	box_emit_stored(&o, b);
	r = json_done(&o);
	if (!r) {
		change_store_begin(c);
		vault_link_put(c->vault, RECORD_BOX, span_str(b->id),
			       buf_peek(&text));
	}
	buf_wipe(&text);
	return r;
}

static int box_copy(const struct box *b, struct box **ret)
{
	struct buf text = BUF_INIT(MSG_TAIL_MAX);
	struct diag d = { 0 };
	struct json_out o;
	int r;

	json_start(&o, &text);
	box_emit_stored(&o, b);
	r = json_done(&o);
	if (!r)
		r = box_parse(buf_peek(&text), ret, &d);
	buf_wipe(&text);
	return r;
}

/* Two changes of one record do not meet; those of others may go together. */
static bool wish_claim(struct control *c, const void *data, struct map *claims)
{
	const struct wish *w = data;

	(void)c;
	return change_claim(claims, 'b', span_str(w->id));
}

/* -- steps of the change -------------------------------------------------- */

static enum change_step put_check(struct control *c, void *data,
				  struct refusal *no)
{
	struct wish *w = data;

	if (box_store(c, w->next))
		return api_refuse(no, 400, "INVALID",
				  "the sandbox's record is too large");
	return CHANGE_STORE;
}

static enum change_step edit_check(struct control *c, void *data,
				   struct refusal *no)
{
	struct wish *w = data;
	const struct box *now =
		boxes_find(&w->lifecycle->boxes, span_str(w->id));

	w->next = box_free(w->next);
	if (!now)
		return api_refuse(no, 404, "NOT_FOUND",
				  "there is no such sandbox");
	if (box_copy(now, &w->next))
		return api_refuse(no, 500, "FAILED",
				  "the sandbox's record could not be copied");
	if (!w->edit(w->data, w->next))
		return api_refuse(no, 409, "NOT_CHANGED",
				  "the sandbox is in another state by now");
	return put_check(c, data, no);
}

/* Of the state alone: a renewal says nothing about the container. */
static void box_count(struct lifecycle *l, struct box *next)
{
	const struct box *now = boxes_find(&l->boxes, span_str(next->id));

	next->change =
		now && now->state == next->state ? now->change : ++l->changes;
}

static void put_apply(struct control *c, void *data, uint64_t revision)
{
	struct wish *w = data;

	(void)c;
	(void)revision;
	box_count(w->lifecycle, w->next);
	inside_publish(w->lifecycle, w->next);
	boxes_put(&w->lifecycle->boxes, take_ptr(w->next));
	runtime_look(w->lifecycle);
}

static enum change_step remove_check(struct control *c, void *data,
				     struct refusal *no)
{
	struct wish *w = data;

	if (!boxes_find(&w->lifecycle->boxes, span_str(w->id)))
		return api_refuse(no, 404, "NOT_FOUND",
				  "there is no such sandbox");
	change_store_begin(c);
	vault_link_remove(c->vault, RECORD_BOX, span_str(w->id));
	return CHANGE_STORE;
}

static void remove_apply(struct control *c, void *data, uint64_t revision)
{
	struct wish *w = data;

	(void)c;
	(void)revision;
	inside_drop(w->lifecycle, span_str(w->id));
	boxes_remove(&w->lifecycle->boxes, span_str(w->id));
}

/* What waits for the gateway after its wish is kept. */
struct told {
	changed_fn *fn;
	void *ctx;
};

static void on_told(void *ctx, int status, const char *text, struct span tail)
{
	const struct refusal fine = { 0 };
	struct told *t = ctx;

	(void)status; /* one that is down learns it when it is back */
	(void)text;
	(void)tail;
	t->fn(t->ctx, &fine);
	free(t);
}

static void wish_done(struct control *c, void *data, const struct refusal *why)
{
	struct wish *w = data;
	struct told *t;

	if (!w->fn)
		return;
	if (why->status) {
		w->fn(w->ctx, why);
		return;
	}
	t = must_alloc(sizeof(*t));
	t->fn = w->fn;
	t->ctx = w->ctx;
	gateway_link_sync(c->gateway, on_told, t);
}

static void wish_free(void *data)
{
	struct wish *w = data;

	box_free(w->next);
	free(w->data);
	free(w);
}

static const struct change_ops add_ops = {
	.claim = wish_claim,
	.check = put_check,
	.apply = put_apply,
	.done = wish_done,
	.free = wish_free,
	.local = true,
};

static const struct change_ops edit_ops = {
	.claim = wish_claim,
	.check = edit_check,
	.apply = put_apply,
	.done = wish_done,
	.free = wish_free,
	.local = true,
};

static const struct change_ops remove_ops = {
	.claim = wish_claim,
	.check = remove_check,
	.apply = remove_apply,
	.done = wish_done,
	.free = wish_free,
	.local = true,
};

/* -- asking for one ------------------------------------------------------- */

static struct wish *wish_new(struct lifecycle *l, struct span id,
			     changed_fn *fn, void *ctx)
{
	struct wish *w = must_alloc(sizeof(*w));

	w->lifecycle = l;
	(void)span_copy(id, w->id, sizeof(w->id));
	w->fn = fn;
	w->ctx = ctx;
	return w;
}

void record_add(struct lifecycle *l, struct box *b, changed_fn *fn, void *ctx)
{
	struct wish *w = wish_new(l, span_str(b->id), fn, ctx);

	w->next = b;
	change_submit(l->control, &add_ops, w, NULL);
}

void record_edit(struct lifecycle *l, struct span id, record_edit_fn *edit,
		 void *data, changed_fn *fn, void *ctx)
{
	struct wish *w = wish_new(l, id, fn, ctx);

	w->edit = edit;
	w->data = data;
	change_submit(l->control, &edit_ops, w, NULL);
}

void record_remove(struct lifecycle *l, struct span id, changed_fn *fn,
		   void *ctx)
{
	change_submit(l->control, &remove_ops, wish_new(l, id, fn, ctx), NULL);
}

/* -- of the state --------------------------------------------------------- */

struct new_state {
	enum box_state state;
	const char *reason;
	char message[sizeof(((struct box *)0)->message)];
};

static bool edit_state(void *data, struct box *b)
{
	const struct new_state *n = data;

	if (b->state == BOX_STOPPING)
		return false;
	box_set_state(b, n->state, n->reason, n->message, clock_wall_ms());
	return true;
}

void record_set_state(struct lifecycle *l, struct span id, enum box_state state,
		      const char *reason, const char *message, changed_fn *fn,
		      void *ctx)
{
	struct new_state *n = must_alloc(sizeof(*n));

	n->state = state;
	n->reason = reason;
	(void)snprintf(n->message, sizeof(n->message), "%s", message);
	record_edit(l, id, edit_state, n, fn, ctx);
}
