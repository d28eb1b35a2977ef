/* SPDX-License-Identifier: Apache-2.0 */
/* code.c - POST and DELETE /code, and /code/context(s) (contract 5.2, 5.9) */

#include <stdlib.h>
#include <string.h>

#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/execd/answer.h"
#include "src/execd/code/contexts.h"
#include "src/execd/command/body.h"
#include "src/execd/command/command.h"
#include "src/execd/command/commands.h"
#include "src/execd/execd.h"
#include "src/httpd/httpd.h"
#include "src/text/json.h"

enum {
	ROW_MAX = 256, /* of a list: an id and a language as JSON */
	CWD_MAX = 4096,
};

/* A text member; false: answered. *ret is SPAN_NONE when it is absent. */
static bool text_member(struct httpd_request *r, const struct json *object,
			const char *where, const char *name, struct span *ret)
{
	struct diag d = { 0 };

	*ret = SPAN_NONE;
	if (json_kind(json_find(object, name)) == JSON_KIND_NULL ||
	    json_get_text(object, where, name, ret, &d) >= 0)
		return true;
	answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY, "%s", d.msg);
	return false;
}

static bool is_name(struct span s)
{
	size_t i;

	for (i = 0; i < s.len; i++)
		if (s.ptr[i] <= ' ' || s.ptr[i] > '~')
			return false;
	return s.len && s.len <= CONTEXT_LANGUAGE_MAX;
}

static bool check_language(struct httpd_request *r, struct span language)
{
	if (is_name(language))
		return true;
	answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY,
		     "language: expected the name of one, 1 to %d printable "
		     "characters",
		     CONTEXT_LANGUAGE_MAX);
	return false;
}

static bool is_command(struct span language)
{
	return !language.len || span_eq(language, SPAN("command"));
}

static void answer_unknown(struct httpd_request *r, struct span id)
{
	answer_error(r, 404, ANSWER_CONTEXT_NOT_FOUND, "context %.*s not found",
		     (int)MIN(id.len, 128), id.ptr);
}

/* -- running -------------------------------------------------------------- */

static void run_by_id(struct execd *e, struct httpd_request *r, struct span id,
		      struct span language, struct span code)
{
	struct context *c = contexts_find(e->contexts, id);

	if (!c) {
		answer_unknown(r, id);
		return;
	}
	if (language.len && !span_eq(language, span_str(c->language))) {
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY,
			     "context.language: context %s is of %s", c->id,
			     c->language);
		return;
	}
	context_run(c, r, code);
}

/* What has no language keeps no state: a command. */
static void run_command(struct execd *e, struct httpd_request *r,
			struct span code)
{
	const struct command_body body = { .command = code };

	if (memchr(code.ptr, '\0', code.len))
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY,
			     "code: found a NUL, which no command may hold");
	else
		command_run_body(e, r, &body);
}

static void run_asked(struct execd *e, struct httpd_request *r,
		      const struct json *body)
{
	struct span code, id, language;
	const struct json *context = NULL;
	struct diag d = { 0 };

	if (!text_member(r, body, "body", "code", &code))
		return;
	if (!code.len || code.len > CONTEXT_CODE_MAX) {
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY,
			     "code: found %zu bytes, expected 1 to %d of what "
			     "is to be run",
			     code.len, CONTEXT_CODE_MAX);
		return;
	}
	if (json_kind(json_find(body, "context")) != JSON_KIND_NULL &&
	    json_get_object(body, "body", "context", &context, &d) < 0) {
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY, "%s", d.msg);
		return;
	}
	if (!text_member(r, context, "context", "id", &id) ||
	    !text_member(r, context, "context", "language", &language))
		return;
	if (id.len)
		run_by_id(e, r, id, language, code);
	else if (is_command(language))
		run_command(e, r, code);
	else if (check_language(r, language))
		contexts_run_default(e->contexts, r, language, code);
}

void code_post(void *ctx, struct httpd_request *r)
{
	struct json *body = answer_body(r, false);

	if (!body)
		return;
	run_asked(ctx, r, body);
	json_free(body);
}

