/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - one execution of a command, from its request to its last event
 *
 * How it works: everything that can fail happens before the stream begins, so
 * it is answered as an ordinary error. on_exit() settles the status; then
 * command_settle() is called until the outputs have told all they have, each
 * time the stream has room, and ends the stream with the terminal event.
 */

#include "src/execd/command/command.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/execd/answer.h"
#include "src/execd/command/commands.h"
#include "src/execd/command/log.h"
#include "src/execd/event_stream.h"
#include "src/execd/execd.h"
#include "src/execd/process/env.h"

enum {
	INTERRUPT_MS = 3000, /* from SIGTERM to SIGKILL */
	LOOK_MS = 100,	     /* is the rest of its group still there? */
};

/* A DELETE that waits for the exit. */
struct interrupt {
	struct list link;
	struct httpd_request *request;
};

/* -- the end -------------------------------------------------------------- */

static void command_end_event(const struct command *c, struct event_end *e)
{
	char why[CHILD_LATE_SIZE];

	if (c->timed_out)
		event_end_timeout(e, c->timeout_ms, 0);
	else if (child_late_failure(&c->child, why))
		event_end_unstarted(e, why, 0);
	else
		event_end(e, c->child.status, c->duration_ms, 0);
}

/* All is told, or nobody is there to be told. */
static void command_over(struct command *c)
{
	struct event_end end = { 0 };

	if (c->stream) {
		command_end_event(c, &end);
		c->stream = event_stream_end(c->stream, &end.event);
	}
	output_fini(&c->out);
	output_fini(&c->err);
	c->state = COMMAND_OVER;
	commands_finished(c->owner, c);
	/* c may be gone */
}

/* May free c. */
static void command_settle(struct command *c)
{
	if (output_drain(&c->out) && output_drain(&c->err))
		command_over(c);
}

static void interrupts_answer(struct command *c)
{
	struct interrupt *i;

	while ((i = list_first(&c->interrupts, struct interrupt, link))) {
		list_remove(&i->link);
		answer_ok(i->request);
		free(i);
	}
}

static void command_note_end(struct command *c)
{
	struct event_end end = { 0 };

	c->finished_wall_ms = clock_wall_ms();
	c->duration_ms = clock_ms() - c->started_ms;
	c->exit_code = c->timed_out ? EVENT_TIMEOUT_CODE
				    : event_exit_code(c->child.status);
	command_end_event(c, &end);
	if (end.event.type == EVENT_ERROR)
		(void)snprintf(c->error, sizeof(c->error), "%s", end.line);
}

static void on_exit_of(struct child *child)
{
	struct command *c = container_of(child, struct command, child);

	timer_stop(&c->timeout);
	command_note_end(c);
	c->state = COMMAND_DRAINING;
	if (c->killer.due_ms) /* others of its group may hold out */
		timer_start(&c->killer, LOOK_MS);
	if (c->exited)
		c->exited(c, c->ctx);
	interrupts_answer(c);
	command_settle(c);
	/* c may be gone */
}

/* -- its client ----------------------------------------------------------- */

static void on_room(void *ctx)
{
	struct command *c = ctx;

	if (c->state == COMMAND_DRAINING) {
		command_settle(c);
		return; /* c may be gone */
	}
	output_go_on(&c->out);
	output_go_on(&c->err);
}

static void on_gone(void *ctx)
{
	struct command *c = ctx;

	c->stream = event_stream_end(c->stream, NULL);
	output_set_stream(&c->out, NULL);
	output_set_stream(&c->err, NULL);
	if (c->state == COMMAND_DRAINING)
		command_settle(c);
	/* c may be gone */
}

static const struct event_stream_ops stream_ops = {
	.room = on_room,
	.gone = on_gone,
};

/* -- signals -------------------------------------------------------------- */

static void on_timeout(struct timer *t)
{
	struct command *c = container_of(t, struct command, timeout);

	c->timed_out = true;
	command_kill(c);
}

/* The leader may be gone while others of the group live on. While one does, its
 * number is not given to anybody else. */
static void on_killer(struct timer *t)
{
	struct command *c = container_of(t, struct command, killer);

	if (c->child.exited && !child_group_lives(&c->child))
		return;
	if (clock_ms() >= c->kill_ms)
		child_signal(&c->child, SIGKILL, true);
	else
		timer_start(&c->killer, LOOK_MS);
}

void command_interrupt(struct command *c, struct httpd_request *r)
{
	struct interrupt *i;

	must(c->state == COMMAND_RUNS);

	if (r) {
		i = must_alloc(sizeof(*i));
		i->request = r;
		list_init(&i->link);
		list_push(&c->interrupts, &i->link);
	}
	child_signal(&c->child, SIGTERM, false);
	if (c->killer.due_ms)
		return;
	c->kill_ms = clock_ms() + INTERRUPT_MS;
	timer_start(&c->killer, INTERRUPT_MS);
}

void command_kill(struct command *c)
{
	child_signal(&c->child, SIGKILL, false);
}

/* -- the start ------------------------------------------------------------ */

