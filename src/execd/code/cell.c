/* SPDX-License-Identifier: Apache-2.0 */
/* cell.c - one run of code on its way to the client who asked for it */

#include "src/execd/code/cell.h"

#include <stdarg.h>
#include <stdio.h>

#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/execd/code/bundle.h"
#include "src/text/json.h"

enum {
	RESULT_MAX = BUNDLE_MAX + 64 * 1024, /* names and punctuation too */
	SENTENCE_MAX = 512,
};

void cell_open(struct cell *c, struct execd *e, struct httpd_request *r,
	       struct span id, const struct event_stream_ops *ops, void *ctx)
{
	*c = (struct cell){ .execd = e, .started_ms = clock_ms() };
	lines_init(&c->out);
	lines_init(&c->err);
	c->stream = event_stream_new(e, r, id, ops, ctx);
}

bool cell_is_full(struct cell *c)
{
	return c->stream && event_stream_is_full(c->stream);
}

/* -- what is told meanwhile ----------------------------------------------- */

void cell_status(struct cell *c, struct span text)
{
	if (c->stream)
		event_stream_text(c->stream, EVENT_STATUS, text);
}

static void out_line(void *ctx, struct span text)
{
	struct cell *c = ctx;

	event_stream_text(c->stream, EVENT_STDOUT, text);
}

static void err_line(void *ctx, struct span text)
{
	struct cell *c = ctx;

	event_stream_text(c->stream, EVENT_STDERR, text);
}

void cell_text(struct cell *c, bool is_stderr, struct span bytes)
{
	if (!c->stream)
		return;
	lines_feed(is_stderr ? &c->err : &c->out, bytes,
		   is_stderr ? err_line : out_line, c);
}

static void cell_flush(struct cell *c)
{
	lines_end(&c->out, out_line, c);
	lines_end(&c->err, err_line, c);
}

void cell_count(struct cell *c, uint64_t count)
{
	struct event ev = { .type = EVENT_EXECUTION_COUNT,
			    .execution_count = count };

	if (!c->stream || !count || c->counted)
		return;
	c->counted = true;
	event_stream_put(c->stream, &ev);
}

static void tell_left_out(struct cell *c, size_t left_out)
{
	char text[128];
	int len;

	len = snprintf(text, sizeof(text),
		       "result: %zu bytes were left out, at most %d are told",
		       left_out, BUNDLE_MAX);
	event_stream_text(c->stream, EVENT_STDERR, span_of(text, (size_t)len));
}

void cell_result(struct cell *c, const struct json *data)
{
	struct buf text = BUF_INIT(RESULT_MAX);
	struct event ev = { .type = EVENT_RESULT };
	size_t left_out;
	int r;

	if (!c->stream)
		return;
	cell_flush(c);
	r = bundle_put(&text, data, &left_out);
	if (left_out)
		tell_left_out(c, left_out);
	if (r > 0) {
		ev.results = buf_peek(&text);
		event_stream_put(c->stream, &ev);
	}
	buf_fini(&text);
}

/* -- the end -------------------------------------------------------------- */

static void cell_end(struct cell *c, const struct event *last)
{
	cell_flush(c);
	c->stream = event_stream_end(c->stream, last);
	lines_fini(&c->out);
	lines_fini(&c->err);
}

void cell_done(struct cell *c)
{
	struct event ev = { .type = EVENT_EXECUTION_COMPLETE };

	if (!c->stream)
		return;
	ev.execution_time = clock_ms() - c->started_ms;
	cell_end(c, &ev);
}

void cell_exit(struct cell *c, unsigned code)
{
	struct event_end end;

	if (!c->stream)
		return;
	event_end(&end, (int)(code & 0xff) << 8, clock_ms() - c->started_ms,
		  clock_wall_ms());
	cell_end(c, &end.event);
}

void cell_fail(struct cell *c, const struct failure *f)
{
	struct event ev = {
		.type = EVENT_ERROR,
		.ename = f->ename,
		.evalue = f->evalue,
		.traceback = f->lines,
		.traceback_count = f->line_count,
	};

	if (c->stream)
		cell_end(c, &ev);
}

void cell_die(struct cell *c, const char *ename, const char *fmt, ...)
{
	char text[SENTENCE_MAX], line[SENTENCE_MAX + 64];
	struct span trace;
	struct event ev = { .type = EVENT_ERROR,
			    .ename = span_str(ename),
			    .traceback = &trace,
			    .traceback_count = 1 };
	va_list args;

	if (!c->stream)
		return;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	(void)snprintf(line, sizeof(line), "%s: %s", ename, text);
	ev.evalue = span_str(text);
	trace = span_str(line);
	cell_end(c, &ev);
}
