/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_steps.c - how a context gets its kernel, and a connection to it
 *
 * The steps are calls and one handshake; what is there already is skipped:
 *
 *     SPECS    GET /api/kernelspecs: which kernel speaks the language?
 *     CREATE   POST /api/kernels
 *     CHECK    GET /api/kernels/ID, when the connection to it was lost
 *     CONNECT  the WebSocket /api/kernels/ID/channels
 *     READY
 *
 * In the images where there is such a server it starts beside this daemon, so
 * steps are tried again until it answers (KERNEL_PATIENCE_MS).
 */

#include "src/execd/code/jupyter/kernel_inside.h"

#include <errno.h>
#include <stdio.h>

#include "src/base/buf.h"
#include "src/base/chars.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/execd/code/jupyter/server.h"
#include "src/execd/execd.h"
#include "src/execd/websocket.h"
#include "src/io/stream.h"
#include "src/text/json.h"

enum {
	RETRY_MS = 500,
	MESSAGE_MAX = 16 * 1024 * 1024,
	HEADERS_MAX = 8192,
	BODY_MAX = 16 * 1024,
};

/* -- failing and trying again -------------------------------------------- */

void kernel_forget(struct kernel *k)
{
	k->engine.lost |= k->id[0] != '\0';
	k->id[0] = '\0';
	k->phase = KERNEL_NONE;
}

/* A step failed: again a little later, while there is patience. May free k. */
void kernel_step_failed(struct kernel *k, const char *why)
{
	char text[KERNEL_WHY_MAX];

	(void)snprintf(text, sizeof(text), "%s", why);
	if (loop_now_ms(k->jupyter->execd->loop) < k->deadline_ms &&
	    !k->jupyter->wrong[0]) {
		timer_start(&k->retry, RETRY_MS);
		return;
	}
	k->phase = k->id[0] ? KERNEL_APART : KERNEL_NONE;
	kernel_run_lost(k, text);
	kernel_prepared(k, -EIO, text);
}

void kernel_on_retry(struct timer *t)
{
	struct kernel *k = container_of(t, struct kernel, retry);

	kernel_step(k, k->phase);
}

static void status_text(char dst[KERNEL_WHY_MAX], const char *what,
			unsigned status, struct span text)
{
	char shown[200];

	if (status)
		(void)snprintf(dst, KERNEL_WHY_MAX,
			       "%s: status %u from Jupyter: %s", what, status,
			       log_escape(text, shown, sizeof(shown)));
	else
		(void)snprintf(dst, KERNEL_WHY_MAX, "%s: %.*s", what,
			       SPAN_FMT(text));
}

static void on_specs(void *ctx, unsigned status, struct span text)
{
	struct kernel *k = ctx;
	struct json *specs = NULL;
	struct span name;
	char why[KERNEL_WHY_MAX];

	k->call = NULL;
	if (status != 200 || json_parse(text, &specs, NULL)) {
		status_text(why, "no list of kernels", status, text);
		kernel_step_failed(k, why);
		return;
	}
	name = message_kernel(specs, k->language);
	if (name.ptr && span_copy(name, k->name, sizeof(k->name))) {
		json_free(specs);
		kernel_step(k, KERNEL_CREATE);
		return;
	}
	json_free(specs);
	(void)snprintf(why, sizeof(why),
		       "no kernel of the Jupyter server speaks %.*s",
		       SPAN_FMT(k->language));
	k->phase = KERNEL_NONE;
	kernel_prepared(k, -ENOENT, why); /* may have freed k */
}

static bool is_id(struct span id)
{
	size_t i;

	for (i = 0; i < id.len; i++)
		if (!char_is_alnum(id.ptr[i]) && id.ptr[i] != '-' &&
		    id.ptr[i] != '_')
			return false;
	return id.len && id.len <= KERNEL_ID_MAX;
}

static bool read_id(struct span text, char dst[KERNEL_ID_MAX + 1])
{
	struct json *j = NULL;
	struct span id;
	bool ok;

	if (json_parse(text, &j, NULL))
		return false;
	id = json_text(json_find(j, "id"));
	ok = is_id(id) && span_copy(id, dst, KERNEL_ID_MAX + 1);
	json_free(j);
	return ok;
}

static void on_created(void *ctx, unsigned status, struct span text)
{
	struct kernel *k = ctx;
	char why[KERNEL_WHY_MAX];

	k->call = NULL;
	if ((status != 200 && status != 201) || !read_id(text, k->id)) {
		status_text(why, "the kernel did not start", status, text);
		kernel_step_failed(k, why);
		return;
	}
	kernel_step(k, KERNEL_CONNECT);
}

