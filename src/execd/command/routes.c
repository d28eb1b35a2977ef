/* SPDX-License-Identifier: Apache-2.0 */
/* routes.c - what clients ask of commands: run, interrupt, status, logs */

#include <errno.h>
#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/execd/answer.h"
#include "src/execd/command/body.h"
#include "src/execd/command/command.h"
#include "src/execd/command/commands.h"
#include "src/execd/command/log.h"
#include "src/execd/execd.h"
#include "src/execd/process/env.h"
#include "src/execd/process/shell.h"
#include "src/text/json.h"

enum { CWD_MAX = 4096, STATUS_OVERHEAD = 4096 };

/* -- POST /command -------------------------------------------------------- */

int command_cwd(const struct env *env, struct span text, char **ret,
		struct diag *d)
{
	struct buf path = BUF_INIT(CWD_MAX);
	const char *home = env_get(env, "HOME");
	int r = 0;

	if (span_starts(text, SPAN("~")) &&
	    (text.len == 1 || text.ptr[1] == '/') && home) {
		r = buf_put_str(&path, home);
		text = span_from(text, 1);
	}
	if (!r)
		r = env_expand(env, text, &path);
	if (!r)
		r = buf_put(&path, SPAN("\0"));
	if (r) {
		buf_fini(&path);
		return diag_set(d, 0, 0, "cwd is longer than %d bytes",
				CWD_MAX - 1);
	}
	*ret = must_strdup(buf_peek(&path).ptr);
	buf_fini(&path);
	return 0;
}

static void run_argv(struct execd *e, struct httpd_request *r,
		     const struct command_body *body, struct span text,
		     const char *const *argv, struct env *env, const char *cwd)
{
	(void)command_run(e, r,
			  &(struct command_start){
				  .kind = body->background ? COMMAND_BACKGROUND
							   : COMMAND_FOREGROUND,
				  .text = text,
				  .argv = argv,
				  .env = env,
				  .cwd = cwd,
				  .timeout_ms = body->timeout_ms,
				  .has_uid = body->has_uid,
				  .has_gid = body->has_gid,
				  .uid = body->uid,
				  .gid = body->gid,
			  });
}

static void run_in_shell(struct execd *e, struct httpd_request *r,
			 const struct command_body *body, struct env *env,
			 const char *cwd)
{
	const char *shell = child_shell(e);
	struct shell_args *args;

	if (!shell) {
		answer_error(r, 500, ANSWER_RUNTIME_ERROR,
			     "the image has no shell: found neither bash nor "
			     "sh");
		return;
	}
	args = shell_args_new(shell,
			      &(struct shell_texts){ .text = body->command });
	run_argv(e, r, body, body->command, shell_args_list(args), env, cwd);
	(void)shell_args_free(args);
}

/* The words as they are; the status shows them with a blank between. */
static void run_words(struct execd *e, struct httpd_request *r,
		      const struct command_body *body, struct env *env,
		      const char *cwd)
{
	size_t count = json_count(body->argv), i;
	const char **argv = must_alloc((count + 1) * sizeof(*argv));
	/* a text is never longer than it was in the body, quotes and all */
	struct buf text = BUF_INIT(EXECD_BODY_MAX);

	for (i = 0; i < count; i++) {
		/* NUL-terminated, as every text of a parsed value */
		argv[i] = json_text(json_item(body->argv, i)).ptr;
		must(!buf_putf(&text, "%s%s", i ? " " : "", argv[i]));
	}
	run_argv(e, r, body, buf_peek(&text), argv, env, cwd);
	buf_fini(&text);
	free(argv);
}

void command_run_body(struct execd *e, struct httpd_request *r,
		      const struct command_body *body)
{
	struct env *env = env_new();
	char *cwd CLEANUP_FREE = NULL;
	struct diag d = { 0 };
	int bad;

	bad = command_body_envs(body, env, &d);
	if (!bad && body->cwd.ptr)
		bad = command_cwd(env, body->cwd, &cwd, &d);
	if (bad)
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY, "%s", d.msg);
	else if (body->argv)
		run_words(e, r, body, env, cwd);
	else
		run_in_shell(e, r, body, env, cwd);
	(void)env_free(env);
}

