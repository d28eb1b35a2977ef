/* SPDX-License-Identifier: Apache-2.0 */
/* session.c - what a shell remembers between its runs, and the runs
 *
 * How it works: the first run gets the environment that was there when the
 * session was made. At its end its shell writes its state (state.h) to a
 * nameless file in memory, which is read when the process has exited; from then
 * on a run begins with that, and nothing else is in its environment, so that
 * "unset" is remembered too. A run that is killed leaves the state as it was.
 */

#include "src/execd/session/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/buf.h"
#include "src/base/chars.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/list.h"
#include "src/execd/answer.h"
#include "src/execd/command/command.h"
#include "src/execd/event_stream.h"
#include "src/execd/execd.h"
#include "src/execd/id.h"
#include "src/execd/process/env.h"
#include "src/execd/process/shell.h"
#include "src/execd/session/state.h"
#include "src/text/json.h"

enum { LINES_OF_OURS_MAX = 4096, ENVS_MAX = 256 * 1024 };

struct session {
	bool ends;	    /* it is over; its last runs are ending */
	struct env *made;   /* the environment when it was made */
	struct env *untold; /* of later runs: what no shell tells of it */
	char *cwd;	    /* NULL: the daemon's */
	char *exports;	    /* NULL: no run has ended yet */
	struct list runs;
	int (*enter)(void *ctx, int report);
	void (*ended)(void *ctx);
	void *ctx;
};

struct run {
	struct list link; /* session.runs */
	struct session *session;
	struct command *command; /* NULL: not started yet */
	int state;		 /* memfd */
	bool forgets;		 /* it has variables of its own */
	char mark[STATE_MARK_SIZE];
	char *cwd; /* for this run only; NULL: the session's */
};

/* -- a session ------------------------------------------------------------ */

static void session_free(struct session *s)
{
	(void)env_free(s->made);
	(void)env_free(s->untold);
	free(s->cwd);
	free(s->exports);
	free(s);
}

struct session *session_new(struct env *made, char *cwd)
{
	struct session *s = must_alloc(sizeof(*s));

	list_init(&s->runs);
	s->made = made;
	s->cwd = cwd;
	return s;
}

void session_set_place(struct session *s, int (*enter)(void *ctx, int report),
		       void (*ended)(void *ctx), void *ctx)
{
	s->enter = enter;
	s->ended = ended;
	s->ctx = ctx;
}

const struct env *session_env(const struct session *s)
{
	return s->made;
}

void session_end(struct session *s)
{
	struct run *run;

	s->ends = true;
	if (list_is_empty(&s->runs)) {
		session_free(s);
		return;
	}
	list_for_each(it, &s->runs)
	{
		run = container_of(it, struct run, link);
		command_kill(run->command);
	}
}

/* -- remembering ---------------------------------------------------------- */

