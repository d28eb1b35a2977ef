/* SPDX-License-Identifier: Apache-2.0 */
/* create.c - a sandbox comes to be, step by step; the table of the steps
 *
 * How it works: each step begins something and calls creation_next() when it is
 * there, or creation_fail(). What was made until then is undone by the table of
 * remove.c, in which everything may be missing; the client is answered
 * afterwards. So many creations run at a time as the configuration says; the
 * others wait in line.
 *
 * One whose image is being pulled waits for a stranger's registry. It steps
 * aside: its place is another's meanwhile, and it is the next to get one when
 * the image is there. Registries that hang thus keep nobody from making
 * sandboxes of what is here; of those that stepped aside there are a limited
 * number, for each is a call that Docker has not answered.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/control.h"
#include "src/control/docker/docker.h"
#include "src/control/lifecycle/creation.h"
#include "src/role/config.h"
#include "src/text/json.h"

enum { REPLY_MAX = 4 * 1024 * 1024, PATH_BYTES = 8 * 1024 };

static void (*const steps[])(struct creation *c) = {
	step_record, step_image,     step_volumes, step_policy, step_register,
	step_kit,    step_container, step_places,  step_place,	step_start,
	step_port,   step_ready,     step_running,
};

static void creations_begin(struct runtime *r);

static struct creation *creation_find(const struct lifecycle *l, struct span id)
{
	struct list *all = &l->runtime->creations;

	list_for_each(it, all)
	{
		struct creation *c = container_of(it, struct creation, link);

		if (span_eq(span_str(c->id), id))
			return c;
	}
	return NULL;
}

/* -- turns ---------------------------------------------------------------- */

static void turn_take(struct creation *c)
{
	c->has_turn = true;
	c->lifecycle->runtime->creating++;
}

static void turn_leave(struct creation *c)
{
	if (c->has_turn)
		c->lifecycle->runtime->creating--;
	else
		c->lifecycle->runtime->aside--;
	c->has_turn = false;
}

void creation_step_aside(struct creation *c)
{
	struct runtime *r = c->lifecycle->runtime;

	if (r->aside == CREATES_ASIDE_MAX)
		return;
	turn_leave(c);
	r->aside++;
	creations_begin(r);
}

void creation_step_back(struct creation *c, void (*step)(struct creation *c))
{
	struct runtime *r = c->lifecycle->runtime;

	if (c->has_turn) {
		step(c);
		return;
	}
	c->in_turn = step;
	list_push(&r->returning, &c->turn);
	creations_begin(r);
}

/* -- the end -------------------------------------------------------------- */

static struct creation *creation_free(struct creation *c)
{
	list_remove(&c->link);
	list_remove(&c->turn);
	timer_stop(&c->timer);
	creation_knock_end(c);
	create_request_free(c->q);
	free(c->sources);
	free(c);
	return NULL;
}

/* Room for the next one. */
static void creation_end(struct creation *c)
{
	struct runtime *r = c->lifecycle->runtime;

	turn_leave(c);
	creation_free(c);
	creations_begin(r);
}

static void reply_refused(struct creation *c)
{
	lifecycle_refuse(c->request, &c->no);
	creation_end(c);
}

static void reply_made(struct creation *c)
{
	const struct box *b = boxes_find(&c->lifecycle->boxes, span_str(c->id));
	struct buf out = BUF_INIT(REPLY_MAX);
	struct json_out o;

	json_start(&o, &out);
	must(b);
	box_emit(&o, b, false);
	must(!json_done(&o));
	httpd_reply_json(c->request, 202, buf_peek(&out));
	buf_fini(&out);
	log_info("sandbox %s runs", c->id);
	creation_end(c);
}

/* -- undone --------------------------------------------------------------- */

/* A daemon on its way down kills what it has begun: that a container ended
 * says nothing about the sandbox then. */
static void on_knocked(void *ctx, const struct docker_answer *a)
{
	struct creation *c = ctx;
	char why[sizeof(c->no.message)];

	if (c->lifecycle->ended)
		return;
	if (a->status < 0 || docker_losses(c->lifecycle->docker) != c->losses) {
		memcpy(why, c->no.message, sizeof(why));
		(void)lifecycle_error_set(&c->no, 503, c->no.code,
					  "the Docker daemon went away while "
					  "the sandbox was being made; at "
					  "last: %s",
					  why);
	}
	reply_refused(c);
}

static void creation_refuse(struct creation *c)
{
	if (c->no.status == 500)
		(void)docker_knock(c->lifecycle->docker, on_knocked, c);
	else
		reply_refused(c);
}

static void on_undone(void *ctx, const struct lifecycle_error *no)
{
	(void)no; /* what stays is in the log, and tried again */
	creation_refuse(ctx);
}

/* The removal may wait for the end of this very creation, or begins now: the
 * creation is no more among those that run. */
static void creation_undo(struct creation *c)
{
	list_remove(&c->link);
	list_push(&c->lifecycle->runtime->undoing, &c->link);
	if (c->was_kept)
		lifecycle_remove(c->lifecycle, span_str(c->id), on_undone, c);
	else
		creation_refuse(c);
}

void creation_fail(struct creation *c, unsigned status, const char *code,
		   const char *fmt, ...)
{
	char text[sizeof(c->no.message)];
	va_list args;

	if (c->is_failing || c->lifecycle->ended)
		return;
	c->is_failing = true;
	timer_stop(&c->timer);
	creation_knock_end(c);
	if (c->call)
		docker_cancel(c->call);
	c->call = NULL;
	list_remove(&c->turn);
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	(void)lifecycle_error_set(&c->no, status, code, "%s", text);
	log_warn("sandbox %s could not be made: %s", c->id, text);
	creation_undo(c);
}

