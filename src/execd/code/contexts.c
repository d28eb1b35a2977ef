/* SPDX-License-Identifier: Apache-2.0 */
/* contexts.c - the code contexts of the daemon: a table of them, by id */

#include "src/execd/code/contexts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/execd/answer.h"
#include "src/execd/code/engine.h"
#include "src/execd/code/jupyter/kernel.h"
#include "src/execd/code/jupyter/server.h"
#include "src/execd/code/local.h"
#include "src/execd/execd.h"
#include "src/httpd/httpd.h"
#include "src/io/loop.h"
#include "src/text/json.h"

enum { DESCRIPTION_MAX = 512 };

/* -- a table -------------------------------------------------------------- */

struct contexts *contexts_new(struct execd *e)
{
	struct contexts *t = must_alloc(sizeof(*t));

	t->execd = e;
	map_init(&t->by_id);
	if (e->config->jupyter_host)
		t->jupyter = jupyter_new(e);
	return t;
}

struct contexts *contexts_free(struct contexts *t)
{
	struct context *c;
	size_t at;

	if (!t)
		return NULL;
	while (at = 0, (c = map_next(&t->by_id, &at, NULL)))
		context_delete(c);
	map_fini(&t->by_id);
	t->jupyter = jupyter_free(t->jupyter);
	free(t);
	return NULL;
}

struct context *contexts_find(const struct contexts *t, struct span id)
{
	return map_find(&t->by_id, id);
}

struct context *contexts_default(const struct contexts *t, struct span language)
{
	struct context *c;
	size_t at = 0;

	while ((c = map_next(&t->by_id, &at, NULL)))
		if (c->is_default && span_eq(span_str(c->language), language))
			return c;
	return NULL;
}

/* -- the life of a context ------------------------------------------------ */

static struct context *context_new(struct contexts *t, struct span language,
				   struct span cwd)
{
	struct context *c = must_alloc(sizeof(*c));

	c->owner = t;
	id_draw(c->id);
	must(span_copy(language, c->language, sizeof(c->language)));
	if (cwd.len) {
		c->cwd = must_alloc(cwd.len + 1);
		must(span_copy(cwd, c->cwd, cwd.len + 1));
	}
	buf_init(&c->code, CONTEXT_CODE_MAX);
	must(!map_set(&t->by_id, span_str(c->id), c));
	return c;
}

static void context_free(struct context *c)
{
	struct engine *e = c->engine;

	c->engine = e ? e->ops->free(e) : NULL;
	(void)map_take(&c->owner->by_id, span_str(c->id));
	buf_fini(&c->code);
	free(c->cwd);
	free(c);
}

static void refuse(struct httpd_request *r, const struct context *c,
		   const char *why)
{
	answer_error(r, 500, ANSWER_RUNTIME_ERROR,
		     c->state == CONTEXT_CREATING
			     ? "error creating code context. %s"
			     : "error running codes %s",
		     why);
}

void context_delete(struct context *c)
{
	if (c->waiting)
		refuse(take_ptr(c->waiting), c, "the context was deleted");
	cell_die(&c->cell, "ContextDeleted", "the context was deleted");
	context_free(c);
}

bool context_is_busy(const struct context *c)
{
	return c->state == CONTEXT_CREATING || c->state == CONTEXT_PREPARING ||
	       cell_is_open(&c->cell);
}

/* -- from preparing to running -------------------------------------------- */

static void on_room(void *ctx)
{
	struct context *c = ctx;

	c->engine->ops->room(c->engine);
}

/* The run goes on: what it prints goes nowhere, and at once. */
static void on_gone(void *ctx)
{
	on_room(ctx);
}

static const struct event_stream_ops stream_ops = {
	.room = on_room,
	.gone = on_gone,
};

static void answer_context(struct httpd_request *r, const struct context *c)
{
	struct buf text = BUF_INIT(DESCRIPTION_MAX);
	struct json_out o;

	json_start(&o, &text);
	json_open_object(&o, NULL);
	json_put_str(&o, "id", c->id);
	json_put_str(&o, "language", c->language);
	json_close(&o);
	must(!json_done(&o));
	answer_json(r, 200, &text);
	buf_fini(&text);
}

static void begin(struct context *c)
{
	struct engine *e = c->engine;

	c->state = CONTEXT_RUNNING;
	c->interrupted_ms = 0;
	cell_open(&c->cell, c->owner->execd, take_ptr(c->waiting),
		  span_str(c->id), &stream_ops, c);
	if (e->lost) {
		e->lost = false;
		cell_status(&c->cell,
			    SPAN("restarted: the state of this context was "
				 "lost"));
	}
	e->ops->execute(e, buf_peek(&c->code));
	buf_fini(&c->code);
}

