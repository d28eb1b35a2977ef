/* SPDX-License-Identifier: Apache-2.0 */
/* terminals.c - the table of terminals, and the requests about them */

#include "src/execd/pty/terminals.h"

#include <errno.h>
#include <sys/stat.h>

#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/base/map.h"
#include "src/execd/answer.h"
#include "src/execd/command/command.h"
#include "src/execd/execd.h"
#include "src/execd/process/env.h"
#include "src/execd/pty/attachment.h"
#include "src/execd/websocket.h"
#include "src/text/json.h"

enum { ANSWER_BYTES = 512 };

struct terminals {
	struct execd *execd;
	struct list all; /* oldest first */
	struct map by_id;
};

/* -- the table ------------------------------------------------------------- */

struct terminals *terminals_new(struct execd *e)
{
	struct terminals *all = must_alloc(sizeof(*all));

	all->execd = e;
	list_init(&all->all);
	map_init(&all->by_id);
	return all;
}

static void terminals_remove(struct terminals *all, struct terminal *t)
{
	(void)map_take(&all->by_id, span_str(t->id));
	(void)terminal_free(t);
}

struct terminals *terminals_free(struct terminals *all)
{
	if (!all)
		return NULL;
	list_for_each(it, &all->all)
		terminals_remove(all, container_of(it, struct terminal, link));
	map_fini(&all->by_id);
	free(all);
	return NULL;
}

/* False: each of them is in use. */
static bool terminals_make_room(struct terminals *all)
{
	struct terminal *t;

	if (map_count(&all->by_id) < TERMINALS_MAX)
		return true;
	list_for_each(it, &all->all)
	{
		t = container_of(it, struct terminal, link);
		if (t->running || !list_is_empty(&t->attachments))
			continue;
		log_info("forgot terminal %s, the oldest that was over", t->id);
		terminals_remove(all, t);
		return true;
	}
	return false;
}

/* NULL: answered with 404. */
static struct terminal *terminals_find(struct execd *e, struct httpd_request *r)
{
	const struct span id = httpd_param(r, "id");
	struct terminal *t = map_find(&e->terminals->by_id, id);
	char shown[80];

	if (!t)
		answer_error(r, 404, ANSWER_CONTEXT_NOT_FOUND,
			     "pty session %s not found",
			     log_escape(id, shown, sizeof(shown)));
	return t;
}

/* -- POST /pty ------------------------------------------------------------- */

/* The directory of the program, made when it is missing. 0 or -errno. */
static int pty_make_directory(char *path)
{
	char *slash = path;

	while ((slash = strchr(slash + 1, '/'))) {
		*slash = 0;
		(void)mkdir(path, 0777); /* an error shows at the last one */
		*slash = '/';
	}
	return mkdir(path, 0777) && errno != EEXIST ? -errno : 0;
}

/* *ret is NULL without one. False: answered. Free *ret. */
static bool pty_read_cwd(struct httpd_request *r, struct span cwd, char **ret)
{
	struct diag d = { 0 };
	struct env *env;
	int e;

	if (!cwd.len)
		return true;
	env = env_new();
	e = command_cwd(env, cwd, ret, &d);
	(void)env_free(env);
	if (e) {
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY, "%s", d.msg);
		return false;
	}
	e = pty_make_directory(*ret);
	if (e) {
		answer_error(r, 500, ANSWER_RUNTIME_ERROR,
			     "the working directory could not be made: %s",
			     err_text(e));
		return false;
	}
	return true;
}

/* A member that is a text, or absent, or null. False: answered. */
static bool pty_read_text(struct httpd_request *r, const struct json *body,
			  const char *name, struct span *ret)
{
	const struct json *j = json_find(body, name);
	const enum json_kind kind = json_kind(j);

	*ret = SPAN("");
	if (kind == JSON_KIND_NONE || kind == JSON_KIND_NULL)
		return true;
	*ret = json_text(j);
	if (kind == JSON_KIND_STRING && !memchr(ret->ptr, 0, ret->len))
		return true;
	answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY,
		     "%s is %s; a string without NUL is needed", name,
		     json_kind_name(kind));
	return false;
}

