/* SPDX-License-Identifier: Apache-2.0 */
/* kit.c - the volume with execd and the CA: made, filled, told of */

#include "src/control/lifecycle/kit.h"

#include <stdio.h>
#include <stdlib.h>

#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/control.h"
#include "src/control/docker/docker.h"
#include "src/control/lifecycle/archive.h"
#include "src/control/lifecycle/container.h"
#include "src/control/lifecycle/lifecycle.h"
#include "src/control/lifecycle/runtime.h"
#include "src/text/json.h"

#define HELPER "kit" /* in the place of a sandbox's id */
#define FOLDER "/kit"

enum {
	BODY_BYTES = 8 * 1024,
	ARCHIVE_BYTES = EXECD_BYTES_MAX + CA_INSIDE_MAX + 64 * 1024,
};

struct waiter {
	struct list link;
	kit_fn *fn;
	void *ctx;
	char image[CONTAINER_IMAGE_MAX];
};

static void work_begin(struct kit *k);

static struct waiter *waiter_first(const struct kit *k)
{
	return list_first(&k->waiters, struct waiter, link);
}

static struct waiter *waiter_free(struct waiter *w)
{
	list_remove(&w->link);
	free(w);
	return NULL;
}

/* -- the end -------------------------------------------------------------- */

/* An image that cannot be had fails the one who brought it and nobody else:
 * the next one tries with its own. */
static void work_end(struct kit *k)
{
	struct waiter *w = waiter_first(k);
	kit_fn *fn;
	void *ctx;

	k->is_working = false;
	k->is_there = !k->status;
	if (!k->is_there) {
		log_warn("execd was not laid into the volume " KIT_VOLUME
			 ": %s",
			 k->why);
		fn = w->fn;
		ctx = w->ctx;
		waiter_free(w);
		fn(ctx, k->status, k->why);
		if (waiter_first(k) && !k->is_working && !k->lifecycle->ended)
			work_begin(k);
		return;
	}
	while (!k->is_working && (w = waiter_first(k))) {
		fn = w->fn;
		ctx = w->ctx;
		waiter_free(w);
		fn(ctx, 0, "");
	}
}

static void on_helper_gone(void *ctx, const struct docker_answer *a)
{
	struct kit *k = ctx;

	if (k->lifecycle->ended)
		return;
	if (!docker_is_ok(a) && a->status != 404)
		log_warn("the container " KIT_VOLUME " stays for now: %s",
			 a->message);
	work_end(k);
}

static void helper_remove(struct kit *k, docker_fn *fn)
{
	(void)docker_ask(k->lifecycle->docker, "DELETE",
			 "/containers/" KIT_VOLUME "?force=1&v=1", SPAN_NONE,
			 fn, k);
}

/* True: it went well. */
static bool work_goes_on(struct kit *k, const struct docker_answer *a,
			 const char *what)
{
	if (k->lifecycle->ended)
		return false;
	if (docker_is_ok(a))
		return true;
	k->status = runtime_status_of(a);
	(void)snprintf(k->why, sizeof(k->why), "%s: %s", what, a->message);
	helper_remove(k, on_helper_gone);
	return false;
}

/* -- filled --------------------------------------------------------------- */

static void on_filled(void *ctx, const struct docker_answer *a)
{
	struct kit *k = ctx;

	if (work_goes_on(k, a, "the files could not be put there"))
		helper_remove(k, on_helper_gone);
}

static void fill(struct kit *k)
{
	struct buf archive = BUF_INIT(ARCHIVE_BYTES);
	struct docker_request q = {
		.method = "PUT",
		.path = "/containers/" KIT_VOLUME "/archive?path=" FOLDER,
		.type = "application/x-tar",
	};

	buf_clear(&k->ca);
	must(!buf_put(&k->ca, buf_peek(&k->lifecycle->control->ca_inside)));
	must(!archive_put_file(&archive, KIT_EXECD, 0755,
			       buf_peek(&k->execd)) &&
	     !archive_put_file(&archive, KIT_CA, 0644, buf_peek(&k->ca)) &&
	     !archive_end(&archive));
	q.body = buf_peek(&archive);
	(void)docker_begin(k->lifecycle->docker, &q, on_filled, k);
	buf_fini(&archive);
}

