/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.c - contexts on kernels of a Jupyter server
 *
 * How it works. kernel_steps.c brings the kernel and the connection. A run is
 * one execute_request; it is over when both its reply and "idle" have come. The
 * server keeps the messages of a session that lost its connection, so a run
 * whose connection breaks connects again, with the same session, and goes on.
 * Afterwards the kernel is asked whether it still works: when it is idle and no
 * message ends the run, its end was lost.
 *
 * A kernel that died (the server tells, and starts another one in its place) or
 * is gone (404) has lost its state: engine.lost.
 */

#include "src/execd/code/jupyter/kernel.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/base/addr.h"
#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/execd/code/bundle.h"
#include "src/execd/code/cell.h"
#include "src/execd/code/jupyter/kernel_inside.h"
#include "src/execd/code/jupyter/message.h"
#include "src/execd/code/jupyter/server.h"
#include "src/execd/execd.h"
#include "src/execd/websocket.h"
#include "src/io/loop.h"
#include "src/io/stream.h"
#include "src/text/json.h"

enum {
	RECONNECTS_MAX = 5, /* of one run */
	REQUEST_MAX = 8 * 1024 * 1024,
};

static struct kernel *kernel_of(struct engine *e)
{
	return container_of(e, struct kernel, engine);
}

/* -- who waits for it --------------------------------------------------- */

/* May free k. */
void kernel_prepared(struct kernel *k, int error, const char *why)
{
	bool due = k->preparing;

	k->preparing = false;
	if (due)
		k->engine.events->prepared(k->engine.ctx, error, why);
}

/* The run cannot be followed any more. */
void kernel_run_lost(struct kernel *k, const char *why)
{
	cell_die(k->engine.cell, "ContextLost", "%s", why);
}

/* -- what the kernel says ------------------------------------------------- */

static void drop_error(struct kernel *k)
{
	if (k->has_error)
		message_fini(&k->error);
	k->has_error = false;
}

static void run_over(struct kernel *k)
{
	struct failure f;

	if (k->has_error) {
		failure_read(k->error.content, &f);
		cell_status(k->engine.cell, SPAN("error"));
		cell_fail(k->engine.cell, &f);
	} else {
		cell_done(k->engine.cell);
	}
	drop_error(k);
}

/* The kernel itself ended, and what it knew with it. */
static void on_restart(struct kernel *k)
{
	k->engine.lost = true;
	cell_die(k->engine.cell, "ContextDied",
		 "the %.*s kernel died; its state is lost, the next run starts "
		 "afresh",
		 SPAN_FMT(k->language));
	drop_error(k);
}

/* True: m was kept. */
static bool on_run_message(struct kernel *k, const struct message *m)
{
	struct cell *c = k->engine.cell;

	switch (m->kind) {
	case MESSAGE_STREAM:
		cell_text(c, m->is_stderr, m->text);
		return false;
	case MESSAGE_RESULT:
		cell_count(c, m->count);
		cell_result(c, json_find(m->content, "data"));
		return false;
	case MESSAGE_REPLY:
		cell_count(c, m->count);
		k->replied = true;
		break;
	case MESSAGE_ERROR:
		break;
	case MESSAGE_IDLE:
		k->idle = true;
		return false;
	case MESSAGE_BUSY:
	case MESSAGE_RESTART:
	case MESSAGE_OTHER:
		return false;
	}
	if ((m->kind == MESSAGE_REPLY && !m->failed) || k->has_error)
		return false;
	k->error = *m;
	k->has_error = true;
	return true;
}

static void on_message(void *ctx, enum ws_opcode opcode, struct span bytes,
		       bool last)
{
	struct kernel *k = ctx;
	struct message m;

	(void)last; /* messages come whole */
	if (opcode != WS_TEXT ||
	    message_parse(bytes,
			  cell_is_open(k->engine.cell) ? span_str(k->request_id)
						       : SPAN_NONE,
			  &m))
		return;
	if (m.kind == MESSAGE_RESTART)
		on_restart(k);
	if (m.kind != MESSAGE_OTHER) {
		k->began = true;
		k->idle_checks = 0;
	}
	if (!cell_is_open(k->engine.cell) || !on_run_message(k, &m))
		message_fini(&m);
	if (!cell_is_open(k->engine.cell))
		return;
	if (k->replied && k->idle)
		run_over(k);
	else if (k->replied || k->idle)
		timer_start(&k->check, KERNEL_SETTLE_MS);
	if (cell_is_full(k->engine.cell))
		websocket_hold(k->socket, true);
}

/* -- the connection ------------------------------------------------------- */

static void on_open(void *ctx)
{
	struct kernel *k = ctx;

	k->phase = KERNEL_READY;
	if (cell_is_open(k->engine.cell))
		timer_start(&k->check, KERNEL_SETTLE_MS);
	kernel_prepared(k, 0, NULL);
}

static void on_closed(void *ctx, unsigned code, const char *why)
{
	struct kernel *k = ctx;
	char text[KERNEL_WHY_MAX];

	k->socket = NULL;
	(void)snprintf(text, sizeof(text),
		       "the connection to the kernel: %s (code %u)", why, code);
	if (k->phase == KERNEL_CONNECT) {
		k->phase = KERNEL_CHECK; /* is it still there? */
		kernel_step_failed(k, text);
		return;
	}
	k->phase = KERNEL_APART;
	timer_stop(&k->check);
	if (!cell_is_open(k->engine.cell))
		return;
	if (code == WEBSOCKET_TOO_BIG || k->reconnects++ >= RECONNECTS_MAX) {
		kernel_run_lost(k, code == WEBSOCKET_TOO_BIG
					   ? "the kernel sent a message of "
					     "more than 16 MiB"
					   : text);
		return;
	}
	log_info("code: %s; connects again", text);
	kernel_be_patient(k);
	kernel_step(k, KERNEL_CHECK);
}

