/* SPDX-License-Identifier: Apache-2.0 */
/* attachment.c - what a client of a terminal is sent, and what it may ask
 *
 * Everything for the client is owed before it is sent: first what it missed
 * and "connected", then answers to its pings, then output up to the newest
 * byte, then the exit. attachment_send_owed() pays as far as the WebSocket has
 * room and is called again when it has; so no client costs more memory than
 * the queue of its WebSocket. The holder's replay is one frame, as clients are
 * used to; the many viewers get theirs in pieces.
 *
 * A holder who has no room stops the terminal. He is given HOLDER_STALL_MS in
 * which at least something must leave his queue; else he is closed with 1013,
 * and may come back with `since`. A viewer who has no room stops nothing.
 */

#include "src/execd/pty/attachment.h"

#include <errno.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/execd/execd.h"
#include "src/execd/pty/ask.h"
#include "src/execd/websocket.h"
#include "src/text/json.h"

enum {
	PIECE_BYTES = 32 * 1024,
	TEXT_BYTES = 1024,
	PONGS_MAX = 16,
	STRIKES_MAX = 5, /* a viewer who goes on typing is closed */
	TAKEN_OVER = 4001,
	POLICY_VIOLATION = 1008,
	/* A message of stdin may be as long as a client likes: no part of it
	 * is kept. */
	BINARY_BITS = 40,
};

struct attachment {
	struct list link; /* in terminal.attachments */
	struct terminal *terminal;
	struct websocket *ws;
	bool viewer;
	struct asks asks;
	unsigned strikes;
	struct timer stall; /* of a holder without room */
	size_t stalled_at;  /* bytes unsent when it was started */

	/* owed, in this order */
	bool replay, greeting;
	uint64_t replay_end; /* the newest byte when a viewer came */
	unsigned pongs;
	uint64_t next; /* output from here on */
	enum terminal_frame frame;
	bool exit;
	int exit_code;
	uint64_t exit_at; /* offset behind the program's last byte */
};

struct attachment *attachment_of_link(struct list *link)
{
	return container_of(link, struct attachment, link);
}

/* -- its end --------------------------------------------------------------- */

/* Its WebSocket is over. */
static void attachment_free(struct attachment *a)
{
	struct terminal *t = a->terminal;
	const bool held = t->holder == a;

	timer_stop(&a->stall);
	asks_fini(&a->asks);
	list_remove(&a->link);
	if (a->viewer)
		t->viewer_count--;
	if (held)
		t->holder = NULL;
	free(a);
	if (held)
		terminal_go_on(t);
}

static void attachment_close(struct attachment *a, unsigned code,
			     const char *reason)
{
	a->ws = websocket_close(a->ws, code, reason);
	attachment_free(a);
}

static void attachment_on_closed(void *ctx, unsigned code, const char *why)
{
	struct attachment *a = ctx;
	char shown[80];

	log_debug("a client of terminal %s left with %u: %s", a->terminal->id,
		  code, log_escape(span_str(why), shown, sizeof(shown)));
	attachment_free(a);
}

/* -- texts ----------------------------------------------------------------- */

static int attachment_send_text(struct attachment *a, struct json_out *o)
{
	json_close(o);
	must(json_done(o) == 0);
	return websocket_send(a->ws, WS_TEXT, buf_peek(o->buf));
}

static int attachment_send_greeting(struct attachment *a)
{
	struct buf text = BUF_INIT(TEXT_BYTES);
	struct json_out o;
	int r;

	json_start(&o, &text);
	json_open_object(&o, NULL);
	json_put_str(&o, "type", "connected");
	json_put_str(&o, "session_id", a->terminal->id);
	json_put_str(&o, "mode", a->terminal->is_pty ? "pty" : "pipe");
	if (a->viewer)
		json_put_str(&o, "role", "viewer");
	r = attachment_send_text(a, &o);
	buf_fini(&text);
	return r;
}

static int attachment_send_exit(struct attachment *a)
{
	struct buf text = BUF_INIT(TEXT_BYTES);
	struct json_out o;
	int r;

	json_start(&o, &text);
	json_open_object(&o, NULL);
	json_put_str(&o, "type", "exit");
	json_put_i64(&o, "exit_code", a->exit_code);
	r = attachment_send_text(a, &o);
	buf_fini(&text);
	return r;
}

void attachment_error(struct attachment *a, const char *code,
		      const char *sentence)
{
	struct buf text = BUF_INIT(4 * TEXT_BYTES);
	struct json_out o;

	json_start(&o, &text);
	json_open_object(&o, NULL);
	json_put_str(&o, "type", "error");
	json_put_str(&o, "error", sentence);
	json_put_str(&o, "code", code);
	/* who has no room for it does not read what he is told */
	(void)!attachment_send_text(a, &o);
	buf_fini(&text);
}