/* The id of the execution is that of its context; a command's is its own. */
void code_delete(void *ctx, struct httpd_request *r)
{
	struct execd *e = ctx;
	struct span id = httpd_query(r, "id");
	struct command *command;
	struct context *c;

	if (!id.len) {
		answer_error(r, 400, ANSWER_MISSING_QUERY,
			     "missing query parameter 'id'");
		return;
	}
	c = contexts_find(e->contexts, id);
	if (c) {
		context_interrupt(c);
		answer_ok(r);
		return;
	}
	command = commands_find(e->commands, id);
	if (!command)
		answer_unknown(r, id);
	else if (command->state == COMMAND_RUNS)
		command_interrupt(command, r);
	else
		answer_ok(r);
}

/* -- contexts ------------------------------------------------------------- */

void code_context_post(void *ctx, struct httpd_request *r)
{
	struct json *body = answer_body(r, false);
	struct span language, cwd;
	struct execd *e = ctx;

	if (!body)
		return;
	if (text_member(r, body, "body", "language", &language) &&
	    text_member(r, body, "body", "cwd", &cwd) &&
	    check_language(r, language)) {
		if (cwd.len > CWD_MAX ||
		    (cwd.len && memchr(cwd.ptr, '\0', cwd.len)))
			answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY,
				     "cwd: found %zu bytes, expected a path "
				     "of at most %d without NUL",
				     cwd.len, CWD_MAX);
		else if (is_command(language))
			answer_error(r, 500, ANSWER_RUNTIME_ERROR,
				     "unsupported language context operation: "
				     "command: it keeps no state");
		else
			contexts_create(e->contexts, r, language, cwd);
	}
	json_free(body);
}

static void put_context(struct json_out *o, const struct context *c)
{
	json_open_object(o, NULL);
	json_put_str(o, "id", c->id);
	json_put_str(o, "language", c->language);
	json_close(o);
}

void code_contexts_get(void *ctx, struct httpd_request *r)
{
	struct execd *e = ctx;
	struct span language = httpd_query(r, "language");
	struct buf text = BUF_INIT(CONTEXTS_MAX * ROW_MAX);
	const struct context *c;
	struct json_out o;
	size_t at = 0;

	json_start(&o, &text);
	json_open_array(&o, NULL);
	while ((c = map_next(&e->contexts->by_id, &at, NULL)))
		if (c->state != CONTEXT_CREATING &&
		    (!language.len || span_eq(language, span_str(c->language))))
			put_context(&o, c);
	json_close(&o);
	must(!json_done(&o));
	answer_json(r, 200, &text);
	buf_fini(&text);
}

void code_contexts_delete(void *ctx, struct httpd_request *r)
{
	struct execd *e = ctx;
	struct span language = httpd_query(r, "language");
	struct context *c;
	size_t at = 0;

	if (!language.len) {
		answer_error(r, 400, ANSWER_MISSING_QUERY,
			     "missing query parameter 'language'");
		return;
	}
	while ((c = map_next(&e->contexts->by_id, &at, NULL)))
		if (span_eq(language, span_str(c->language)))
			context_delete(c);
	answer_ok(r);
}

void code_context_get(void *ctx, struct httpd_request *r)
{
	struct execd *e = ctx;
	struct span id = httpd_param(r, "id");
	const struct context *c = contexts_find(e->contexts, id);
	struct buf text = BUF_INIT(ROW_MAX);
	struct json_out o;

	if (!c) {
		answer_unknown(r, id);
		return;
	}
	json_start(&o, &text);
	put_context(&o, c);
	must(!json_done(&o));
	answer_json(r, 200, &text);
	buf_fini(&text);
}

void code_context_delete(void *ctx, struct httpd_request *r)
{
	struct execd *e = ctx;
	struct span id = httpd_param(r, "id");
	struct context *c = contexts_find(e->contexts, id);

	if (!c) {
		answer_unknown(r, id);
		return;
	}
	context_delete(c);
	answer_ok(r);
}
