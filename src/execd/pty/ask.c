/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - messages of a terminal's client, read piece by piece */

#include "src/execd/pty/ask.h"

#include <signal.h>
#include <stdio.h>

#include "src/base/err.h"
#include "src/base/log.h"
#include "src/text/json.h"

enum { STDIN_BYTE = 0x00, SHOWN_MAX = 48 };

static const struct {
	struct span name;
	int number;
} signals[] = {
	{ SPAN_INIT("SIGINT"), SIGINT },   { SPAN_INIT("SIGTERM"), SIGTERM },
	{ SPAN_INIT("SIGKILL"), SIGKILL }, { SPAN_INIT("SIGQUIT"), SIGQUIT },
	{ SPAN_INIT("SIGHUP"), SIGHUP },   { SPAN_INIT("SIGTSTP"), SIGTSTP },
	{ SPAN_INIT("SIGCONT"), SIGCONT }, { SPAN_INIT("SIGUSR1"), SIGUSR1 },
	{ SPAN_INIT("SIGUSR2"), SIGUSR2 },
};

static void ask_bad(struct ask *ask, const char *what, struct span found)
{
	char shown[SHOWN_MAX + 4];

	ask->kind = ASK_BAD;
	if (found.ptr)
		(void)snprintf(ask->why, sizeof(ask->why), "%s \"%s\"", what,
			       log_escape(found, shown, sizeof(shown)));
	else
		(void)snprintf(ask->why, sizeof(ask->why), "%s", what);
}

/* -- texts ----------------------------------------------------------------- */

static void ask_read_signal(struct ask *ask, const struct json *j)
{
	const struct span name = json_text(json_find(j, "signal"));

	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		if (!span_eq(name, signals[i].name))
			continue;
		ask->kind = ASK_SIGNAL;
		ask->signal = signals[i].number;
		return;
	}
	ask_bad(ask, "unknown signal", name.ptr ? name : SPAN(""));
}

static void ask_read_resize(struct ask *ask, const struct json *j)
{
	uint64_t cols = 0, rows = 0;

	(void)json_u64(json_find(j, "cols"), &cols);
	(void)json_u64(json_find(j, "rows"), &rows);
	if (!cols || !rows || cols > UINT16_MAX || rows > UINT16_MAX) {
		ask_bad(ask, "cols and rows are not between 1 and 65535",
			SPAN_NONE);
		return;
	}
	ask->kind = ASK_RESIZE;
	ask->cols = (uint16_t)cols;
	ask->rows = (uint16_t)rows;
}

static void ask_read(struct ask *ask, const struct json *j)
{
	const struct span type = json_text(json_find(j, "type"));

	if (span_eq(type, SPAN("stdin"))) {
		ask->kind = ASK_STDIN;
		ask->data = json_text(json_find(j, "data"));
		if (!ask->data.ptr)
			ask_bad(ask, "stdin without \"data\"", SPAN_NONE);
	} else if (span_eq(type, SPAN("signal"))) {
		ask_read_signal(ask, j);
	} else if (span_eq(type, SPAN("resize"))) {
		ask_read_resize(ask, j);
	} else if (span_eq(type, SPAN("ping"))) {
		ask->kind = ASK_PING;
	} else {
		ask_bad(ask, "unknown frame type", type.ptr ? type : SPAN(""));
	}
}

static void ask_text(struct span text, ask_fn *fn, void *ctx)
{
	struct ask ask = { 0 };
	struct json *j = NULL;

	if (json_parse(text, &j, NULL))
		ask_bad(&ask, "a text frame is not JSON", SPAN_NONE);
	else
		ask_read(&ask, j);
	fn(ctx, &ask);
	(void)json_free(j);
}

static void asks_feed_text(struct asks *a, struct span bytes, bool last,
			   ask_fn *fn, void *ctx)
{
	struct ask ask = { 0 };
	struct buf whole;

	if (buf_put(&a->text, bytes)) {
		buf_fini(&a->text);
		a->skip = true;
		ask_bad(&ask, "a text frame is over 262144 bytes", SPAN_NONE);
		fn(ctx, &ask);
		return;
	}
	if (!last)
		return;
	whole = a->text; /* fn may free a */
	buf_init(&a->text, ASK_TEXT_MAX);
	ask_text(buf_peek(&whole), fn, ctx);
	buf_fini(&whole);
}

/* -- all ------------------------------------------------------------------- */

static void asks_feed_binary(struct asks *a, struct span bytes, bool first,
			     ask_fn *fn, void *ctx)
{
	struct ask ask = { .kind = ASK_STDIN, .data = bytes };

	if (first && bytes.len && bytes.ptr[0] != STDIN_BYTE) {
		a->skip = true;
		ask_bad(&ask, "a binary frame does not begin with 0x00",
			SPAN_NONE);
		fn(ctx, &ask);
		return;
	}
	ask.data = span_from(bytes, first ? 1 : 0);
	if (ask.data.len)
		fn(ctx, &ask);
}

void asks_init(struct asks *a)
{
	*a = (struct asks){ .text = BUF_INIT(ASK_TEXT_MAX) };
}

void asks_fini(struct asks *a)
{
	buf_fini(&a->text);
}

void asks_feed(struct asks *a, enum ws_opcode opcode, struct span bytes,
	       bool last, ask_fn *fn, void *ctx)
{
	const bool first = !a->inside, skip = a->skip && a->inside;

	/* an empty piece does not begin a binary message: its first byte is
	 * still to come */
	a->inside = !last && (a->inside || bytes.len || opcode == WS_TEXT);
	a->skip = skip && !last;
	if (skip)
		return;
	if (opcode == WS_TEXT)
		asks_feed_text(a, bytes, last, fn, ctx);
	else
		asks_feed_binary(a, bytes, first, fn, ctx);
	/* a may be gone */
}
