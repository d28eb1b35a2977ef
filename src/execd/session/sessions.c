/* SPDX-License-Identifier: Apache-2.0 */
/* sessions.c - the sessions of clients: POST /session, its runs, DELETE */

#include "src/execd/session/sessions.h"

#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/map.h"
#include "src/execd/answer.h"
#include "src/execd/command/body.h"
#include "src/execd/command/command.h"
#include "src/execd/execd.h"
#include "src/execd/id.h"
#include "src/execd/process/env.h"
#include "src/execd/session/session.h"
#include "src/text/json.h"

struct sessions {
	struct execd *execd;
	struct map by_id;
};

struct sessions *sessions_new(struct execd *e)
{
	struct sessions *t = must_alloc(sizeof(*t));

	t->execd = e;
	map_init(&t->by_id);
	return t;
}

struct sessions *sessions_free(struct sessions *t)
{
	struct session *s;
	size_t cursor = 0;

	if (!t)
		return NULL;
	while ((s = map_next(&t->by_id, &cursor, NULL)))
		session_end(s);
	map_fini(&t->by_id);
	free(t);
	return NULL;
}

/* -- POST /session -------------------------------------------------------- */

static void session_answer(const char *id, struct httpd_request *r)
{
	struct buf body = BUF_INIT(256);
	struct json_out o;

	json_start(&o, &body);
	json_open_object(&o, NULL);
	json_put_str(&o, "session_id", id);
	json_close(&o);
	must(!json_done(&o));
	answer_json(r, 200, &body);
	buf_fini(&body);
}

void session_post(void *ctx, struct httpd_request *r)
{
	struct sessions *t = ((struct execd *)ctx)->sessions;
	struct json *j CLEANUP_JSON = answer_body(r, true);
	struct diag d = { 0 };
	char id[ID_SIZE], *dir = NULL;
	struct span cwd;
	struct env *env;
	int bad;

	if (!j)
		return;
	if (map_count(&t->by_id) >= SESSIONS_MAX) {
		answer_error(r, 500, ANSWER_RUNTIME_ERROR,
			     "there are %d sessions, which is all there may be",
			     SESSIONS_MAX);
		return;
	}
	env = env_new();
	bad = command_body_cwd(j, &cwd, &d);
	if (!bad && cwd.ptr)
		bad = command_cwd(env, cwd, &dir, &d);
	if (bad) {
		(void)env_free(env);
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY, "%s", d.msg);
		return;
	}
	id_draw(id);
	must(!map_set(&t->by_id, span_str(id), session_new(env, dir)));
	session_answer(id, r);
}

/* -- POST /session/{id}/run ----------------------------------------------- */

static struct session *session_of_path(struct execd *e,
				       const struct httpd_request *r)
{
	return map_find(&e->sessions->by_id, httpd_param(r, "id"));
}

void session_run(void *ctx, struct httpd_request *r)
{
	struct session *s = session_of_path(ctx, r);
	struct json *j CLEANUP_JSON = NULL;
	struct command_body body;
	struct diag d = { 0 };

	if (!s) {
		answer_error(r, 500, ANSWER_RUNTIME_ERROR,
			     "there is no session with this id");
		return;
	}
	j = answer_body(r, false);
	if (!j)
		return;
	if (command_body_read(j, &body, &d)) {
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY, "%s", d.msg);
		return;
	}
	if (body.argv) {
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY,
			     "found argv, expected command: a session runs "
			     "texts of its shell");
		return;
	}
	(void)session_start(ctx, r, s,
			    &(struct session_run){
				    .text = body.command,
				    .cwd = body.cwd,
				    .timeout_ms = body.timeout_ms
							  ? body.timeout_ms
							  : SESSION_TIMEOUT_MS,
			    });
}

/* -- DELETE /session/{id} ------------------------------------------------- */

void session_delete_id(void *ctx, struct httpd_request *r)
{
	struct execd *e = ctx;
	struct session *s = map_take(&e->sessions->by_id, httpd_param(r, "id"));

	if (!s) {
		answer_error(r, 404, ANSWER_CONTEXT_NOT_FOUND,
			     "there is no session with this id");
		return;
	}
	session_end(s);
	answer_ok(r);
}