/* The engine is ready for what the context waits for. */
static void prepared(struct context *c)
{
	c->was_ready = true;
	if (c->state == CONTEXT_PREPARING) {
		begin(c);
	} else {
		c->state = CONTEXT_IDLE;
		answer_context(take_ptr(c->waiting), c);
	}
}

/* A context that never came to be is none. */
static void failed(struct context *c, const char *why)
{
	refuse(take_ptr(c->waiting), c, why);
	buf_fini(&c->code);
	if (!c->was_ready)
		context_free(c);
	else
		c->state = CONTEXT_IDLE;
}

static void on_prepared(void *ctx, int error, const char *why);

static const struct engine_events engine_events = {
	.prepared = on_prepared,
};

static void prepare(struct context *c)
{
	struct engine *e = c->engine;
	struct diag d = { 0 };
	int r = e->ops->prepare(e, &d);

	if (!r)
		prepared(c);
	else if (r < 0)
		failed(c, d.msg);
}

static struct engine *engine_local(struct context *c)
{
	return local_new(c->owner->execd, span_str(c->language), c->cwd,
			 &c->cell, &engine_events, c);
}

static void on_prepared(void *ctx, int error, const char *why)
{
	struct context *c = ctx;
	struct engine *other;

	if (!error) {
		prepared(c);
		return;
	}
	/* No kernel speaks it: the image's own interpreter, if it has one. */
	other = error == -ENOENT ? engine_local(c) : NULL;
	if (!other) {
		failed(c, why);
		return;
	}
	(void)c->engine->ops->free(c->engine);
	c->engine = other;
	prepare(c);
}

static bool engine_make(struct context *c)
{
	c->engine =
		c->owner->jupyter
			? kernel_new(c->owner->jupyter, span_str(c->language),
				     c->cwd, &c->cell, &engine_events, c)
			: engine_local(c);
	return c->engine != NULL;
}

/* A context with an engine in state `state` for r; NULL: r was answered. */
static struct context *context_at(struct contexts *t, struct httpd_request *r,
				  struct span language, struct span cwd,
				  enum context_state state)
{
	struct context *c;

	if (map_count(&t->by_id) >= CONTEXTS_MAX) {
		answer_error(r, 500, ANSWER_RUNTIME_ERROR,
			     "there are %d code contexts already, the most "
			     "there can be: delete some",
			     CONTEXTS_MAX);
		return NULL;
	}
	c = context_new(t, language, cwd);
	c->state = state;
	c->waiting = r;
	if (engine_make(c))
		return c;
	failed(c, "language runtime server not configured, please check your "
		  "image runtime: without JUPYTER_HOST there are python, "
		  "javascript and bash");
	return NULL;
}

void contexts_create(struct contexts *t, struct httpd_request *r,
		     struct span language, struct span cwd)
{
	struct context *c = context_at(t, r, language, cwd, CONTEXT_CREATING);

	if (c)
		prepare(c);
}

void contexts_run_default(struct contexts *t, struct httpd_request *r,
			  struct span language, struct span code)
{
	struct context *c = contexts_default(t, language);

	if (c) {
		context_run(c, r, code);
		return;
	}
	c = context_at(t, r, language, SPAN_NONE, CONTEXT_PREPARING);
	if (!c)
		return;
	c->is_default = true;
	must(!buf_put(&c->code, code));
	prepare(c);
}

/* -- a run ---------------------------------------------------------------- */

void context_run(struct context *c, struct httpd_request *r, struct span code)
{
	if (context_is_busy(c)) {
		answer_error(r, 500, ANSWER_RUNTIME_ERROR,
			     "error running codes session is busy");
		return;
	}
	c->state = CONTEXT_PREPARING;
	c->waiting = r;
	must(!buf_put(&c->code, code));
	prepare(c);
}

void context_interrupt(struct context *c)
{
	uint64_t now = loop_now_ms(c->owner->execd->loop);
	struct engine *e = c->engine;
	bool hard;

	if (!cell_is_open(&c->cell))
		return;
	hard = c->interrupted_ms &&
	       now - c->interrupted_ms >= CONTEXT_PATIENCE_MS;
	if (!c->interrupted_ms)
		c->interrupted_ms = now;
	e->ops->interrupt(e, hard);
}
