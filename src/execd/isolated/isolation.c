/* SPDX-License-Identifier: Apache-2.0 */
/* isolation.c - sessions in a world of their own: /v1/isolated
 *
 * A session is three things: its plan (what was asked for), its world (the
 * namespaces, kept by a process), and a session as any other one (what its
 * shell remembers), whose programs enter the world. When the keeper ends, by
 * itself or because it was killed, the session is dead: it can be looked at and
 * deleted, and nothing runs in it.
 */

#include "src/execd/isolated/isolation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/execd/answer.h"
#include "src/execd/execd.h"
#include "src/execd/isolated/isolation_inside.h"
#include "src/execd/process/env.h"
#include "src/execd/session/session.h"
#include "src/text/json.h"

enum { LIST_MAX = 1024 * 1024 }; /* bytes of an answer */

/* -- what is possible ----------------------------------------------------- */

static void trial_run(struct execd *e, const struct plan *plan,
		      struct trial *ret)
{
	char step[WORLD_STEP_SIZE];
	struct world w = { 0 };
	int r;

	r = world_new(e, plan, &w, step);
	if (r)
		(void)snprintf(ret->message, sizeof(ret->message),
			       "%s was not possible: %s", step, err_text(r));
	else
		world_fini(&w);
}

/* The overlay is tried in the mode that works. */
static void try_all(struct isolation *t)
{
	char place[] = "/tmp"; /* any folder that can be hidden for a moment */
	struct plan plan = { .workspace = place,
			     .mode = PLAN_READ_ONLY,
			     .share_net = true };

	if (t->tried)
		return;
	t->tried = true;
	for (plan.user = 0; plan.user < PLAN_USER_NUM; plan.user++)
		trial_run(t->execd, &plan, &t->user[plan.user]);
	plan.user =
		t->user[PLAN_SETPRIV].message[0] ? PLAN_USERNS : PLAN_SETPRIV;
	plan.mode = PLAN_OVERLAY;
	trial_run(t->execd, &plan, &t->overlay);
}

static bool is_available(struct isolation *t)
{
	try_all(t);
	return !t->user[PLAN_SETPRIV].message[0] ||
	       !t->user[PLAN_USERNS].message[0];
}

/* False: answered with 503. */
static bool available_or_answer(struct isolation *t, struct httpd_request *r)
{
	if (is_available(t))
		return true;
	answer_error(r, 503, ANSWER_SERVICE_UNAVAILABLE,
		     "isolation unavailable: %s",
		     t->user[PLAN_SETPRIV].message);
	return false;
}

static bool plan_possible(struct isolation *t, const struct plan *p,
			  struct httpd_request *r)
{
	if (t->user[p->user].message[0]) {
		answer_error(r, 503, ANSWER_NOT_SUPPORTED,
			     "uid_mode %s is unavailable here: %s",
			     plan_user_name(p->user), t->user[p->user].message);
		return false;
	}
	if (p->mode == PLAN_OVERLAY && t->overlay.message[0]) {
		answer_error(r, 503, ANSWER_NOT_SUPPORTED,
			     "workspace.mode overlay is unavailable here: %s; "
			     "rw and ro are",
			     t->overlay.message);
		return false;
	}
	return true;
}

/* "setpriv: mounting /proc was not possible: ...", of each that is not. */
static void message_put(struct buf *to, const char *of, const struct trial *t)
{
	if (t->message[0])
		must(!buf_putf(to, "%s%s: %s", buf_len(to) ? "; " : "", of,
			       t->message));
}

void isolated_capabilities(void *ctx, struct httpd_request *r)
{
	struct isolation *t = ((struct execd *)ctx)->isolation;
	struct buf body CLEANUP(buf_fini) = BUF_INIT(16 * 1024);
	struct buf message CLEANUP(buf_fini) = BUF_INIT(2048);
	const struct trial *u = t->user;
	struct json_out o;

	json_start(&o, &body);
	json_open_object(&o, NULL);
	json_put_bool(&o, "available", is_available(t));
	json_put_str(&o, "isolator", "namespaces");
	json_put_str(&o, "version", SALLYPORT_VERSION);
	message_put(&message, "setpriv", &u[PLAN_SETPRIV]);
	message_put(&message, "userns", &u[PLAN_USERNS]);
	message_put(&message, "overlay", &t->overlay);
	if (buf_len(&message))
		json_put_text(&o, "message", buf_peek(&message));
	json_put_bool(&o, "setpriv_available", !*u[PLAN_SETPRIV].message);
	json_put_bool(&o, "userns_available", !*u[PLAN_USERNS].message);
	json_put_bool(&o, "commit_supported", false);
	json_put_bool(&o, "diff_supported", false);
	json_close(&o);
	must(!json_done(&o));
	answer_json(r, 200, &body);
}

