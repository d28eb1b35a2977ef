/* SPDX-License-Identifier: Apache-2.0 */
/* local.c - contexts on an interpreter that the image has
 *
 * How it works: the interpreter is a child with four descriptors: stdin is
 * /dev/null (of a shell: the channel, driver.sh tells why), stdout and stderr
 * are pipes read into events, and fd 3 is the private channel, a socket pair.
 * First the driver goes down the channel; when it runs it says "ready", and a
 * cell that waited meanwhile is asked for. What comes back are frames
 * (frame.h); those of an earlier run are dropped.
 *
 * Order: a driver flushes stdout and stderr before it writes a frame, so what
 * the pipes hold when a result or an end is met was printed before it and is
 * told first. When the client's stream is full meanwhile, the frame stays where
 * it is until there is room: nothing more is read, and in the end the cell
 * waits in its own print().
 *
 * The workload owns the process and may do anything to it. What is no frame, a
 * closed channel, an exit, a signal: each is the end of this process and of
 * this run, told as an error; the context lives on and its next run has a new
 * process, whose first event says that the state is lost.
 *
 * Invariant: alive means child, outputs and channel exist; only local_end()
 * ends them.
 */

#include "src/execd/code/local.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "src/base/err.h"
#include "src/base/log.h"
#include "src/execd/code/bundle.h"
#include "src/execd/code/cell.h"
#include "src/execd/code/frame.h"
#include "src/execd/code/language.h"
#include "src/execd/code/local_inside.h"
#include "src/execd/execd.h"
#include "src/io/stream.h"
#include "src/text/json.h"

enum { EXIT_WAIT_MS = 500 }; /* between the end of the channel and the exit */

static struct local *local_of(struct engine *e)
{
	return container_of(e, struct local, engine);
}

/* -- the end of a process ------------------------------------------------- */

static void local_end(struct local *l)
{
	if (!l->alive)
		return;
	l->alive = false;
	timer_stop(&l->exit_wait);
	local_interrupt_stop(l);
	child_signal(&l->child, SIGKILL, !l->exited);
	child_fini(&l->child);
	output_fini(&l->out);
	output_fini(&l->err);
	l->channel = stream_free(l->channel);
	buf_fini(&l->in);
	buf_fini(&l->request);
	l->engine.lost |= l->ready;
}

/* Kills it; the rest follows from its exit. */
static void local_kill(struct local *l, const char *why)
{
	if (!l->alive || l->exited || l->why[0])
		return;
	(void)snprintf(l->why, sizeof(l->why), "%s", why);
	log_info("code: the %.*s interpreter (process %d) was ended: it %s",
		 SPAN_FMT(l->language->name), (int)l->child.pid, why);
	child_signal(&l->child, SIGKILL, true);
}

static void tell_death(struct local *l)
{
	static const char lost[] = "; its state is lost, the next run starts "
				   "a fresh one";
	struct span name = l->language->name;
	int status = l->child.status;

	if (l->why[0])
		cell_die(l->engine.cell, "ContextDied",
			 "the %.*s interpreter %s%s", SPAN_FMT(name), l->why,
			 lost);
	else if (WIFSIGNALED(status))
		cell_die(l->engine.cell, "ContextDied",
			 "the %.*s interpreter was killed by signal %d%s",
			 SPAN_FMT(name), WTERMSIG(status), lost);
	else if (l->language->is_shell && l->ready)
		cell_exit(l->engine.cell, (unsigned)WEXITSTATUS(status));
	else
		cell_die(l->engine.cell, "ContextDied",
			 "the %.*s interpreter ended with exit status %d%s",
			 SPAN_FMT(name), WEXITSTATUS(status), lost);
}

/* Tells what was printed until now. False: the stream is full, .room continues.
 */
static bool catch_up(struct local *l)
{
	bool out = output_catch_up(&l->out), err = output_catch_up(&l->err);

	return out && err;
}

/* Everything it said has been heard. */
static void finish_exit(struct local *l)
{
	bool out = output_drain(&l->out), err = output_drain(&l->err);

	if (!out || !err)
		return;
	tell_death(l);
	local_end(l);
}

/* -- frames --------------------------------------------------------------- */

static void set_outputs(struct local *l, struct event_stream *s)
{
	output_set_stream(&l->out, s);
	output_set_stream(&l->err, s);
}