/* -- step by step --------------------------------------------------------- */

void creation_next(struct creation *c)
{
	if (c->lifecycle->ended)
		return;
	if (c->step == ARRAY_LEN(steps)) {
		reply_made(c);
		return;
	}
	steps[c->step++](c);
}

void creation_back(struct creation *c, void (*step)(struct creation *c))
{
	while (c->step && steps[--c->step] != step)
		;
	creation_next(c);
}

void creation_exited(struct creation *c, int status)
{
	if (status == CONTAINER_EXIT_MOUNTS)
		creation_fail(c, 400, "VOLUME::INVALID_SUB_PATH",
			      "the subPath of a volume leads out of it");
	else
		creation_fail(c, 500, "DOCKER::SANDBOX_START_FAILED",
			      "its container exited with status %d before it "
			      "was ready",
			      status);
}

/* It was to end while something was on its way; that is here now. */
static void creation_give_up(struct creation *c)
{
	if (c->exit_status >= 0)
		creation_exited(c, c->exit_status);
	else
		creation_fail(c, 409, "DOCKER::SANDBOX_START_FAILED",
			      "the sandbox was ended while it was being made");
}

bool creation_goes_on(struct creation *c)
{
	c->call = NULL;
	c->is_bound = false;
	if (c->lifecycle->ended)
		return false;
	if (!c->is_abandoned)
		return true;
	creation_give_up(c);
	return false;
}

void creation_changed(void *ctx, const struct refusal *why)
{
	struct creation *c = ctx;

	if (!creation_goes_on(c))
		return;
	if (why->status)
		creation_fail(c, why->status == 503 ? 503 : 500,
			      "DOCKER::SANDBOX_START_FAILED", "%s",
			      why->diag.msg);
	else
		creation_next(c);
}

void creation_ask(struct creation *c, const char *method, struct span body,
		  docker_fn *fn, const char *fmt, ...)
{
	char path[PATH_BYTES];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(path, sizeof(path), fmt, args);
	va_end(args);
	must(n > 0 && (size_t)n < sizeof(path));
	c->is_bound = strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0;
	c->call = docker_ask(c->lifecycle->docker, method, path, body, fn, c);
}

/* -- others end it -------------------------------------------------------- */

bool creation_is_on(const struct lifecycle *l, struct span id)
{
	return creation_find(l, id) != NULL;
}

void creation_abandon(struct lifecycle *l, struct span id)
{
	struct creation *c = creation_find(l, id);

	if (!c || c->is_failing)
		return;
	c->is_abandoned = true;
	if (!c->is_bound)
		creation_give_up(c);
}

void creation_died(struct lifecycle *l, struct span id, int exit_status)
{
	struct creation *c = creation_find(l, id);

	if (!c || c->is_failing)
		return;
	c->exit_status = MAX(exit_status, 0);
	c->is_abandoned = true;
	if (!c->is_bound)
		creation_give_up(c);
}

/* -- the beginning -------------------------------------------------------- */

static void on_timer(struct timer *t)
{
	struct creation *c = container_of(t, struct creation, timer);

	c->on_time(c);
}

/* False: nobody is in line. */
static bool creation_begin(struct runtime *r)
{
	struct creation *c = list_first(&r->returning, struct creation, turn);

	if (c) {
		list_remove(&c->turn);
		r->aside--;
		turn_take(c);
		c->in_turn(c);
		return true;
	}
	c = list_first(&r->waiting, struct creation, link);
	if (!c)
		return false;
	list_remove(&c->link);
	r->waiting_count--;
	c->losses = docker_losses(r->lifecycle->docker);
	list_push(&r->creations, &c->link);
	turn_take(c);
	creation_next(c);
	return true;
}

static void creations_begin(struct runtime *r)
{
	uint32_t most = r->lifecycle->control->config->creates_at_once;

	while (!r->lifecycle->ended && r->creating < most && creation_begin(r))
		;
}

static bool may_begin(const struct runtime *r, struct lifecycle_error *no)
{
	if (!r->is_ready || r->lifecycle->ended)
		(void)lifecycle_error_set(
			no, 503, "DOCKER::INITIALIZATION_ERROR",
			"no sandbox can be made now: %s", r->why);
	else if (r->waiting_count >= CREATES_WAITING_MAX)
		(void)lifecycle_error_set(no, 503,
					  "DOCKER::SANDBOX_START_FAILED",
					  "too many sandboxes are waiting to "
					  "be made");
	else
		return true;
	return false;
}

void lifecycle_create(struct lifecycle *l, struct create_request *q,
		      struct httpd_request *r)
{
	struct lifecycle_error no;
	struct creation *c;

	if (!may_begin(l->runtime, &no)) {
		create_request_free(q);
		lifecycle_refuse(r, &no);
		return;
	}
	c = must_alloc(sizeof(*c));
	c->lifecycle = l;
	c->q = q;
	c->request = r;
	c->exit_status = c->knock_fd = -1;
	c->sources = must_alloc((q->volume_count + 1) * sizeof(*c->sources));
	list_init(&c->link);
	list_init(&c->turn);
	timer_init(&c->timer, l->control->loop, on_timer);
	list_push(&l->runtime->waiting, &c->link);
	l->runtime->waiting_count++;
	creations_begin(l->runtime);
}

/* -- when all ends -------------------------------------------------------- */

static void creations_drop(struct list *all)
{
	struct creation *c;

	while ((c = list_first(all, struct creation, link))) {
		httpd_reply_error(c->request, 503,
				  "DOCKER::INITIALIZATION_ERROR",
				  "the daemon stops");
		creation_free(c);
	}
}

void creations_free(struct runtime *r)
{
	creations_drop(&r->creations);
	creations_drop(&r->waiting);
	creations_drop(&r->undoing);
}
