/* SPDX-License-Identifier: Apache-2.0 */
/* api_diagnostics.c - what is known of a sandbox, as text for people
 *
 * How it works: a diagnosis asks Docker for one or both of the container's
 * state and its logs, and writes text of them and of the record. With ?scope=
 * the text comes in a JSON descriptor, without as text/plain (contract 4.2).
 * Values of the environment are in none of it.
 */

#include <stdio.h>
#include <stdlib.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/control/docker/docker.h"
#include "src/control/lifecycle/ask.h"
#include "src/control/lifecycle/diagnosis.h"
#include "src/control/lifecycle/log_frames.h"
#include "src/text/json.h"

enum {
	TEXT_MAX = DOCKER_REPLY_MAX + 256 * 1024,
	LOGS_SHOWN_MAX = 1024 * 1024,
	TAIL_MAX = 10000,
	EVENTS_MAX = 500,
};

struct diagnosis {
	struct ask *ask;
	const struct diagnosis_kind *kind;
	uint64_t tail, since_s, events;
	struct span scope; /* of the request; SPAN_NONE: text/plain */
	bool truncated;
	struct buf text;
};

struct diagnosis_kind {
	const char *name;
	const char *const *scopes; /* NULL: no descriptor of it */
	bool has_state, has_events, has_logs;
	uint64_t tail, events; /* how many lines when none are asked for */
	const char *tail_name, *events_name;
};

static const char *const logs_scopes[] = { "container", NULL };
static const char *const events_scopes[] = { "runtime", "lifecycle", NULL };

static const struct diagnosis_kind logs = {
	.name = "logs",
	.scopes = logs_scopes,
	.has_logs = true,
	.tail = 100,
	.tail_name = "tail",
};

static const struct diagnosis_kind events = {
	.name = "events",
	.scopes = events_scopes,
	.has_events = true,
	.events = 50,
	.events_name = "limit",
};

static const struct diagnosis_kind inspect = {
	.name = "inspect",
	.has_state = true,
};

static const struct diagnosis_kind summary = {
	.name = "summary",
	.has_state = true,
	.has_events = true,
	.has_logs = true,
	.tail = 50,
	.events = 20,
	.tail_name = "tail",
	.events_name = "event_limit",
};

static void diagnosis_free(struct diagnosis *d)
{
	buf_fini(&d->text);
	free(d->ask);
	free(d);
}

/* -- the answer ----------------------------------------------------------- */

static void reply_descriptor(struct diagnosis *d)
{
	struct buf out = BUF_INIT(ASK_REPLY_MAX);
	struct json_out o;

	json_start(&o, &out);
	json_open_object(&o, NULL);
	json_put_str(&o, "sandboxId", d->ask->id);
	json_put_str(&o, "kind", d->kind->name);
	json_put_text(&o, "scope", d->scope);
	json_put_str(&o, "delivery", "inline");
	json_put_str(&o, "contentType", "text/plain; charset=utf-8");
	json_put_text(&o, "content", buf_peek(&d->text));
	json_put_u64(&o, "contentLength", buf_len(&d->text));
	json_put_bool(&o, "truncated", d->truncated);
	json_close(&o);
	ask_reply(d->ask->request, 200, json_done(&o), &out);
}

static void diagnosis_end(struct diagnosis *d)
{
	struct httpd_request *r = d->ask->request;

	if (d->scope.ptr) {
		reply_descriptor(d);
	} else {
		if (d->kind->scopes)
			httpd_set_header(r, "Deprecation", SPAN("true"));
		httpd_reply(r, 200, "text/plain; charset=utf-8",
			    buf_peek(&d->text));
	}
	diagnosis_free(d);
}

static void diagnosis_fail(struct diagnosis *d, const struct docker_answer *a)
{
	httpd_reply_error(d->ask->request, 500, "DOCKER::SANDBOX_QUERY_FAILED",
			  "%s", a->message);
	diagnosis_free(d);
}

/* -- what Docker says ----------------------------------------------------- */

static const struct box *diagnosis_box(const struct diagnosis *d)
{
	return boxes_find(&d->ask->lifecycle->boxes, span_str(d->ask->id));
}

static void put_title(struct diagnosis *d, const char *title)
{
	if (d->kind->has_state && d->kind->has_logs)
		(void)!buf_putf(&d->text, "%s== %s ==\n",
				buf_len(&d->text) ? "\n" : "", title);
}

static void on_logs(void *ctx, const struct docker_answer *a)
{
	struct buf text CLEANUP(buf_fini) = BUF_INIT(DOCKER_REPLY_MAX);
	struct diagnosis *d = ctx;
	struct span tail;

	if (!docker_is_ok(a) && a->status != 404) {
		diagnosis_fail(d, a);
		return;
	}
	put_title(d, "logs");
	if (docker_is_ok(a)) {
		(void)!log_frames_text(a->body, &text);
		tail = log_frames_tail(buf_peek(&text), LOGS_SHOWN_MAX);
		d->truncated = tail.len < buf_len(&text);
		(void)!buf_put(&d->text, tail);
	}
	diagnosis_end(d);
}