static bool name_is_plain(struct span name)
{
	size_t i;
	char c;

	for (i = 0; i < name.len; i++) {
		c = name.ptr[i];
		if (c != '_' && !char_is_letter(c) && !(i && char_is_digit(c)))
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

	if (run->forgets || fstat(run->state, &st) || st.st_size <= 0)
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

/* -- a run ---------------------------------------------------------------- */

static void run_free(struct run *run)
{
	struct session *s = run->session;

	list_remove(&run->link);
	(void)fd_close(run->state);
	free(run->cwd);
	free(run);
	if (s->ends && list_is_empty(&s->runs))
		session_free(s);
}

static void on_run_exited(struct command *c, void *ctx)
{
	struct run *run = ctx;
	struct session *s = run->session;

	if (c->child.exited)
		run_read_state(run, c);
	if (s->ended && !s->ends)
		s->ended(s->ctx);
	run_free(run);
}

/* Borrows its texts. */
static struct shell_args *run_args(const struct run *run, const char *shell,
				   const struct state_way *way,
				   struct span first, struct span command)
{
	struct buf before = BUF_INIT(LINES_OF_OURS_MAX);
	struct buf after = BUF_INIT(LINES_OF_OURS_MAX);
	struct shell_args *args;

	state_before_put(&before, way, run->mark);
	state_after_put(&after, way, run->mark);
	args = shell_args_new(shell, &(struct shell_texts){
					     .first = first,
					     .before = buf_peek(&before),
					     .text = command,
					     .after = buf_peek(&after),
				     });
	buf_fini(&before);
	buf_fini(&after);
	return args;
}

/* 'value', as any shell reads it. */
static int put_quoted(struct buf *to, struct span value)
{
	size_t run;
	int r;

	r = buf_put_str(to, "'");
	while (!r && value.len) {
		run = span_find(value, '\'');
		r = buf_put(to, span_of(value.ptr, run));
		if (!r && run < value.len)
			r = buf_put_str(to, "'\\''");
		value = span_from(value, run + 1);
	}
	return r ? r : buf_put_str(to, "'\n");
}

static int put_envs(struct buf *to, const struct json *envs, struct diag *d)
{
	const struct json *v;
	struct span name, text;
	void *cursor = NULL;
	int r = 0;

	while (!r && (v = json_next(envs, &cursor, &name))) {
		text = json_text(v);
		if (!name_is_plain(name) || !text.ptr || span_has(text, '\0'))
			return diag_set(d, 0, 0,
					"envs has \"%.*s\", expected names of "
					"variables with texts",
					(int)MIN(name.len, 64u), name.ptr);
		r = buf_putf(to, "export %.*s=", SPAN_FMT(name));
		if (!r)
			r = put_quoted(to, text);
	}
	return r ? diag_set(d, 0, 0, "envs is longer than %d bytes", ENVS_MAX)
		 : 0;
}

/* What is evaluated first: what is remembered, then the run's own. */
static int first_put(struct buf *to, const struct session *s,
		     const struct session_run *what, struct diag *d)
{
	int r = s->exports ? buf_put_str(to, s->exports) : 0;

	if (!r && s->exports)
		r = buf_put_str(to, "\n");
	if (r)
		return diag_set(d, 0, 0, "there is no memory for the run");
	return what->envs ? put_envs(to, what->envs, d) : 0;
}

/* The command, started with a client or without one. */
static struct command *run_command(struct execd *e, struct httpd_request *r,
				   const struct command_start *start,
				   struct diag *d)
{
	return r ? command_run(e, r, start) : command_begin(e, start, d);
}

static struct command *run_start_first(struct execd *e, struct httpd_request *r,
				       struct run *run,
				       const struct session_run *what,
				       struct span first, struct diag *d)
{
	struct session *s = run->session;
	const char *cwd = run->cwd ? run->cwd : s->cwd;
	const char *shell = child_shell(e);
	struct env *env = s->exports ? s->untold : s->made;
	struct state_way way = { 0 };
	struct shell_args *args;
	struct command *c;

	if (!shell) {
		(void)diag_set(d, 0, 0,
			       "the image has no shell: found neither bash nor "
			       "sh");
		return NULL;
	}
	way.bash = shell_is_bash(shell);
	way.proc = !access("/proc/self/fd", X_OK);
	/* a shell takes the path it is told for its own, links and all */
	if (cwd && cwd[0] == '/')
		(void)!env_set(env, SPAN("PWD"), span_str(cwd));
	args = run_args(run, shell, &way, first, what->text);
	c = run_command(
		e, r,
		&(struct command_start){
			.kind = r ? COMMAND_SESSION : COMMAND_BACKGROUND,
			.text = what->text,
			.argv = shell_args_list(args),
			.env = env,
			.cwd = cwd,
			.timeout_ms = what->timeout_ms,
			.channel = run->state,
			.channel_as = state_channel(&way),
			.enter = s->enter,
			.enter_ctx = s->ctx,
			.exited = on_run_exited,
			.ctx = run,
		},
		d);
	(void)shell_args_free(args);
	return c;
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

/* NULL: it did not start; r, if any, is answered unless d has a sentence. */
static struct command *run_any(struct execd *e, struct httpd_request *r,
			       struct session *s,
			       const struct session_run *what, bool *ret_bad,
			       struct diag *d)
{
	struct buf first CLEANUP(buf_fini) =
		BUF_INIT(STATE_BYTES_MAX + 2 * ENVS_MAX);
	struct run *run = run_new(s);

	*ret_bad = false;
	if (!run) {
		(void)diag_set(d, 0, 0, "no memory file could be made: %s",
			       err_text(errno));
		return NULL;
	}
	run->forgets = what->envs && json_count(what->envs);
	*ret_bad = (what->cwd.ptr && run_set_cwd(run, what->cwd, d)) ||
		   first_put(&first, s, what, d);
	if (!*ret_bad)
		run->command =
			run_start_first(e, r, run, what, buf_peek(&first), d);
	if (run->command)
		return run->command;
	run_free(run);
	return NULL;
}

bool session_start(struct execd *e, struct httpd_request *r, struct session *s,
		   const struct session_run *what)
{
	struct diag d = { 0 };
	bool bad;

	if (run_any(e, r, s, what, &bad, &d))
		return true;
	if (diag_is_set(&d))
		answer_error(r, bad ? 400 : 500,
			     bad ? ANSWER_INVALID_REQUEST_BODY
				 : ANSWER_RUNTIME_ERROR,
			     "%s", d.msg);
	return false;
}

struct command *session_begin(struct execd *e, struct session *s,
			      const struct session_run *what, struct diag *d)
{
	bool bad;

	return run_any(e, NULL, s, what, &bad, d);
}
