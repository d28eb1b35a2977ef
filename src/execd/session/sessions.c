/* SPDX-License-Identifier: Apache-2.0 */
/* sessions.c - shells that remember their directory and environment
 *
 * How it works: the first run gets the environment that was there when the
 * session was made. At its end its shell writes its state (state.h) to a
 * nameless file in memory, which is read when the process has exited; from then
 * on a run begins with that, and nothing else is in its environment, so that
 * "unset" is remembered too. A run that is killed leaves the state as it was.
 */

#include "src/execd/session/sessions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/list.h"
#include "src/base/map.h"
#include "src/execd/answer.h"
#include "src/execd/command/body.h"
#include "src/execd/command/command.h"
#include "src/execd/event_stream.h"
#include "src/execd/execd.h"
#include "src/execd/id.h"
#include "src/execd/process/env.h"
#include "src/execd/process/shell.h"
#include "src/execd/session/state.h"
#include "src/text/json.h"

enum { LINES_OF_OURS_MAX = 4096 };

struct sessions {
	struct execd *execd;
	struct map by_id;
};

struct session {
	struct sessions *owner; /* NULL: deleted, its last runs are ending */
	char id[ID_SIZE];
	struct env *made;   /* the environment when it was made */
	struct env *untold; /* of later runs: what no shell tells of it */
	char *cwd;	    /* NULL: the daemon's */
	char *exports;	    /* NULL: no run has ended yet */
	struct list runs;
};

struct run {
	struct list link; /* session.runs */
	struct session *session;
	struct command *command; /* NULL: not started yet */
	int state;		 /* memfd */
	char mark[STATE_MARK_SIZE];
	char *cwd; /* for this run only; NULL: the session's */
};

/* -- a session ------------------------------------------------------------ */

static struct session *session_free(struct session *s)
{
	(void)env_free(s->made);
	(void)env_free(s->untold);
	free(s->cwd);
	free(s->exports);
	free(s);
	return NULL;
}

/* Nobody finds it any more; it is freed with its last run. */
static void session_delete(struct session *s)
{
	struct run *run;

	(void)map_take(&s->owner->by_id, span_str(s->id));
	s->owner = NULL;
	if (list_is_empty(&s->runs)) {
		(void)session_free(s);
		return;
	}
	list_for_each(it, &s->runs)
	{
		run = container_of(it, struct run, link);
		command_kill(run->command);
	}
}

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
		session_delete(s);
	map_fini(&t->by_id);
	free(t);
	return NULL;
}

/* -- POST /session -------------------------------------------------------- */

static void session_answer(const struct session *s, struct httpd_request *r)
{
	struct buf body = BUF_INIT(256);
	struct json_out o;

	json_start(&o, &body);
	json_open_object(&o, NULL);
	json_put_str(&o, "session_id", s->id);
	json_close(&o);
	must(!json_done(&o));
	answer_json(r, 200, &body);
	buf_fini(&body);
}

void session_post(void *ctx, struct httpd_request *r)
{
	struct sessions *t = ((struct execd *)ctx)->sessions;
	struct json *j CLEANUP_JSON = answer_body(r, true);
	struct session *s;
	struct diag d = { 0 };
	struct span cwd;
	int bad;

	if (!j)
		return;
	if (map_count(&t->by_id) >= SESSIONS_MAX) {
		answer_error(r, 500, ANSWER_RUNTIME_ERROR,
			     "there are %d sessions, which is all there may be",
			     SESSIONS_MAX);
		return;
	}
	s = must_alloc(sizeof(*s));
	list_init(&s->runs);
	s->made = env_new();
	bad = command_body_cwd(j, &cwd, &d);
	if (!bad && cwd.ptr)
		bad = command_cwd(s->made, cwd, &s->cwd, &d);
	if (bad) {
		(void)session_free(s);
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY, "%s", d.msg);
		return;
	}
	id_draw(s->id);
	s->owner = t;
	must(!map_set(&t->by_id, span_str(s->id), s));
	session_answer(s, r);
}

