/* SPDX-License-Identifier: Apache-2.0 */
/* docker.c - calls of the Docker Engine API: begun, bounded, answered, given up
 */

#include "src/control/docker/docker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/chars.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/docker/inside.h"
#include "src/text/json.h"

enum { BODY_MAX = 64 * 1024 * 1024, CONNECTIONS_KEPT = 16 };

#define VERSION_ASKED "1.41"

/* -- answers -------------------------------------------------------------- */

static const char *status_text(int status)
{
	switch (-status) {
	case ENOENT:
	case ECONNREFUSED:
		return "the Docker daemon is not there";
	case EACCES:
	case EPERM:
		return "the Docker daemon's socket is not ours to use";
	case ETIMEDOUT:
		return "the Docker daemon did not answer in time";
	case EPROTO:
		return "the Docker daemon sent what is no answer, or half of "
		       "one";
	case ENOBUFS:
		return "the Docker daemon's answer is too long";
	case ECONNRESET:
		return "the Docker daemon went away";
	case ECANCELED:
		return "the call was given up";
	default:
		return err_text(status);
	}
}

/* {"message": "..."}: its first line. */
static void message_take(const struct docker_answer *a,
			 char dst[DOCKER_MESSAGE_SIZE])
{
	struct span text = json_text(json_find(a->json, "message"));

	if (a->status < 0) {
		(void)snprintf(dst, DOCKER_MESSAGE_SIZE, "%s",
			       status_text(a->status));
		return;
	}
	if (a->status < 400)
		return;
	text = span_cut(&text, '\n');
	if (text.len)
		(void)log_escape(text, dst, DOCKER_MESSAGE_SIZE);
	else
		(void)snprintf(dst, DOCKER_MESSAGE_SIZE,
			       "the Docker daemon answered with status %d",
			       a->status);
}

static bool is_json(const struct docker_call *call)
{
	const char *type = NULL;

	if (!call->easy ||
	    curl_easy_getinfo(call->easy, CURLINFO_CONTENT_TYPE, &type))
		return false;
	return span_starts(span_str(type), SPAN("application/json"));
}

static struct docker_call *call_free(struct docker_call *call)
{
	list_remove(&call->link);
	timer_stop(&call->silence);
	if (call->knock)
		docker_cancel(call->knock);
	transfer_free(call);
	buf_wipe(&call->body);
	buf_wipe(&call->reply);
	buf_fini(&call->path_stat);
	if (call->owns_ctx)
		free(call->ctx);
	free(call);
	return NULL;
}

/* error holds the status. */
static void call_answer(struct docker_call *call)
{
	struct json *j CLEANUP_JSON = NULL;
	char message[DOCKER_MESSAGE_SIZE] = "";
	struct docker_answer a = { .status = call->error, .message = message };

	if (a.status > 0) {
		a.body = buf_peek(&call->reply);
		a.path_stat = buf_peek(&call->path_stat);
		if (a.body.len && is_json(call) &&
		    json_parse(a.body, &j, NULL)) {
			a.status = -EPROTO;
			a.body = SPAN_NONE;
		}
		a.json = j;
	}
	message_take(&a, message);
	list_remove(&call->link);
	if (call->fn)
		call->fn(call->ctx, &a);
	call_free(call);
}

/* -- life of a call ------------------------------------------------------- */

static void call_stop(struct docker_call *call)
{
	struct docker *d = call->docker;

	curl_loop_remove(&d->curl, call->easy);
	timer_stop(&call->silence);
	list_remove(&call->link);
	d->running_count--;
}

/* Whoever had the other end is gone. What we gave up ourselves libcurl calls
 * broken too. */
static bool is_loss(const struct docker_call *call, int status)
{
	if (!call->fn)
		return false;
	switch (-status) {
	case ENOENT:
	case ECONNREFUSED:
	case ECONNRESET:
	case EPROTO:
		return true;
	default:
		return call->endless && !call->enough;
	}
}

static void call_end(struct docker_call *call, int status)
{
	call_stop(call);
	call->error = status ? status : -EPROTO;
	call->docker->losses += is_loss(call, status);
	list_push(&call->docker->ended, &call->link);
}

static void on_silence(struct timer *t)
{
	struct docker_call *call = container_of(t, struct docker_call, silence);
	struct docker *d = call->docker;

	call_end(call, -ETIMEDOUT);
	docker_go_on(d);
}

static void call_run(struct docker_call *call)
{
	struct docker *d = call->docker;

	list_remove(&call->link);
	if (!call->error)
		call->error = curl_loop_add(&d->curl, call->easy);
	if (call->error) {
		list_push(&d->ended, &call->link);
		timer_start(&d->chores, 0);
		return;
	}
	list_push(&d->running, &call->link);
	d->running_count++;
	if (call->silence_ms)
		timer_start(&call->silence, call->silence_ms);
}

static struct docker_call *call_of(struct list *all)
{
	return list_first(all, struct docker_call, link);
}

static void calls_sweep(struct docker *d)
{
	list_for_each(it, &d->running)
	{
		struct docker_call *call =
			container_of(it, struct docker_call, link);

		if (call->fn)
			continue;
		call_stop(call);
		call_free(call);
	}
}

/* An answer may lead to anything but the end of d. */
void docker_go_on(struct docker *d)
{
	struct docker_call *call;

	while ((call = call_of(&d->ended)))
		if (!doubt_begin(call))
			call_answer(call);
	while (d->running_count < DOCKER_CALLS_MAX &&
	       (call = call_of(&d->waiting)))
		call_run(call);
}