/* -- output ---------------------------------------------------------------- */

static int attachment_send_replay(struct attachment *a, struct span bytes)
{
	struct buf frame = BUF_INIT(RING_BYTES + 16);
	char head[9] = { TERMINAL_REPLAY };
	uint64_t at = a->next;
	int r;

	for (unsigned i = 0; i < 8; i++)
		head[1 + i] = (char)(at >> (56 - 8 * i));
	must(buf_put(&frame, span_of(head, sizeof(head))) == 0);
	must(buf_put(&frame, bytes) == 0);
	r = websocket_send(a->ws, WS_BINARY, buf_peek(&frame));
	buf_fini(&frame);
	return r;
}

/* All that the ring has from .next on, in one frame. */
static int attachment_send_missed(struct attachment *a)
{
	const struct ring *ring = &a->terminal->ring;
	struct buf all = BUF_INIT(RING_BYTES);
	struct span piece;
	uint64_t at;
	int r;

	(void)ring_peek(ring, &a->next);
	if (a->next >= ring->end)
		return 0;
	for (at = a->next; (piece = ring_peek(ring, &at)).len; at += piece.len)
		must(buf_put(&all, piece) == 0);
	r = attachment_send_replay(a, buf_peek(&all));
	if (!r)
		a->next += buf_len(&all);
	buf_fini(&all);
	return r;
}

static int attachment_send_piece(struct attachment *a, struct span piece)
{
	char frame[1 + PIECE_BYTES];

	if (a->viewer)
		return attachment_send_replay(a, piece);
	frame[0] = (char)a->frame;
	memcpy(frame + 1, piece.ptr, piece.len);
	return websocket_send(a->ws, WS_BINARY, span_of(frame, 1 + piece.len));
}

/* Where output ends for this client. */
static uint64_t attachment_end(const struct attachment *a)
{
	return a->exit ? a->exit_at : a->terminal->ring.end;
}

/* Output up to the offset `end`. */
static int attachment_send_output(struct attachment *a, uint64_t end)
{
	struct span piece;
	int r;

	while (a->next < end) {
		piece = ring_peek(&a->terminal->ring, &a->next);
		if (a->next >= end)
			break; /* overwritten since */
		piece.len = MIN(piece.len, (size_t)PIECE_BYTES);
		piece.len = (size_t)MIN((uint64_t)piece.len, end - a->next);
		r = attachment_send_piece(a, piece);
		if (r)
			return r;
		a->next += piece.len;
	}
	return 0;
}

/* 0: nothing is owed but the exit; else there was no room, or it is lost. */
static int attachment_send_owed(struct attachment *a)
{
	int r = 0;

	if (a->replay) {
		r = a->viewer ? attachment_send_output(a, a->replay_end)
			      : attachment_send_missed(a);
		a->replay = r;
	}
	if (!r && a->greeting) {
		r = attachment_send_greeting(a);
		a->greeting = r;
	}
	for (; !r && a->pongs; a->pongs -= !r)
		r = websocket_send(a->ws, WS_TEXT, SPAN("{\"type\":\"pong\"}"));
	return r ? r : attachment_send_output(a, attachment_end(a));
}

void attachment_set_frame(struct attachment *a, enum terminal_frame frame)
{
	a->frame = frame;
}

bool attachment_is_behind(const struct attachment *a)
{
	return a->replay || a->greeting || a->next < attachment_end(a);
}

void attachment_go_on(struct attachment *a)
{
	const bool behind = attachment_send_owed(a);

	if (!behind || a->viewer) {
		timer_stop(&a->stall);
	} else if (!a->stall.due_ms) {
		a->stalled_at = websocket_unsent(a->ws);
		timer_start(&a->stall, HOLDER_STALL_MS);
	}
}

static void attachment_on_stall(struct timer *timer)
{
	struct attachment *a = container_of(timer, struct attachment, stall);
	const size_t unsent = websocket_unsent(a->ws);

	if (unsent >= a->stalled_at) {
		attachment_close(a, WEBSOCKET_TRY_LATER,
				 "output was not read for 10 s");
		return;
	}
	a->stalled_at = unsent;
	timer_start(timer, HOLDER_STALL_MS);
}

/* What is owed last. Frees a when it was paid. */
static void attachment_end_if_told(struct attachment *a)
{
	if (!a->exit || attachment_is_behind(a) || attachment_send_exit(a))
		return;
	attachment_close(a, WEBSOCKET_NORMAL, "process exited");
}