/* -- remembering ---------------------------------------------------------- */

static bool name_is_plain(struct span name)
{
	size_t i;
	char c;

	for (i = 0; i < name.len; i++) {
		c = span_lower_char(name.ptr[i]);
		if (c != '_' && !(c >= 'a' && c <= 'z') &&
		    !(i && c >= '0' && c <= '9'))
			return false;
	}
	return name.len > 0;
}

/* Entries whose names are none to a shell go past it. Functions do not: it
 * tells them. */
static struct env *env_untold(struct env *all)
{
	struct env *rest = env_new_empty();
	const char *const *at;
	struct span name;

	for (at = env_list(all); *at; at++) {
		name = span_of(*at, strcspn(*at, "="));
		if (!name_is_plain(name) &&
		    !span_starts(name, SPAN("BASH_FUNC_")))
			(void)!env_set(rest, name,
				       span_str(*at + name.len + 1));
	}
	return rest;
}

static char *text_copy(struct span s)
{
	char *copy = must_alloc(s.len + 1);

	memcpy(copy, s.ptr, s.len);
	return copy;
}

static void session_remember(struct session *s, const struct run *run,
			     const struct state *state)
{
	/* A directory that was given for the run alone is left again, unless
	 * the run itself went elsewhere. */
	if (!run->cwd || !span_eq(state->cwd, span_str(run->cwd))) {
		free(s->cwd);
		s->cwd = text_copy(state->cwd);
	}
	if (!s->untold)
		s->untold = env_untold(s->made);
	free(s->exports);
	s->exports = text_copy(state->exports);
}

static void say_too_large(const struct command *c)
{
	if (c->stream)
		event_stream_text(c->stream, EVENT_STDERR,
				  SPAN("execd: the environment is larger than "
				       "768 KiB and is not remembered"));
}

/* Reads what the shell told and remembers it. */
static void run_read_state(struct run *run, const struct command *c)
{
	struct buf bytes = BUF_INIT(2 * STATE_BYTES_MAX);
	struct state state;
	struct stat st;
	char *room;
	ssize_t n = 0;

	if (fstat(run->state, &st) || st.st_size <= 0)
		return;
	/* it is told twice at most */
	if (st.st_size <= (off_t)bytes.max &&
	    !buf_reserve(&bytes, (size_t)st.st_size, &room))
		n = pread(run->state, room, (size_t)st.st_size, 0);
	if (n > 0)
		buf_commit(&bytes, (size_t)n);
	if (n > 0 && state_read(buf_peek(&bytes), run->mark, &state)) {
		if (state.exports.len <= STATE_BYTES_MAX)
			session_remember(run->session, run, &state);
		else
			say_too_large(c);
	} else if (st.st_size > (off_t)bytes.max) {
		say_too_large(c);
	}
	buf_fini(&bytes);
}

/* -- POST /session/{id}/run ----------------------------------------------- */

static void run_free(struct run *run)
{
	struct session *s = run->session;

	list_remove(&run->link);
	(void)fd_close(run->state);
	free(run->cwd);
	free(run);
	if (!s->owner && list_is_empty(&s->runs))
		(void)session_free(s);
}

static void on_run_exited(struct command *c, void *ctx)
{
	struct run *run = ctx;

	if (c->child.exited)
		run_read_state(run, c);
	run_free(run);
}

/* Borrows from s and run for as long as both stand as they are. */
static struct shell_args *run_args(const struct session *s,
				   const struct run *run, const char *shell,
				   const struct state_way *way,
				   struct span command)
{
	struct buf before = BUF_INIT(LINES_OF_OURS_MAX);
	struct buf after = BUF_INIT(LINES_OF_OURS_MAX);
	struct shell_args *args;