static void go_on(void *ctx)
{
	docker_go_on(ctx);
}

static void on_chores(struct timer *t)
{
	struct docker *d = container_of(t, struct docker, chores);

	calls_sweep(d);
	docker_go_on(d);
}

struct docker_call *docker_begin(struct docker *d,
				 const struct docker_request *q, docker_fn *fn,
				 void *ctx)
{
	struct docker_call *call = must_alloc(sizeof(*call));

	call->docker = d;
	call->fn = fn;
	call->piece = q->piece;
	call->ctx = ctx;
	call->shape = q->shape;
	call->endless = q->endless;
	if (!q->endless && !q->patient)
		call->silence_ms =
			q->silence_ms ? q->silence_ms : d->silence_ms;
	call->losses = d->losses;
	list_init(&call->link);
	timer_init(&call->silence, d->loop, on_silence);
	buf_init(&call->body, BODY_MAX);
	buf_init(&call->path_stat, DOCKER_HEAD_MAX);
	buf_init(&call->reply,
		 q->shape == DOCKER_WHOLE ? DOCKER_REPLY_MAX : DOCKER_LINE_MAX);
	(void)snprintf(call->method, sizeof(call->method), "%s", q->method);
	if (q->body.len)
		call->error = buf_put(&call->body, q->body);
	if (!call->error)
		call->error = transfer_new(call, q);
	list_push(&d->waiting, &call->link);
	if (d->curl.inside)
		timer_start(&d->chores, 0);
	else if (d->running_count < DOCKER_CALLS_MAX)
		call_run(call);
	return call;
}

void docker_cancel(struct docker_call *call)
{
	struct docker *d = call->docker;
	bool is_running = false;

	call->fn = NULL;
	call->piece = NULL;
	list_for_each(it, &d->running) is_running |= it == &call->link;
	if (is_running && d->curl.inside) {
		timer_start(&d->chores, 0);
		return;
	}
	if (is_running)
		call_stop(call);
	call_free(call);
}

/* -- kinds of calls ------------------------------------------------------- */

struct docker_call *docker_ask(struct docker *d, const char *method,
			       const char *path, struct span body,
			       docker_fn *fn, void *ctx)
{
	const struct docker_request q = {
		.method = method,
		.path = path,
		.body = body,
	};

	return docker_begin(d, &q, fn, ctx);
}

struct docker_call *docker_follow(struct docker *d, const char *path,
				  docker_piece_fn *line, docker_fn *fn,
				  void *ctx)
{
	const struct docker_request q = {
		.method = "GET",
		.path = path,
		.shape = DOCKER_LINES,
		.piece = line,
		.endless = true,
	};

	return docker_begin(d, &q, fn, ctx);
}

int docker_put_escaped(struct buf *path, struct span text)
{
	static const char plain[] = "-._~/:@";
	int r = 0;
	size_t i;
	char c;

	for (i = 0; !r && i < text.len; i++) {
		c = text.ptr[i];
		if (char_is_alnum(c) || (c && strchr(plain, c)))
			r = buf_put(path, span_of(&c, 1));
		else
			r = buf_putf(path, "%%%02X", (unsigned char)c);
	}
	return r;
}

/* -- life ----------------------------------------------------------------- */

void docker_set_silence(struct docker *d, uint64_t ms)
{
	d->silence_ms = ms;
}

uint64_t docker_losses(const struct docker *d)
{
	return d->losses;
}

static void on_done(void *ctx, CURL *easy, CURLcode result)
{
	struct docker_call *call;

	(void)ctx;
	must(!curl_easy_getinfo(easy, CURLINFO_PRIVATE, &call));
	call_end(call, transfer_status(call, result));
}

int docker_new(struct loop *loop, const char *socket_path, struct docker **ret)
{
	static const struct curl_loop_ops curl_ops = { on_done, go_on };
	struct docker *d = must_alloc(sizeof(*d));
	int r;

	d->loop = loop;
	d->silence_ms = DOCKER_ANSWER_MS;
	(void)snprintf(d->version, sizeof(d->version), VERSION_ASKED);
	list_init(&d->waiting);
	list_init(&d->running);
	list_init(&d->ended);
	list_init(&d->doubted);
	timer_init(&d->chores, loop, on_chores);
	r = curl_loop_init(&d->curl, loop, &curl_ops, d, CONNECTIONS_KEPT);
	if (!r && !span_copy(span_str(socket_path), d->socket_path,
			     sizeof(d->socket_path)))
		r = err_origin(-ENAMETOOLONG);
	if (r) {
		docker_free(d);
		return r;
	}
	*ret = d;
	return 0;
}

struct docker *docker_free(struct docker *d)
{
	struct docker_call *call;

	if (!d)
		return NULL;
	must(!d->curl.inside);
	while ((call = call_of(&d->running)))
		call_end(call, -ECANCELED);
	while ((call = call_of(&d->waiting)) || (call = call_of(&d->doubted))) {
		list_remove(&call->link);
		call->error = -ECANCELED;
		list_push(&d->ended, &call->link);
	}
	while ((call = call_of(&d->ended)))
		call_answer(call);
	must(list_is_empty(&d->waiting) && list_is_empty(&d->running) &&
	     list_is_empty(&d->doubted));
	curl_loop_fini(&d->curl);
	timer_stop(&d->chores);
	free(d);
	return NULL;
}