static void attachment_on_room(void *ctx)
{
	struct attachment *a = ctx;
	struct terminal *t = a->terminal;
	const bool holds = t->holder == a;

	attachment_go_on(a);
	attachment_end_if_told(a);
	/* a may be gone */
	if (holds)
		terminal_go_on(t);
}

void attachment_exit(struct attachment *a, int code)
{
	if (a->exit)
		return; /* of the program before, and not told yet */
	a->exit = true;
	a->exit_code = code;
	a->exit_at = a->terminal->ring.end;
	timer_stop(&a->stall);
	(void)attachment_send_owed(a);
	attachment_end_if_told(a);
}

void attachment_gone(struct attachment *a)
{
	attachment_error(a, "SESSION_GONE", "the terminal was deleted");
	attachment_close(a, WEBSOCKET_GOING_AWAY, "the terminal was deleted");
}

/* -- input ----------------------------------------------------------------- */

void attachment_read_on(struct attachment *a)
{
	websocket_hold(a->ws, false);
}

static void attachment_type(struct attachment *a, struct span bytes)
{
	if (terminal_input(a->terminal, bytes))
		attachment_error(a, "STDIN_WRITE_FAILED",
				 "the program does not read any more");
	else if (terminal_is_full(a->terminal))
		websocket_hold(a->ws, true);
}

/* May free a. */
static void attachment_refuse(struct attachment *a)
{
	attachment_error(a, "READ_ONLY", "viewers only look");
	if (++a->strikes >= STRIKES_MAX)
		attachment_close(a, POLICY_VIOLATION, "viewers only look");
}

static void attachment_on_ask(void *ctx, const struct ask *ask)
{
	struct attachment *a = ctx;
	struct terminal *t = a->terminal;

	if (a->viewer && ask->kind != ASK_PING && ask->kind != ASK_BAD) {
		attachment_refuse(a);
		return; /* a may be gone */
	}
	if (a->exit)
		return; /* the program is over */
	switch (ask->kind) {
	case ASK_STDIN:
		attachment_type(a, ask->data);
		return;
	case ASK_SIGNAL:
		terminal_signal(t, ask->signal);
		return;
	case ASK_RESIZE:
		terminal_resize(t, ask->cols, ask->rows);
		return;
	case ASK_PING:
		a->pongs += a->pongs < PONGS_MAX;
		attachment_go_on(a);
		return;
	case ASK_BAD:
		attachment_error(a, "INVALID_FRAME", ask->why);
		return;
	}
	must(!"a wish of no kind");
}

static void attachment_on_message(void *ctx, enum ws_opcode opcode,
				  struct span bytes, bool last)
{
	struct attachment *a = ctx;

	asks_feed(&a->asks, opcode, bytes, last, attachment_on_ask, a);
	/* a may be gone */
}

/* -- its beginning --------------------------------------------------------- */

static const struct websocket_ops ops = {
	.message = attachment_on_message,
	.room = attachment_on_room,
	.closed = attachment_on_closed,
};

/* A holder's part. False: a is gone. */
static bool attachment_hold(struct attachment *a, bool pty)
{
	struct terminal *t = a->terminal;
	struct attachment *before = take_ptr(t->holder);
	struct diag d = { 0 };

	if (before)
		attachment_close(before, TAKEN_OVER, "TAKEN_OVER");
	if (!t->running && terminal_start(t, pty, &d)) {
		log_info("the program of terminal %s could not be started: %s",
			 t->id, d.msg);
		attachment_error(a, "START_FAILED", d.msg);
		attachment_close(a, WEBSOCKET_INTERNAL, "START_FAILED");
		return false;
	}
	t->holder = a;
	return true;
}

void attachment_new(struct terminal *t, struct httpd_request *r,
		    const struct attachment_wish *wish)
{
	const struct websocket_limits limits = { .message_max =
							 UINT64_C(1)
							 << BINARY_BITS };
	struct attachment *a = must_alloc(sizeof(*a));

	if (websocket_accept(r, &limits, &ops, a, &a->ws)) {
		free(a);
		return;
	}
	a->terminal = t;
	a->viewer = wish->viewer;
	a->frame = TERMINAL_STDOUT;
	a->next = MIN(wish->since, t->ring.end);
	a->replay = a->greeting = true;
	a->replay_end = t->ring.end;
	asks_init(&a->asks);
	timer_init(&a->stall, t->execd->loop, attachment_on_stall);
	list_init(&a->link);
	list_push(&t->attachments, &a->link);
	if (a->viewer)
		t->viewer_count++;
	else if (!attachment_hold(a, wish->pty))
		return;
	attachment_go_on(a);
	if (!a->viewer)
		terminal_go_on(t);
}