/* -- the end -------------------------------------------------------------- */

static void isolated_free(struct isolated *s)
{
	(void)map_take(&s->owner->by_id, span_str(s->id));
	list_remove(&s->link);
	timer_stop(&s->idle);
	if (s->session)
		session_end(s->session);
	world_fini(&s->world);
	plan_fini(&s->plan);
	free(s);
}

/* With the keeper everybody in the world has ended. */
static void on_keeper_exit(struct child *c)
{
	struct isolated *s = container_of(c, struct isolated, world.keeper);

	s->dead = true;
	timer_stop(&s->idle);
}

static void on_idle(struct timer *t)
{
	isolated_free(container_of(t, struct isolated, idle));
}

void isolated_rest(struct isolated *s)
{
	s->run_ms = clock_ms();
	s->run_wall_ms = clock_wall_ms();
	if (s->plan.idle_s && !s->running && !s->dead)
		timer_start(&s->idle, UINT64_C(1000) * s->plan.idle_s);
}

static void on_run_end(void *ctx)
{
	struct isolated *s =
		container_of((struct world *)ctx, struct isolated, world);

	s->running--;
	isolated_rest(s);
}

/* -- making --------------------------------------------------------------- */

void isolated_put_time(struct json_out *o, const char *name, uint64_t wall_ms)
{
	char text[CLOCK_TEXT_SIZE];

	clock_text(wall_ms, text, sizeof(text));
	json_put_str(o, name, text);
}

static void state_put(const struct isolated *s, struct json_out *o)
{
	uint64_t idle_ms = clock_ms() - s->run_ms;
	uint64_t all_ms = UINT64_C(1000) * s->plan.idle_s;

	json_put_str(o, "status", s->dead ? "dead" : "active");
	isolated_put_time(o, "created_at", s->made_wall_ms);
	isolated_put_time(o, "last_run_at", s->run_wall_ms);
	if (!s->plan.idle_s)
		return;
	if (s->running)
		idle_ms = 0;
	json_put_u64(o, "idle_remaining_seconds",
		     idle_ms < all_ms ? (all_ms - idle_ms) / 1000 : 0);
}

static void answer_made(const struct isolated *s, struct httpd_request *r)
{
	struct buf body CLEANUP(buf_fini) = BUF_INIT(LIST_MAX);
	struct json_out o;

	json_start(&o, &body);
	json_open_object(&o, NULL);
	json_put_str(&o, "session_id", s->id);
	isolated_put_time(&o, "created_at", s->made_wall_ms);
	plan_put(&s->plan, &o);
	json_close(&o);
	must(!json_done(&o));
	answer_json(r, 201, &body);
}

static struct session *shell_new(struct isolated *s)
{
	struct env *env = env_new();
	struct session *shell;

	plan_env(&s->plan, env);
	shell = session_new(env, must_strdup(s->plan.workspace));
	session_set_place(shell, world_enter, on_run_end, &s->world);
	return shell;
}

/* Takes the plan. */
static void isolated_make(struct isolation *t, struct plan *plan,
			  struct httpd_request *r)
{
	struct isolated *s = must_alloc(sizeof(*s));
	char step[WORLD_STEP_SIZE];
	int error;

	s->owner = t;
	s->plan = *plan;
	*plan = (struct plan){ 0 };
	list_init(&s->link);
	timer_init(&s->idle, t->execd->loop, on_idle);
	s->world.keeper.on_exit = on_keeper_exit;
	error = world_new(t->execd, &s->plan, &s->world, step);
	if (error) {
		answer_error(r, 500, ANSWER_RUNTIME_ERROR,
			     "the session was not made: %s: %s", step,
			     err_text(error));
		plan_fini(&s->plan);
		free(s);
		return;
	}
	s->session = shell_new(s);
	s->made_wall_ms = clock_wall_ms();
	id_draw(s->id);
	must(!map_set(&t->by_id, span_str(s->id), s));
	list_push(&t->all, &s->link);
	isolated_rest(s);
	answer_made(s, r);
}

