/* SPDX-License-Identifier: Apache-2.0 */
/* capture_record.c - changes of the records of snapshots */

#include "src/control/lifecycle/capture_record.h"

#include <stdio.h>
#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/control/api.h"
#include "src/control/control.h"
#include "src/control/lifecycle/lifecycle.h"
#include "src/control/vault_link.h"
#include "src/text/json.h"

enum { RECORD_MAX = 16 * 1024 };

struct wish {
	struct lifecycle *lifecycle;
	char id[BOX_ID_SIZE];
	struct capture *next; /* as it will be; NULL: not made yet */
	unsigned from;
	enum capture_state to;
	char message[sizeof(((struct capture *)0)->message)];
	changed_fn *fn;
	void *ctx;
};

static enum change_step capture_store(struct control *c,
				      const struct capture *s)
{
	struct buf text = BUF_INIT(RECORD_MAX);
	struct json_out o;

	json_start(&o, &text);
	capture_emit_stored(&o, s);
	must(!json_done(&o)); /* all of it is bounded */
	change_store_begin(c);
	vault_link_put(c->vault, RECORD_SNAPSHOT, span_str(s->id),
		       buf_peek(&text));
	buf_fini(&text);
	return CHANGE_STORE;
}

/* -- steps of the change -------------------------------------------------- */

static enum change_step add_check(struct control *c, void *data,
				  struct refusal *no)
{
	struct wish *w = data;

	if (map_count(&w->lifecycle->captures.by_id) >= CAPTURES_MAX)
		return api_refuse(no, 409, "SNAPSHOT::TOO_MANY",
				  "%d snapshots are the most", CAPTURES_MAX);
	return capture_store(c, w->next);
}

static enum change_step refuse_unknown(struct refusal *no)
{
	return api_refuse(no, 404, "SNAPSHOT::NOT_FOUND",
			  "there is no such snapshot");
}

static enum change_step move_check(struct control *c, void *data,
				   struct refusal *no)
{
	struct wish *w = data;
	const struct capture *now =
		captures_find(&w->lifecycle->captures, span_str(w->id));

	free(w->next);
	w->next = NULL;
	if (!now)
		return refuse_unknown(no);
	if (!(w->from & 1U << now->state))
		return api_refuse(no, 409, "SNAPSHOT::INVALID_STATE",
				  "the snapshot is %s",
				  capture_state_name(now->state));
	w->next = must_alloc(sizeof(*w->next));
	*w->next = *now;
	w->next->state = w->to;
	w->next->changed_ms = clock_wall_ms();
	memcpy(w->next->message, w->message, sizeof(w->message));
	return capture_store(c, w->next);
}

static void put_apply(struct control *c, void *data, uint64_t revision)
{
	struct wish *w = data;

	(void)c;
	(void)revision;
	captures_put(&w->lifecycle->captures, take_ptr(w->next));
}

static enum change_step remove_check(struct control *c, void *data,
				     struct refusal *no)
{
	struct wish *w = data;

	if (!captures_find(&w->lifecycle->captures, span_str(w->id)))
		return refuse_unknown(no);
	change_store_begin(c);
	vault_link_remove(c->vault, RECORD_SNAPSHOT, span_str(w->id));
	return CHANGE_STORE;
}

static void remove_apply(struct control *c, void *data, uint64_t revision)
{
	struct wish *w = data;

	(void)c;
	(void)revision;
	captures_remove(&w->lifecycle->captures, span_str(w->id));
}

static void wish_done(struct control *c, void *data, const struct refusal *why)
{
	struct wish *w = data;

	(void)c;
	if (w->fn)
		w->fn(w->ctx, why);
}

static void wish_free(void *data)
{
	struct wish *w = data;

	free(w->next);
	free(w);
}

#define LOCAL_CHANGE(checks, applies)                                     \
	{                                                                 \
		.check = (checks), .apply = (applies), .done = wish_done, \
		.free = wish_free, .local = true                          \
	}

static const struct change_ops add_ops = LOCAL_CHANGE(add_check, put_apply);
static const struct change_ops move_ops = LOCAL_CHANGE(move_check, put_apply);
static const struct change_ops remove_ops =
	LOCAL_CHANGE(remove_check, remove_apply);

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

void capture_record_add(struct lifecycle *l, struct capture *s, changed_fn *fn,
			void *ctx)
{
	struct wish *w = wish_new(l, span_str(s->id), fn, ctx);

	w->next = s;
	change_submit(l->control, &add_ops, w, NULL);
}

void capture_record_move(struct lifecycle *l, struct span id, unsigned from,
			 enum capture_state to, const char *message,
			 changed_fn *fn, void *ctx)
{
	struct wish *w = wish_new(l, id, fn, ctx);

	w->from = from;
	w->to = to;
	(void)snprintf(w->message, sizeof(w->message), "%s",
		       message ? message : "");
	change_submit(l->control, &move_ops, w, NULL);
}

void capture_record_remove(struct lifecycle *l, struct span id, changed_fn *fn,
			   void *ctx)
{
	change_submit(l->control, &remove_ops, wish_new(l, id, fn, ctx), NULL);
}
