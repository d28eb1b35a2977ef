/* SPDX-License-Identifier: Apache-2.0 */
/* event.c - the frames of an event stream, as bytes (contract 5.3) */

#include "src/execd/event.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/text/json.h"

static const char *const type_names[] = {
	[EVENT_INIT] = "init",
	[EVENT_PING] = "ping",
	[EVENT_STATUS] = "status",
	[EVENT_STDOUT] = "stdout",
	[EVENT_STDERR] = "stderr",
	[EVENT_RESULT] = "result",
	[EVENT_EXECUTION_COUNT] = "execution_count",
	[EVENT_ERROR] = "error",
	[EVENT_EXECUTION_COMPLETE] = "execution_complete",
};
_Static_assert(ARRAY_LEN(type_names) == EVENT_TYPE_NUM, "a name for each");

static void put_number(struct json_out *o, const char *name, uint64_t value)
{
	if (value)
		json_put_u64(o, name, value);
}

static void put_text(struct json_out *o, const char *name, struct span text)
{
	if (text.len)
		json_put_text(o, name, text);
}

static void put_error(struct json_out *o, const struct event *ev)
{
	unsigned i;

	if (!ev->ename.len && !ev->evalue.len && !ev->traceback_count)
		return;
	json_open_object(o, "error");
	put_text(o, "ename", ev->ename);
	put_text(o, "evalue", ev->evalue);
	if (ev->traceback_count) {
		json_open_array(o, "traceback");
		for (i = 0; i < ev->traceback_count; i++)
			json_put_text(o, NULL, ev->traceback[i]);
		json_close(o);
	}
	json_close(o);
}

static int event_put_all(struct buf *out, const struct event *ev)
{
	struct json_out o;
	int r;

	json_start(&o, out);
	json_open_object(&o, NULL);
	json_put_str(&o, "type", type_names[ev->type]);
	put_text(&o, "text", ev->text);
	put_number(&o, "execution_count", ev->execution_count);
	put_number(&o, "execution_time", ev->execution_time);
	put_number(&o, "timestamp", ev->timestamp);
	if (ev->results.len)
		json_put_raw(&o, "results", ev->results);
	put_error(&o, ev);
	json_close(&o);
	r = json_done(&o);
	return r ? r : buf_put(out, SPAN("\n\n"));
}

static bool is_only_text(const struct event *ev)
{
	return ev->text.len && ev->timestamp && !ev->execution_count &&
	       !ev->execution_time && !ev->results.len && !ev->ename.len &&
	       !ev->evalue.len && !ev->traceback_count;
}

/* The same for what there are millions of: a line of output. */
static int event_put_text(struct buf *out, struct span head,
			  const struct event *ev)
{
	char tail[64] = ",\"timestamp\":", digits[SPAN_DECIMAL_SIZE];
	struct span number = span_decimal(ev->timestamp, digits);
	size_t len = strlen(tail);
	int r;

	memcpy(tail + len, number.ptr, number.len);
	memcpy(tail + len + number.len, "}\n\n", 3);
	r = buf_put(out, head);
	if (!r)
		r = json_escape(out, ev->text);
	if (!r)
		r = buf_put(out, span_of(tail, len + number.len + 3));
	return r;
}

int event_put(struct buf *out, const struct event *ev)
{
	size_t before = buf_len(out);
	int r;

	must((unsigned)ev->type < EVENT_TYPE_NUM);

	if (is_only_text(ev) && ev->type == EVENT_STDOUT)
		r = event_put_text(out, SPAN("{\"type\":\"stdout\",\"text\":"),
				   ev);
	else if (is_only_text(ev) && ev->type == EVENT_STDERR)
		r = event_put_text(out, SPAN("{\"type\":\"stderr\",\"text\":"),
				   ev);
	else
		r = event_put_all(out, ev);
	if (r)
		out->end = out->start + before; /* none of it */
	return r;
}

/* -- the end of a process ------------------------------------------------- */

static void end_error(struct event_end *e, int number, uint64_t timestamp)
{
	(void)snprintf(e->number, sizeof(e->number), "%d", number);
	e->trace = span_str(e->line);
	e->event = (struct event){
		.type = EVENT_ERROR,
		.timestamp = timestamp,
		.ename = SPAN("CommandExecError"),
		.evalue = span_str(e->number),
		.traceback = &e->trace,
		.traceback_count = 1,
	};
}

int event_exit_code(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status)
				   : WEXITSTATUS(status);
}

void event_end(struct event_end *e, int status, uint64_t duration_ms,
	       uint64_t timestamp)
{
	int number = event_exit_code(status);
	const char *name;

	if (!number) {
		e->event = (struct event){
			.type = EVENT_EXECUTION_COMPLETE,
			.timestamp = timestamp,
			.execution_time = duration_ms,
		};
		return;
	}
	if (WIFSIGNALED(status)) {
		name = sigabbrev_np(WTERMSIG(status));
		(void)snprintf(e->line, sizeof(e->line), "signal %d (SIG%s)",
			       WTERMSIG(status), name ? name : "?");
	} else {
		(void)snprintf(e->line, sizeof(e->line), "exit status %d",
			       number);
	}
	end_error(e, number, timestamp);
}

void event_end_timeout(struct event_end *e, uint64_t timeout_ms,
		       uint64_t timestamp)
{
	(void)snprintf(e->line, sizeof(e->line), "timed out after %llu ms",
		       (unsigned long long)timeout_ms);
	end_error(e, EVENT_TIMEOUT_CODE, timestamp);
}

void event_end_unstarted(struct event_end *e, const char *why,
			 uint64_t timestamp)
{
	(void)snprintf(e->line, sizeof(e->line), "%s", why);
	end_error(e, EVENT_UNSTARTED_CODE, timestamp);
}