const struct websocket_ops kernel_socket_ops = {
	.open = on_open,
	.message = on_message,
	.closed = on_closed,
};

/* -- does it still work? ------------------------------------------------- */

static void run_gone(struct kernel *k)
{
	kernel_forget(k);
	k->socket = websocket_close(k->socket, WEBSOCKET_NORMAL, "");
	kernel_run_lost(k, "the kernel is gone from the Jupyter server; its "
			   "state is lost, the next run starts afresh");
}

/* It is idle. One that had begun and says nothing more has lost its last
 * messages, or they are still under way. */
static void run_is_idle(struct kernel *k)
{
	k->idle_checks++;
	if (k->replied || k->idle)
		run_over(k);
	else if (k->began && k->idle_checks > 1)
		kernel_run_lost(k, "the connection to the kernel was lost, "
				   "and with it how the run ended");
}

static void on_checked(void *ctx, unsigned status, struct span text)
{
	struct kernel *k = ctx;
	struct json *j = NULL;

	k->call = NULL;
	if (!cell_is_open(k->engine.cell))
		return;
	if (status == 404)
		run_gone(k);
	else if (status == 200 && !json_parse(text, &j, NULL) &&
		 span_eq(json_text(json_find(j, "execution_state")),
			 SPAN("idle")))
		run_is_idle(k);
	else
		k->idle_checks = 0;
	json_free(j);
	if (cell_is_open(k->engine.cell))
		timer_start(&k->check, KERNEL_CHECK_MS);
}

static void on_check(struct timer *t)
{
	struct kernel *k = container_of(t, struct kernel, check);
	char path[KERNEL_PATH_MAX];

	if (!cell_is_open(k->engine.cell) || k->phase != KERNEL_READY)
		return;
	(void)snprintf(path, sizeof(path), "/api/kernels/%s", k->id);
	k->call =
		jupyter_call(k->jupyter, "GET", path, SPAN_NONE, on_checked, k);
}

/* -- the engine ----------------------------------------------------------- */

static int kernel_prepare(struct engine *e, struct diag *d)
{
	struct kernel *k = kernel_of(e);
	struct addr at;
	int r;

	if (k->phase == KERNEL_READY && k->socket)
		return 0;
	r = jupyter_resolve(k->jupyter, &at, d);
	if (r)
		return r; /* waiting makes it no better */
	k->call = jupyter_call_cancel(k->call);
	k->preparing = true;
	kernel_be_patient(k);
	kernel_step(k, k->id[0] ? KERNEL_CHECK : KERNEL_SPECS);
	return ENGINE_E_LATER;
}

static void kernel_execute(struct engine *e, struct span code)
{
	struct kernel *k = kernel_of(e);
	struct buf text = BUF_INIT(REQUEST_MAX);
	int r;

	k->replied = k->idle = k->began = false;
	k->reconnects = k->idle_checks = 0;
	timer_start(&k->check, KERNEL_SETTLE_MS);
	(void)snprintf(k->request_id, sizeof(k->request_id), "%s-%llu",
		       k->session, (unsigned long long)++k->request);
	r = message_execute(&text, span_str(k->request_id),
			    span_str(k->session), code);
	if (!r)
		r = websocket_send(k->socket, WS_TEXT, buf_peek(&text));
	buf_fini(&text);
	if (r)
		kernel_run_lost(k, err_text(r));
}

static void kernel_interrupt(struct engine *e, bool hard)
{
	struct kernel *k = kernel_of(e);
	char path[KERNEL_PATH_MAX];

	if (!hard) {
		(void)snprintf(path, sizeof(path), "/api/kernels/%s/interrupt",
			       k->id);
		(void)jupyter_call(k->jupyter, "POST", path, SPAN_NONE, NULL,
				   NULL);
		return;
	}
	kernel_release(k);
	kernel_forget(k);
	cell_die(e->cell, "ContextDied",
		 "the kernel was ended, an interrupt had not ended the run; "
		 "its state is lost, the next run starts afresh");
	drop_error(k);
}

static void kernel_room(struct engine *e)
{
	struct kernel *k = kernel_of(e);

	if (k->socket)
		websocket_hold(k->socket, false);
}

static struct engine *kernel_free(struct engine *e)
{
	struct kernel *k;

	if (!e)
		return NULL;
	k = kernel_of(e);
	timer_stop(&k->retry);
	timer_stop(&k->check);
	kernel_release(k);
	drop_error(k);
	free(k);
	return NULL;
}

static const struct engine_ops ops = {
	.prepare = kernel_prepare,
	.execute = kernel_execute,
	.interrupt = kernel_interrupt,
	.room = kernel_room,
	.free = kernel_free,
};

struct engine *kernel_new(struct jupyter *j, struct span language,
			  const char *cwd, struct cell *cell,
			  const struct engine_events *events, void *ctx)
{
	struct kernel *k = must_alloc(sizeof(*k));

	k->engine = (struct engine){
		.ops = &ops, .events = events, .ctx = ctx, .cell = cell
	};
	k->jupyter = j;
	k->language = language;
	k->cwd = cwd;
	id_draw(k->session);
	timer_init(&k->retry, j->execd->loop, kernel_on_retry);
	timer_init(&k->check, j->execd->loop, on_check);
	return &k->engine;
}