void isolated_post(void *ctx, struct httpd_request *r)
{
	struct isolation *t = ((struct execd *)ctx)->isolation;
	struct json *j CLEANUP_JSON = NULL;
	struct diag d = { 0 };
	struct plan plan;

	if (!available_or_answer(t, r))
		return;
	j = answer_body(r, false);
	if (!j)
		return;
	if (map_count(&t->by_id) >= ISOLATION_SESSIONS_MAX) {
		answer_error(r, 503, ANSWER_SERVICE_UNAVAILABLE,
			     "there are %d isolated sessions, which is all "
			     "there may be",
			     ISOLATION_SESSIONS_MAX);
		return;
	}
	if (plan_read(j, t->allowed, &plan, &d))
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY, "%s", d.msg);
	else if (plan_possible(t, &plan, r))
		isolated_make(t, &plan, r);
	plan_fini(&plan);
}

/* -- looking and deleting ------------------------------------------------- */

struct isolated *isolated_of_path(struct execd *e, struct httpd_request *r)
{
	struct isolated *s =
		map_find(&e->isolation->by_id, httpd_param(r, "id"));

	if (!s)
		answer_error(r, 404, ANSWER_SESSION_NOT_FOUND,
			     "there is no isolated session with this id");
	return s;
}

void isolated_get(void *ctx, struct httpd_request *r)
{
	struct buf body CLEANUP(buf_fini) = BUF_INIT(LIST_MAX);
	const struct isolated *s = isolated_of_path(ctx, r);
	struct json_out o;

	if (!s)
		return;
	json_start(&o, &body);
	json_open_object(&o, NULL);
	state_put(s, &o);
	plan_put(&s->plan, &o);
	json_close(&o);
	must(!json_done(&o));
	answer_json(r, 200, &body);
}

void isolated_list(void *ctx, struct httpd_request *r)
{
	struct isolation *t = ((struct execd *)ctx)->isolation;
	struct buf body CLEANUP(buf_fini) = BUF_INIT(LIST_MAX);
	const struct isolated *s;
	struct json_out o;

	if (!available_or_answer(t, r))
		return;
	json_start(&o, &body);
	json_open_object(&o, NULL);
	json_open_array(&o, "sessions");
	list_for_each(it, &t->all)
	{
		s = container_of(it, struct isolated, link);
		json_open_object(&o, NULL);
		json_put_str(&o, "session_id", s->id);
		state_put(s, &o);
		json_close(&o);
	}
	json_close(&o);
	json_close(&o);
	must(!json_done(&o));
	answer_json(r, 200, &body);
}

void isolated_delete(void *ctx, struct httpd_request *r)
{
	struct isolated *s = isolated_of_path(ctx, r);

	if (!s)
		return;
	isolated_free(s);
	answer_ok(r);
}

/* -- what is not there ----------------------------------------------------- */

static void say_missing(struct execd *e, struct httpd_request *r)
{
	if (isolated_of_path(e, r))
		answer_error(r, 503, ANSWER_NOT_SUPPORTED,
			     "this daemon does not have it: what a session "
			     "writes in its overlay ends with it, what it "
			     "writes in a workspace that is rw stays");
}

void isolated_diff(void *ctx, struct httpd_request *r)
{
	say_missing(ctx, r);
}

void isolated_commit(void *ctx, struct httpd_request *r)
{
	say_missing(ctx, r);
}

/* -- the table ------------------------------------------------------------ */

/* EXECD_ISOLATED_WRITABLE, as PATH is written. */
static void allowed_read(struct isolation *t)
{
	const char *named = getenv("EXECD_ISOLATED_WRITABLE");
	unsigned count = 0;
	char *at, *rest;

	t->allowed_text =
		must_strdup(named ? named : "/workspace:/mnt:/media:/data");
	for (rest = t->allowed_text;
	     count < ISOLATION_PATHS_MAX && (at = rest);) {
		rest = strchr(at, ':');
		if (rest)
			*rest++ = '\0';
		if (*at == '/')
			t->allowed[count++] = at;
	}
}

struct isolation *isolation_new(struct execd *e)
{
	struct isolation *t = must_alloc(sizeof(*t));

	t->execd = e;
	map_init(&t->by_id);
	list_init(&t->all);
	allowed_read(t);
	return t;
}

struct isolation *isolation_free(struct isolation *t)
{
	if (!t)
		return NULL;
	list_for_each(it, &t->all)
		isolated_free(container_of(it, struct isolated, link));
	map_fini(&t->by_id);
	free(t->allowed_text);
	free(t);
	return NULL;
}