static struct command *command_new(struct execd *e,
				   const struct command_start *start)
{
	struct command *c = must_alloc(sizeof(*c));

	list_init(&c->link);
	list_init(&c->interrupts);
	timer_init(&c->timeout, e->loop, on_timeout);
	timer_init(&c->killer, e->loop, on_killer);
	c->kind = start->kind;
	c->timeout_ms = start->timeout_ms;
	c->exited = start->exited;
	c->ctx = start->ctx;
	c->log = c->out.fd = c->err.fd = -1;
	c->text_len = start->text.len;
	c->text = must_alloc(start->text.len + 1);
	memcpy(c->text, start->text.ptr, start->text.len);
	return c;
}

void command_free(struct command *c)
{
	struct interrupt *i;

	timer_stop(&c->timeout);
	timer_stop(&c->killer);
	if (c->stream)
		c->stream = event_stream_end(c->stream, NULL);
	if (c->state == COMMAND_RUNS && c->owner && c->exited)
		c->exited(c, c->ctx);
	child_fini(&c->child);
	output_fini(&c->out);
	output_fini(&c->err);
	c->log = fd_close(c->log);
	while ((i = list_first(&c->interrupts, struct interrupt, link))) {
		list_remove(&i->link);
		answer_error(i->request, 500, ANSWER_RUNTIME_ERROR,
			     "the daemon is ending");
		free(i);
	}
	list_remove(&c->link);
	free(c->text);
	free(c);
}

/* The files the program will write to: its ends of pipes, or the log. */
struct ends {
	int out, err;
};

static int ends_open(struct execd *e, struct command *c, struct ends *ret,
		     struct diag *d)
{
	int r;

	*ret = (struct ends){ -1, -1 };
	if (c->kind == COMMAND_BACKGROUND) {
		c->log = command_log_open(d);
		return MIN(c->log, 0);
	}
	r = output_open(&c->out, e, EVENT_STDOUT, NULL, &ret->out);
	if (!r && c->kind == COMMAND_FOREGROUND)
		r = output_open(&c->err, e, EVENT_STDERR, NULL, &ret->err);
	if (r)
		(void)diag_set(d, 0, 0, "no pipe could be made: %s",
			       err_text(r));
	return r;
}

static int command_spawn(struct execd *e, struct command *c,
			 const struct command_start *start, struct diag *d)
{
	struct child_spec spec = {
		.argv = start->argv,
		.env = env_list(start->env),
		.cwd = start->cwd,
		.has_uid = start->has_uid,
		.has_gid = start->has_gid,
		.uid = start->uid,
		.gid = start->gid,
		.in = -1,
		.channel = start->channel,
		.channel_as = start->channel_as,
		.enter = start->enter,
		.enter_ctx = start->enter_ctx,
	};
	struct ends ends;
	int r;

	r = ends_open(e, c, &ends, d);
	if (!r) {
		spec.out = c->log >= 0 ? c->log : ends.out;
		spec.err = ends.err >= 0 ? ends.err : spec.out;
		c->started_ms = clock_ms();
		c->started_wall_ms = clock_wall_ms();
		c->child.on_exit = on_exit_of;
		r = child_start(e, &c->child, &spec, d);
	}
	(void)fd_close(ends.out);
	(void)fd_close(ends.err);
	return r;
}

/* Of a background command the stream is over when it has begun. */
static void stream_begin(struct execd *e, struct command *c,
			 struct httpd_request *r)
{
	const struct event done = { .type = EVENT_EXECUTION_COMPLETE };

	c->stream = event_stream_new(e, r, span_str(c->id), &stream_ops, c);
	if (c->kind == COMMAND_BACKGROUND) {
		c->stream = event_stream_end(c->stream, &done);
		return;
	}
	output_set_stream(&c->out, c->stream);
	output_set_stream(&c->err, c->stream);
}

/* failed tells on whose side it was. */
static struct command *command_make(struct execd *e,
				    const struct command_start *start,
				    enum child_stage *failed, struct diag *d)
{
	struct command *c;

	*failed = CHILD_STAGE_FORK;
	if (commands_is_full(e->commands)) {
		(void)diag_set(d, 0, 0,
			       "%d commands are running, which is all there "
			       "may be",
			       COMMANDS_RUNNING_MAX);
		return NULL;
	}
	c = command_new(e, start);
	if (command_spawn(e, c, start, d)) {
		*failed = c->child.failed;
		command_free(c);
		return NULL;
	}
	commands_add(e->commands, c);
	if (c->timeout_ms)
		timer_start(&c->timeout, c->timeout_ms);
	return c;
}

struct command *command_begin(struct execd *e,
			      const struct command_start *start, struct diag *d)
{
	enum child_stage failed;

	return command_make(e, start, &failed, d);
}

struct command *command_run(struct execd *e, struct httpd_request *r,
			    const struct command_start *start)
{
	enum child_stage failed;
	struct diag d = { 0 };
	struct command *c = command_make(e, start, &failed, &d);

	if (c)
		stream_begin(e, c, r);
	else if (failed == CHILD_STAGE_CWD)
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY, "%s", d.msg);
	else
		answer_error(r, 500, ANSWER_RUNTIME_ERROR, "%s", d.msg);
	return c;
}
