/* SPDX-License-Identifier: Apache-2.0 */
/* runs.c - what runs in an isolated session: with a stream, or in the
 * background with a status and a log
 */

#include <errno.h>
#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/execd/answer.h"
#include "src/execd/command/command.h"
#include "src/execd/command/commands.h"
#include "src/execd/command/log.h"
#include "src/execd/execd.h"
#include "src/execd/isolated/isolation_inside.h"
#include "src/execd/session/session.h"
#include "src/text/json.h"

enum { TIMEOUT_MAX_S = 24 * 3600 };

static int run_read(const struct json *j, struct session_run *ret,
		    bool *background, struct diag *d)
{
	const struct json *envs = json_find(j, "envs");
	const struct json *limit = json_find(j, "timeout_seconds");
	uint64_t seconds = 0;

	*ret = (struct session_run){ .text = json_text(json_find(j, "code")) };
	if (!ret->text.len || span_has(ret->text, '\0'))
		return diag_set(d, 0, 0,
				"code is required: a text without NUL");
	if (json_kind(envs) == JSON_KIND_OBJECT)
		ret->envs = envs;
	else if (envs && json_kind(envs) != JSON_KIND_NULL)
		return diag_set(d, 0, 0, "envs is %s, expected an object",
				json_kind_name(json_kind(envs)));
	if (limit && json_kind(limit) != JSON_KIND_NULL &&
	    (!json_u64(limit, &seconds) || seconds > TIMEOUT_MAX_S))
		return diag_set(d, 0, 0,
				"timeout_seconds is no number from 0 to %d",
				TIMEOUT_MAX_S);
	ret->timeout_ms = 1000 * seconds;
	*background = json_bool(json_find(j, "background"));
	return 0;
}

static void answer_begun(const struct isolated *s, const struct command *c,
			 struct httpd_request *r)
{
	struct buf body CLEANUP(buf_fini) = BUF_INIT(1024);
	struct json_out o;

	json_start(&o, &body);
	json_open_object(&o, NULL);
	json_put_str(&o, "session_id", s->id);
	json_put_str(&o, "run_id", c->id);
	isolated_put_time(&o, "started_at", c->started_wall_ms);
	json_close(&o);
	must(!json_done(&o));
	answer_json(r, 202, &body);
}

static void run_begin(struct execd *e, struct isolated *s,
		      const struct session_run *what, struct httpd_request *r)
{
	struct diag d = { 0 };
	struct command *c;

	s->running++;
	c = session_begin(e, s->session, what, &d);
	if (!c) {
		s->running--;
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY, "%s", d.msg);
		return;
	}
	memcpy(s->runs[s->run_count++ % ISOLATION_RUNS_MAX], c->id, ID_SIZE);
	answer_begun(s, c, r);
}

void isolated_run(void *ctx, struct httpd_request *r)
{
	struct isolated *s = isolated_of_path(ctx, r);
	struct json *j CLEANUP_JSON = NULL;
	struct session_run what;
	struct diag d = { 0 };
	bool background = false;

	if (!s)
		return;
	j = answer_body(r, false);
	if (!j)
		return;
	if (run_read(j, &what, &background, &d) ||
	    (s->dead && diag_set(&d, 0, 0,
				 "the session has ended: its first "
				 "process was killed"))) {
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY, "%s", d.msg);
		return;
	}
	timer_stop(&s->idle);
	if (background) {
		run_begin(ctx, s, &what, r);
		return;
	}
	s->running++;
	if (!session_start(ctx, r, s->session, &what)) {
		s->running--;
		isolated_rest(s);
	}
}

/* NULL: answered. */
static struct command *run_of_path(struct execd *e, struct httpd_request *r)
{
	const struct isolated *s = isolated_of_path(e, r);
	struct span id = httpd_param(r, "run");
	struct command *c = NULL;
	unsigned i;

	if (!s)
		return NULL;
	for (i = 0; !c && i < ISOLATION_RUNS_MAX; i++)
		if (id.len && span_eq(id, span_str(s->runs[i])))
			c = commands_find(e->commands, id);
	if (!c)
		answer_error(r, 404, ANSWER_SESSION_NOT_FOUND,
			     "the session has no run in the background with "
			     "this id, or it was forgotten");
	return c;
}

void isolated_run_status(void *ctx, struct httpd_request *r)
{
	struct buf body CLEANUP(buf_fini) = BUF_INIT(4096);
	const struct command *c = run_of_path(ctx, r);
	struct json_out o;
	bool running;

	if (!c)
		return;
	running = c->state == COMMAND_RUNS;
	json_start(&o, &body);
	json_open_object(&o, NULL);
	json_put_text(&o, "session_id", httpd_param(r, "id"));
	json_put_str(&o, "run_id", c->id);
	json_put_bool(&o, "running", running);
	if (!running)
		json_put_i64(&o, "exit_code", c->exit_code);
	if (c->error[0])
		json_put_str(&o, "error", c->error);
	isolated_put_time(&o, "started_at", c->started_wall_ms);
	if (!running)
		isolated_put_time(&o, "finished_at", c->finished_wall_ms);
	json_close(&o);
	must(!json_done(&o));
	answer_json(r, 200, &body);
}

void isolated_run_logs(void *ctx, struct httpd_request *r)
{
	const struct command *c = run_of_path(ctx, r);
	struct span text;
	uint64_t cursor = 0;

	if (!c)
		return;
	text = httpd_query(r, "cursor");
	if (text.len && !span_parse_u64(text, &cursor))
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY,
			     "cursor is \"%.*s\", expected a number of bytes",
			     (int)MIN(text.len, 64u), text.ptr);
	else if (c->log < 0)
		answer_error(r, 404, ANSWER_SESSION_NOT_FOUND,
			     "the log of this run is not kept any more");
	else
		command_log_send(r, "EXECD-ISOLATED-TAIL-CURSOR", c->log,
				 cursor, c->state == COMMAND_RUNS);
}