/* What the last run's threads still print belongs to no run. */
static void after_cell(struct local *l)
{
	l->begun = false;
	local_interrupt_stop(l);
	set_outputs(l, NULL);
}

static void on_ready(struct local *l)
{
	int r;

	if (l->ready)
		return;
	l->ready = true;
	r = stream_write(l->channel, buf_peek(&l->request));
	buf_fini(&l->request);
	if (r)
		local_kill(l, "did not take what it was told");
}

static void on_result(struct local *l, struct span payload)
{
	struct json *data = NULL;

	if (json_parse_within(payload, LOCAL_VALUES_MAX, &data, NULL) ||
	    json_kind(data) != JSON_KIND_OBJECT)
		local_kill(l, "told a result that is no JSON object");
	else
		cell_result(l->engine.cell, data);
	json_free(data);
}

static void on_error(struct local *l, struct span payload)
{
	struct json *content = NULL;
	struct failure f;

	if (json_parse_within(payload, LOCAL_VALUES_MAX, &content, NULL)) {
		local_kill(l, "told an error that is not JSON");
		return;
	}
	failure_read(content, &f);
	cell_status(l->engine.cell, SPAN("error"));
	cell_fail(l->engine.cell, &f);
	json_free(content);
	after_cell(l);
}

/* A frame of the run that is open; what was printed before is told. */
static void on_frame(struct local *l, const struct frame *f)
{
	uint64_t number = 0;

	switch (f->word) {
	case FRAME_BEGIN:
		l->begun = true;
		if (l->interrupt_due)
			local_interrupt_send(l);
		break;
	case FRAME_COUNT:
		if (span_parse_u64(f->payload, &number))
			cell_count(l->engine.cell, number);
		break;
	case FRAME_RESULT:
	case FRAME_SHOW:
		on_result(l, f->payload);
		break;
	case FRAME_ERROR:
		on_error(l, f->payload);
		break;
	case FRAME_EXIT:
		if (!span_parse_u64(f->payload, &number))
			number = 1;
		cell_exit(l->engine.cell, (unsigned)number & 0xff);
		after_cell(l);
		break;
	case FRAME_DONE:
		cell_done(l->engine.cell);
		after_cell(l);
		break;
	case FRAME_READY:
	case FRAME_NONE:
	case FRAME_WORD_NUM:
		break;
	}
}

static bool is_ordered(enum frame_word word)
{
	return word == FRAME_COUNT || word == FRAME_RESULT ||
	       word == FRAME_SHOW || word == FRAME_ERROR ||
	       word == FRAME_EXIT || word == FRAME_DONE;
}

/* Handles what is whole. False: it must wait for room. */
static bool take_frames(struct local *l)
{
	struct frame f;
	ssize_t len;

	while (!l->why[0] && (len = frame_parse(buf_peek(&l->in), &f))) {
		if (len < 0) {
			local_kill(l, "wrote what is no frame to its channel");
			break;
		}
		if (f.word == FRAME_READY) {
			on_ready(l);
		} else if (cell_is_open(l->engine.cell) && f.run == l->run) {
			if (is_ordered(f.word) && !catch_up(l))
				return false;
			on_frame(l, &f);
		}
		if (f.word == FRAME_SHOW &&
		    stream_write(l->channel, SPAN("ack\n")))
			local_kill(l, "did not take what it was told");
		buf_consume(&l->in, (size_t)len);
	}
	if (l->why[0])
		buf_clear(&l->in);
	if (!buf_len(&l->in))
		buf_fini(&l->in); /* a large one is not kept */
	return true;
}

enum heard {
	HEARD_ALL, /* all there is for now */
	HEARD_SOME,
	HEARD_END,
};

/* One turn's share: who writes without end is not the only one here. */
static enum heard read_channel(struct local *l)
{
	unsigned reads;
	ssize_t n;
	char *at;

	for (reads = 0; reads < LOCAL_TURN_READS; reads++) {
		if (buf_reserve(&l->in, LOCAL_READ_SIZE, &at))
			return HEARD_ALL; /* full: a frame is being taken */
		n = stream_read(l->channel, at, LOCAL_READ_SIZE);
		if (n == STREAM_AGAIN)
			return HEARD_ALL;
		if (n <= 0)
			return HEARD_END;
		buf_commit(&l->in, (size_t)n);
		if (!take_frames(l)) {
			l->held = true;
			return HEARD_ALL;
		}
	}
	return HEARD_SOME;
}