static void pty_create(struct execd *e, struct httpd_request *r,
		       struct span cwd, struct span command)
{
	struct buf text = BUF_INIT(ANSWER_BYTES);
	struct terminal *t;
	struct json_out o;

	if (!terminals_make_room(e->terminals)) {
		answer_error(r, 429, ANSWER_RUNTIME_ERROR,
			     "there are %d terminals in use; no more are "
			     "allowed",
			     TERMINALS_MAX);
		return;
	}
	t = terminal_new(e, cwd, command);
	list_push(&e->terminals->all, &t->link);
	must(!map_set(&e->terminals->by_id, span_str(t->id), t));

	json_start(&o, &text);
	json_open_object(&o, NULL);
	json_put_str(&o, "session_id", t->id);
	json_close(&o);
	must(json_done(&o) == 0);
	answer_json(r, 201, &text);
	buf_fini(&text);
}

void pty_post(void *ctx, struct httpd_request *r)
{
	struct json *body CLEANUP_JSON = answer_body(r, true);
	struct span cwd, command;
	char *path CLEANUP_FREE = NULL;

	if (!body || !pty_read_text(r, body, "cwd", &cwd) ||
	    !pty_read_text(r, body, "command", &command))
		return;
	if (command.len > TERMINAL_COMMAND_MAX) {
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY,
			     "command has %zu bytes, expected at most %d",
			     command.len, TERMINAL_COMMAND_MAX);
		return;
	}
	if (!pty_read_cwd(r, cwd, &path))
		return;
	pty_create(ctx, r, span_str(path), command);
}

/* -- GET and DELETE /pty/{id} ---------------------------------------------- */

void pty_get(void *ctx, struct httpd_request *r)
{
	const struct terminal *t = terminals_find(ctx, r);
	struct buf text = BUF_INIT(ANSWER_BYTES);
	struct json_out o;

	if (!t)
		return;
	json_start(&o, &text);
	json_open_object(&o, NULL);
	json_put_str(&o, "session_id", t->id);
	json_put_bool(&o, "running", t->running);
	json_put_u64(&o, "output_offset", t->ring.end);
	json_close(&o);
	must(json_done(&o) == 0);
	answer_json(r, 200, &text);
	buf_fini(&text);
}

void pty_delete(void *ctx, struct httpd_request *r)
{
	struct execd *e = ctx;
	struct terminal *t = terminals_find(e, r);

	if (!t)
		return;
	terminals_remove(e->terminals, t);
	answer_ok(r);
}

/* -- GET /pty/{id}/ws ------------------------------------------------------ */

static bool pty_is_one(struct httpd_request *r, const char *name)
{
	return span_eq(httpd_query(r, name), SPAN("1"));
}

/* May this client attach now? False: answered. */
static bool pty_may_attach(struct httpd_request *r, const struct terminal *t,
			   const struct attachment_wish *wish)
{
	if (wish->viewer && !t->running) {
		httpd_reply_error(r, 409, "VIEWER_REQUIRES_RUNNING_SESSION",
				  "pty session %s does not run: a viewer can "
				  "only join a holder",
				  t->id);
		return false;
	}
	if (wish->viewer && t->viewer_count >= TERMINAL_VIEWERS_MAX) {
		httpd_reply_error(r, 429, "RUNTIME_ERROR",
				  "pty session %s has %u viewers; no more are "
				  "allowed",
				  t->id, t->viewer_count);
		return false;
	}
	if (!wish->viewer && t->holder && !pty_is_one(r, "takeover")) {
		httpd_reply_error(r, 409, "ALREADY_CONNECTED",
				  "another client is connected to pty session "
				  "%s; takeover=1 takes its place, "
				  "mode=viewer looks on",
				  t->id);
		return false;
	}
	return true;
}

void pty_ws(void *ctx, struct httpd_request *r)
{
	struct terminal *t = terminals_find(ctx, r);
	struct attachment_wish wish = { 0 };

	if (!t || !websocket_check(r))
		return;
	wish.viewer = span_eq(httpd_query(r, "mode"), SPAN("viewer"));
	wish.pty = !span_eq(httpd_query(r, "pty"), SPAN("0"));
	(void)span_parse_u64(httpd_query(r, "since"), &wish.since);
	if (pty_may_attach(r, t, &wish))
		attachment_new(t, r, &wish);
}