/* -- the helper ----------------------------------------------------------- */

static void on_helper(void *ctx, const struct docker_answer *a)
{
	struct kit *k = ctx;

	if (work_goes_on(k, a, "no container could be made for it"))
		fill(k);
}

static void helper_make(struct kit *k)
{
	struct buf body = BUF_INIT(BODY_BYTES);
	struct json_out o;

	json_start(&o, &body);
	json_open_object(&o, NULL);
	json_put_str(&o, "Image", waiter_first(k)->image);
	json_open_array(&o, "Entrypoint"); /* it is never started */
	json_put_str(&o, NULL, FOLDER "/" KIT_EXECD);
	json_close(&o);
	json_open_object(&o, "Labels");
	json_put_str(&o, CONTAINER_LABEL, HELPER);
	json_close(&o);
	json_open_object(&o, "HostConfig");
	json_put_str(&o, "NetworkMode", "none");
	json_open_array(&o, "Mounts");
	json_open_object(&o, NULL);
	json_put_str(&o, "Type", "volume");
	json_put_str(&o, "Source", KIT_VOLUME);
	json_put_str(&o, "Target", FOLDER);
	json_open_object(&o, "VolumeOptions");
	json_put_bool(&o, "NoCopy", true);
	json_close(&o);
	json_close(&o);
	json_close(&o);
	json_close(&o);
	json_close(&o);
	must(!json_done(&o));
	(void)docker_ask(k->lifecycle->docker, "POST",
			 "/containers/create?name=" KIT_VOLUME, buf_peek(&body),
			 on_helper, k);
	buf_fini(&body);
}

/* -- the volume ----------------------------------------------------------- */

static void on_volume(void *ctx, const struct docker_answer *a)
{
	struct kit *k = ctx;

	if (!work_goes_on(k, a, "the volume could not be made"))
		return;
	if (span_copy(json_text(json_find(a->json, "Mountpoint")), k->source,
		      sizeof(k->source)) &&
	    k->source[0] == '/') {
		helper_make(k);
		return;
	}
	k->status = 500;
	(void)snprintf(k->why, sizeof(k->why),
		       "the Docker daemon does not say where the volume is");
	helper_remove(k, on_helper_gone);
}

/* Makes none where there is one. */
static void on_cleared(void *ctx, const struct docker_answer *a)
{
	struct kit *k = ctx;

	(void)a; /* what is in the way is said by who makes the helper */
	if (!k->lifecycle->ended)
		(void)docker_ask(
			k->lifecycle->docker, "POST", "/volumes/create",
			SPAN("{\"Name\":\"" KIT_VOLUME "\"}"), on_volume, k);
}

static void work_begin(struct kit *k)
{
	k->is_working = true;
	k->status = 0;
	helper_remove(k, on_cleared);
}

/* -- asked for ------------------------------------------------------------ */

/* The CA may be another one since. */
static bool is_ready(const struct kit *k)
{
	return k->is_there && !k->is_working &&
	       span_eq(buf_peek(&k->ca),
		       buf_peek(&k->lifecycle->control->ca_inside));
}

void kit_ensure(struct kit *k, const char *image, kit_fn *fn, void *ctx)
{
	struct waiter *w;

	if (is_ready(k)) {
		fn(ctx, 0, "");
		return;
	}
	w = must_alloc(sizeof(*w));
	w->fn = fn;
	w->ctx = ctx;
	(void)snprintf(w->image, sizeof(w->image), "%s", image);
	list_init(&w->link);
	list_push(&k->waiters, &w->link);
	if (!k->is_working)
		work_begin(k);
}

void kit_forget(struct kit *k)
{
	k->is_there = false;
}

bool kit_is_at_work(const struct kit *k, struct span id)
{
	return k->is_working && span_eq(id, SPAN(HELPER));
}

void kit_init(struct kit *k, struct lifecycle *l)
{
	k->lifecycle = l;
	buf_init(&k->execd, EXECD_BYTES_MAX);
	buf_init(&k->ca, CA_INSIDE_MAX);
	list_init(&k->waiters);
}

void kit_fini(struct kit *k)
{
	while (waiter_first(k))
		waiter_free(waiter_first(k));
	buf_fini(&k->execd);
	buf_fini(&k->ca);
}