static void on_checked(void *ctx, unsigned status, struct span text)
{
	struct kernel *k = ctx;
	char why[KERNEL_WHY_MAX];

	k->call = NULL;
	if (status == 200) {
		kernel_step(k, KERNEL_CONNECT);
	} else if (status == 404) {
		kernel_forget(k);
		kernel_run_lost(
			k, "the kernel is gone from the Jupyter server; its "
			   "state is lost");
		if (k->preparing)
			kernel_step(k, KERNEL_SPECS);
	} else {
		status_text(why, "no word about the kernel", status, text);
		kernel_step_failed(k, why);
	}
}

static void delete_kernel(struct jupyter *j, const char *id)
{
	char path[KERNEL_PATH_MAX];

	(void)snprintf(path, sizeof(path), "/api/kernels/%s", id);
	(void)jupyter_call(j, "DELETE", path, SPAN_NONE, NULL, NULL);
}

/* Nobody wants the kernel that was asked for. */
static void on_orphan(void *ctx, unsigned status, struct span text)
{
	char id[KERNEL_ID_MAX + 1];

	if (status / 100 == 2 && read_id(text, id))
		delete_kernel(ctx, id);
}

static int connect_socket(struct kernel *k, struct diag *d)
{
	const struct websocket_limits limits = { .message_max = MESSAGE_MAX,
						 .whole = true };
	char path[JUPYTER_PATH_MAX + 128 + KERNEL_ID_MAX];
	struct buf headers = BUF_INIT(HEADERS_MAX);
	struct websocket_target target = { .host = span_str(k->jupyter->host) };
	struct stream *s = NULL;
	struct addr at;
	int r;

	(void)snprintf(path, sizeof(path),
		       "%s/api/kernels/%s/channels?session_id=%s",
		       k->jupyter->base, k->id, k->session);
	target.path = span_str(path);
	r = jupyter_resolve(k->jupyter, &at, d);
	if (!r)
		r = jupyter_put_token(k->jupyter, &headers);
	if (!r)
		r = stream_connect(k->jupyter->execd->loop, &at, &s);
	if (!r) {
		target.headers = buf_peek(&headers);
		r = websocket_connect(s, &target, &limits, &kernel_socket_ops,
				      k, &k->socket);
	}
	buf_wipe(&headers);
	if (r)
		(void)diag_set(d, 0, 0, "the connection to the kernel: %s",
			       err_text(r));
	return r;
}

/* -- the steps ------------------------------------------------------------ */

static void ask_kernel(struct kernel *k)
{
	struct buf body = BUF_INIT(BODY_MAX);
	struct json_out o;

	json_start(&o, &body);
	json_open_object(&o, NULL);
	json_put_str(&o, "name", k->name);
	if (k->cwd)
		json_put_str(&o, "path", k->cwd);
	json_close(&o);
	if (json_done(&o))
		kernel_step_failed(k, "the cwd is too long");
	else
		k->call = jupyter_call(k->jupyter, "POST", "/api/kernels",
				       buf_peek(&body), on_created, k);
	buf_fini(&body);
}

void kernel_step(struct kernel *k, enum kernel_phase phase)
{
	char path[KERNEL_PATH_MAX];
	struct diag d = { 0 };

	k->phase = phase;
	switch (phase) {
	case KERNEL_SPECS:
		k->call = jupyter_call(k->jupyter, "GET", "/api/kernelspecs",
				       SPAN_NONE, on_specs, k);
		return;
	case KERNEL_CREATE:
		ask_kernel(k);
		return;
	case KERNEL_CHECK:
		(void)snprintf(path, sizeof(path), "/api/kernels/%s", k->id);
		k->call = jupyter_call(k->jupyter, "GET", path, SPAN_NONE,
				       on_checked, k);
		return;
	case KERNEL_CONNECT:
		if (connect_socket(k, &d))
			kernel_step_failed(k, d.msg);
		return;
	case KERNEL_NONE:
	case KERNEL_READY:
	case KERNEL_APART:
		return;
	}
}

void kernel_be_patient(struct kernel *k)
{
	k->deadline_ms =
		loop_now_ms(k->jupyter->execd->loop) + KERNEL_PATIENCE_MS;
}

void kernel_release(struct kernel *k)
{
	if (k->call && k->phase == KERNEL_CREATE) {
		jupyter_call_give(k->call, on_orphan, k->jupyter);
		k->call = NULL;
	}
	k->call = jupyter_call_cancel(k->call);
	k->socket = websocket_close(k->socket, WEBSOCKET_NORMAL, "");
	if (k->id[0])
		delete_kernel(k->jupyter, k->id);
}