	state_before_put(&before, way, run->mark);
	state_after_put(&after, way, run->mark);
	args = shell_args_new(shell, &(struct shell_texts){
					     .first = span_str(s->exports),
					     .before = buf_peek(&before),
					     .text = command,
					     .after = buf_peek(&after),
				     });
	buf_fini(&before);
	buf_fini(&after);
	return args;
}

static void run_start(struct execd *e, struct httpd_request *r, struct run *run,
		      const struct command_body *body)
{
	struct session *s = run->session;
	const char *cwd = run->cwd ? run->cwd : s->cwd;
	const char *shell = child_shell(e);
	struct env *env = s->exports ? s->untold : s->made;
	struct state_way way = { 0 };
	struct shell_args *args;

	if (!shell) {
		answer_error(r, 500, ANSWER_RUNTIME_ERROR,
			     "the image has no shell: found neither bash nor "
			     "sh");
		return;
	}
	way.bash = shell_is_bash(shell);
	way.proc = !access("/proc/self/fd", X_OK);
	/* a shell takes the path it is told for its own, links and all */
	if (cwd && cwd[0] == '/')
		(void)!env_set(env, SPAN("PWD"), span_str(cwd));
	args = run_args(s, run, shell, &way, body->command);
	run->command = command_run(
		e, r,
		&(struct command_start){
			.kind = COMMAND_SESSION,
			.text = body->command,
			.argv = shell_args_list(args),
			.env = env,
			.cwd = cwd,
			.timeout_ms = body->timeout_ms ? body->timeout_ms
						       : SESSION_TIMEOUT_MS,
			.channel = run->state,
			.channel_as = state_channel(&way),
			.exited = on_run_exited,
			.ctx = run,
		});
	(void)shell_args_free(args);
}

/* NULL: there is no memory file. */
static struct run *run_new(struct session *s)
{
	struct run *run;
	int fd = memfd_create("session", MFD_CLOEXEC);

	if (fd < 0)
		return NULL;
	run = must_alloc(sizeof(*run));
	run->session = s;
	run->state = fd;
	id_draw(run->mark);
	list_init(&run->link);
	list_push(&s->runs, &run->link);
	return run;
}

/* Below the session's directory unless it is absolute, and written as a shell
 * will tell it, so that the two can be compared. */
static int run_set_cwd(struct run *run, struct span text, struct diag *d)
{
	struct session *s = run->session;
	char *given CLEANUP_FREE = NULL;
	size_t len;
	int r;

	r = command_cwd(s->made, text, &given, d);
	if (r)
		return r;
	if (given[0] == '/' || !s->cwd) {
		run->cwd = take_ptr(given);
	} else {
		len = strlen(s->cwd) + strlen(given) + 2;
		run->cwd = must_alloc(len);
		(void)snprintf(run->cwd, len, "%s/%s", s->cwd, given);
	}
	if (run->cwd[0] == '/')
		state_clean_cwd(run->cwd);
	return 0;
}

static void session_run_body(struct execd *e, struct httpd_request *r,
			     struct session *s, const struct command_body *body)
{
	struct run *run = run_new(s);
	struct diag d = { 0 };

	if (!run) {
		answer_error(r, 500, ANSWER_RUNTIME_ERROR,
			     "no memory file could be made: %s",
			     err_text(errno));
		return;
	}
	if (body->cwd.ptr && run_set_cwd(run, body->cwd, &d))
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY, "%s", d.msg);
	else
		run_start(e, r, run, body);
	if (!run->command)
		run_free(run);
}

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
	if (command_body_read(j, &body, &d))
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY, "%s", d.msg);
	else
		session_run_body(ctx, r, s, &body);
}

/* -- DELETE /session/{id} ------------------------------------------------- */

void session_delete_id(void *ctx, struct httpd_request *r)
{
	struct session *s = session_of_path(ctx, r);

	if (!s) {
		answer_error(r, 404, ANSWER_CONTEXT_NOT_FOUND,
			     "there is no session with this id");
		return;
	}
	session_delete(s);
	answer_ok(r);
}