static void go_on(struct local *l)
{
	enum heard heard = HEARD_ALL;

	if (l->held && !take_frames(l))
		return;
	l->held = false;
	if (!l->channel_over)
		heard = read_channel(l);
	if (heard == HEARD_END) {
		l->channel_over = true;
		if (!l->exited)
			timer_start(&l->exit_wait, EXIT_WAIT_MS);
	}
	stream_want(l->channel,
		    l->held || l->channel_over ? 0 : STREAM_READABLE);
	/* its last words are heard, those of a child that goes on are not */
	if (l->exited && heard == HEARD_SOME &&
	    ++l->late_turns < LOCAL_LATE_TURNS)
		return;
	if (l->exited && !l->held)
		finish_exit(l);
}

static void on_channel(struct stream *s, void *ctx, unsigned events)
{
	(void)s;
	(void)events;
	go_on(ctx);
}

static void on_child_exit(struct child *c)
{
	struct local *l = container_of(c, struct local, child);

	l->exited = true;
	l->late_turns = 0;
	go_on(l); /* its last words */
}

/* The channel is closed. A shell's cell may have become another program
 * (exec), which ends as it likes; nothing else has a reason. */
static void on_exit_wait(struct timer *t)
{
	struct local *l = container_of(t, struct local, exit_wait);

	if (l->language->is_shell && cell_is_open(l->engine.cell))
		timer_start(t, EXIT_WAIT_MS);
	else
		local_kill(l, "closed its channel");
}

/* -- the engine ----------------------------------------------------------- */

static int local_prepare(struct engine *e, struct diag *d)
{
	struct local *l = local_of(e);
	int r;

	if (l->alive && (l->exited || l->why[0]))
		local_end(l);
	if (l->alive)
		return 0;
	l->child.on_exit = on_child_exit;
	r = local_start(l, d);
	if (r)
		return r;
	stream_set_owner(l->channel, on_channel, l);
	stream_want(l->channel, STREAM_READABLE);
	return 0;
}

static void local_execute(struct engine *e, struct span code)
{
	struct local *l = local_of(e);
	struct buf request = BUF_INIT(LOCAL_REQUEST_MAX);
	int r;

	l->begun = l->interrupt_due = false;
	(void)catch_up(l); /* what nobody asked for */
	set_outputs(l, e->cell->stream);
	r = language_request(&request, l->language, ++l->run, code);
	if (!r)
		r = l->ready ? stream_write(l->channel, buf_peek(&request))
			     : buf_put(&l->request, buf_peek(&request));
	buf_fini(&request);
	if (!r)
		return;
	cell_die(e->cell, "InvalidCode", "%s",
		 r == -EINVAL ? "the code holds a NUL, which no shell takes"
			      : err_text(r));
	after_cell(l);
}

static void local_interrupt(struct engine *e, bool hard)
{
	struct local *l = local_of(e);

	if (!l->alive)
		return;
	if (hard)
		local_kill(l, "was killed, an interrupt had not ended the run");
	else if (l->begun)
		local_interrupt_send(l);
	else
		l->interrupt_due = true; /* the signal would be lost, or kill */
}

static void local_room(struct engine *e)
{
	struct local *l = local_of(e);

	if (!l->alive)
		return;
	output_go_on(&l->out);
	output_go_on(&l->err);
	if (l->held || l->exited)
		go_on(l);
}

static struct engine *local_free(struct engine *e)
{
	struct local *l;

	if (!e)
		return NULL;
	l = local_of(e);
	local_end(l);
	free(l->cwd);
	free(l);
	return NULL;
}

static const struct engine_ops ops = {
	.prepare = local_prepare,
	.execute = local_execute,
	.interrupt = local_interrupt,
	.room = local_room,
	.free = local_free,
};

struct engine *local_new(struct execd *e, struct span language, const char *cwd,
			 struct cell *cell, const struct engine_events *events,
			 void *ctx)
{
	const struct language *row = language_find(language);
	struct local *l;

	if (!row)
		return NULL;
	l = must_alloc(sizeof(*l));
	l->engine = (struct engine){
		.ops = &ops, .events = events, .ctx = ctx, .cell = cell
	};
	l->execd = e;
	l->language = row;
	l->cwd = cwd ? must_strdup(cwd) : NULL;
	timer_init(&l->exit_wait, e->loop, on_exit_wait);
	local_interrupt_init(l);
	return &l->engine;
}