void command_post(void *ctx, struct httpd_request *r)
{
	struct json *j CLEANUP_JSON = answer_body(r, false);
	struct command_body body;
	struct diag d = { 0 };

	if (!j)
		return;
	if (command_body_read(j, &body, &d)) {
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY, "%s", d.msg);
		return;
	}
	command_run_body(ctx, r, &body);
}

/* -- DELETE /command ------------------------------------------------------ */

void command_delete(void *ctx, struct httpd_request *r)
{
	struct execd *e = ctx;
	struct span id = httpd_query(r, "id");
	struct command *c;

	if (!id.len) {
		answer_error(r, 400, ANSWER_MISSING_QUERY,
			     "the query has no id, expected that of a command");
		return;
	}
	c = commands_find(e->commands, id);
	if (!c || c->state != COMMAND_RUNS) {
		answer_error(r, 500, ANSWER_RUNTIME_ERROR, "%s",
			     c ? "the command is not running"
			       : "there is no command with this id");
		return;
	}
	command_interrupt(c, r);
}

/* -- GET /command/status/{id} --------------------------------------------- */

static void put_time(struct json_out *o, const char *name, uint64_t wall_ms)
{
	char text[CLOCK_TEXT_SIZE];

	clock_text(wall_ms, text, sizeof(text));
	json_put_str(o, name, text);
}

void command_status_send(const struct command *c, struct httpd_request *r)
{
	struct buf body = BUF_INIT(6 * c->text_len + STATUS_OVERHEAD);
	bool running = c->state == COMMAND_RUNS;
	struct json_out o;

	json_start(&o, &body);
	json_open_object(&o, NULL);
	json_put_str(&o, "id", c->id);
	json_put_text(&o, "content", span_of(c->text, c->text_len));
	json_put_bool(&o, "running", running);
	if (running)
		json_put_null(&o, "exit_code");
	else
		json_put_i64(&o, "exit_code", c->exit_code);
	if (c->error[0])
		json_put_str(&o, "error", c->error);
	put_time(&o, "started_at", c->started_wall_ms);
	if (!running)
		put_time(&o, "finished_at", c->finished_wall_ms);
	json_close(&o);
	must(!json_done(&o));
	answer_json(r, 200, &body);
	buf_fini(&body);
}

static struct command *command_of_path(struct execd *e, struct httpd_request *r)
{
	return commands_find(e->commands, httpd_param(r, "id"));
}

void command_status(void *ctx, struct httpd_request *r)
{
	struct command *c = command_of_path(ctx, r);

	if (c)
		command_status_send(c, r);
	else
		answer_error(r, 404, ANSWER_CONTEXT_NOT_FOUND,
			     "there is no command with this id");
}

/* -- GET /command/{id}/logs ----------------------------------------------- */

void command_logs(void *ctx, struct httpd_request *r)
{
	struct command *c = command_of_path(ctx, r);
	struct span text = httpd_query(r, "cursor");
	uint64_t cursor = 0;

	if (!c || c->log < 0) {
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY, "%s",
			     !c ? "there is no command with this id"
			     : c->kind == COMMAND_BACKGROUND
				     ? "the log of this command is not kept "
				       "any more"
				     : "this command did not run in the "
				       "background, only such have a log");
		return;
	}
	if (text.len && !span_parse_u64(text, &cursor)) {
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY,
			     "cursor is \"%.*s\", expected a number of bytes",
			     (int)MIN(text.len, 64u), text.ptr);
		return;
	}
	command_log_send(r, "EXECD-COMMANDS-TAIL-CURSOR", c->log, cursor,
			 c->state == COMMAND_RUNS);
}