static void logs_ask(struct diagnosis *d)
{
	const struct box *b = diagnosis_box(d);
	const struct docker_answer none = { .status = 404, .message = "" };
	char path[256];

	if (!b || !b->container[0]) {
		on_logs(d, &none);
		return;
	}
	(void)snprintf(path, sizeof(path),
		       "/containers/%s/logs?stdout=1&stderr=1&timestamps=1"
		       "&tail=%llu&since=%llu",
		       b->container, (unsigned long long)d->tail,
		       (unsigned long long)d->since_s);
	(void)docker_ask(d->ask->lifecycle->docker, "GET", path, SPAN_NONE,
			 on_logs, d);
}

static void on_state(void *ctx, const struct docker_answer *a)
{
	struct diagnosis *d = ctx;
	const struct json *container = docker_is_ok(a) ? a->json : NULL;
	const struct box *b = diagnosis_box(d);

	if (!docker_is_ok(a) && a->status != 404) {
		diagnosis_fail(d, a);
		return;
	}
	if (b && d->kind->has_state) {
		put_title(d, "sandbox");
		diagnosis_put_state(&d->text, b, container);
	}
	if (b && d->kind->has_events) {
		put_title(d, "events");
		diagnosis_put_events(&d->text, b, container, d->events);
	}
	if (d->kind->has_logs)
		logs_ask(d);
	else
		diagnosis_end(d);
}

static void state_ask(struct diagnosis *d, const struct box *b)
{
	const struct docker_answer none = { .status = 404, .message = "" };
	char path[256];

	if (!b->container[0]) {
		on_state(d, &none);
		return;
	}
	(void)snprintf(path, sizeof(path), "/containers/%s/json", b->container);
	(void)docker_ask(d->ask->lifecycle->docker, "GET", path, SPAN_NONE,
			 on_state, d);
}

/* -- the question --------------------------------------------------------- */

/* False: answered. */
static bool number_read(struct httpd_request *r, const char *name, uint64_t max,
			uint64_t *ret)
{
	struct span text = name ? httpd_query(r, name) : SPAN_NONE;
	uint64_t value;

	if (!text.ptr)
		return true;
	if (!span_parse_u64(text, &value) || value < 1 || value > max) {
		httpd_reply_error(r, 400, "SANDBOX::INVALID_PARAMETER",
				  "%s: expected a whole number from 1 to %llu",
				  name, (unsigned long long)max);
		return false;
	}
	*ret = value;
	return true;
}

static bool since_read(struct httpd_request *r, uint64_t *ret_s)
{
	struct span text = httpd_query(r, "since");
	uint64_t ago_s, now_s = clock_wall_ms() / 1000;

	if (!text.ptr)
		return true;
	if (!diagnosis_duration(text, &ago_s)) {
		httpd_reply_error(r, 400, "SANDBOX::INVALID_PARAMETER",
				  "since: expected a time such as 90s, 10m, 2h "
				  "or 1d");
		return false;
	}
	*ret_s = now_s - MIN(ago_s, now_s);
	return true;
}

static bool scope_read(struct httpd_request *r,
		       const struct diagnosis_kind *kind, struct span *ret)
{
	const char *const *known;

	*ret = SPAN_NONE;
	if (!kind->scopes || !httpd_query_count(r, "scope"))
		return true;
	*ret = httpd_query(r, "scope");
	for (known = kind->scopes; *known; known++)
		if (span_eq(*ret, span_str(*known)))
			return true;
	httpd_reply_error(r, 501, "DIAGNOSTICS_NOT_IMPLEMENTED",
			  "scope: there is no such scope of %s here; %s is one",
			  kind->name, kind->scopes[0]);
	return false;
}

static void diagnose(struct lifecycle *l, struct httpd_request *r,
		     const struct diagnosis_kind *kind)
{
	const struct box *b = ask_box(l, r);
	struct diagnosis want = { .kind = kind,
				  .tail = kind->tail,
				  .events = kind->events };
	struct diagnosis *d;

	if (!b || !scope_read(r, kind, &want.scope) ||
	    !number_read(r, kind->tail_name, TAIL_MAX, &want.tail) ||
	    !number_read(r, kind->events_name, EVENTS_MAX, &want.events) ||
	    !since_read(r, &want.since_s))
		return;
	d = must_alloc(sizeof(*d));
	*d = want;
	d->ask = ask_new(l, r, span_str(b->id));
	buf_init(&d->text, TEXT_MAX);
	if (kind->has_state || kind->has_events)
		state_ask(d, b);
	else
		logs_ask(d);
}

void lifecycle_logs_get(void *ctx, struct httpd_request *r)
{
	diagnose(ctx, r, &logs);
}

void lifecycle_events_get(void *ctx, struct httpd_request *r)
{
	diagnose(ctx, r, &events);
}

void lifecycle_inspect_get(void *ctx, struct httpd_request *r)
{
	diagnose(ctx, r, &inspect);
}

void lifecycle_summary_get(void *ctx, struct httpd_request *r)
{
	diagnose(ctx, r, &summary);
}
