/* SPDX-License-Identifier: Apache-2.0 */
/* pause.c - a sandbox stands still, goes on, or becomes an image
 *
 * How it works: each is one call of Docker's, then perhaps a change of the
 * record. The fence is not touched by any of them. A container that is already
 * as it is to be, because the record's change was lost the last time, makes
 * Docker refuse, and so does one that has ended and the record does not know
 * yet: so it is looked at before the client is refused too.
 */

#include <stdio.h>
#include <stdlib.h>

#include "src/base/err.h"
#include "src/control/docker/docker.h"
#include "src/control/lifecycle/container.h"
#include "src/control/lifecycle/record.h"
#include "src/control/lifecycle/runtime.h"
#include "src/text/json.h"

enum { PATH_BYTES = 512 };

struct deed {
	const char *verb, *what;
	enum box_state from, to;
	const char *reason, *message;
	const char *wrong_state, *failed; /* codes */
};

static const struct deed pausing = {
	"pause",
	"running",
	BOX_RUNNING,
	BOX_PAUSED,
	"CONTAINER_PAUSED",
	"The container is paused.",
	"DOCKER::SANDBOX_NOT_RUNNING",
	"DOCKER::SANDBOX_PAUSE_FAILED",
};

static const struct deed resuming = {
	"unpause",
	"paused",
	BOX_PAUSED,
	BOX_RUNNING,
	"CONTAINER_RUNNING",
	"The container runs.",
	"DOCKER::SANDBOX_NOT_PAUSED",
	"DOCKER::SANDBOX_RESUME_FAILED",
};

struct doing {
	struct lifecycle *lifecycle;
	const struct deed *deed;
	lifecycle_done_fn *done;
	void *ctx;
	const char *failed;
	struct lifecycle_error no; /* what Docker said first */
	bool missing_is_fine;
	char id[BOX_ID_SIZE];
};

static struct doing *doing_new(struct lifecycle *l, struct span id,
			       lifecycle_done_fn *done, void *ctx)
{
	struct doing *x = must_alloc(sizeof(*x));

	x->lifecycle = l;
	(void)span_copy(id, x->id, sizeof(x->id));
	x->done = done;
	x->ctx = ctx;
	return x;
}

static void doing_end(struct doing *x, const struct lifecycle_error *no)
{
	x->done(x->ctx, no);
	free(x);
}

static void doing_fail(struct doing *x, unsigned status, const char *code,
		       const char *message)
{
	struct lifecycle_error no;

	(void)lifecycle_error_set(&no, status, code, "%s", message);
	doing_end(x, &no);
}

/* -- pausing and resuming ------------------------------------------------- */

static void on_kept(void *ctx, const struct refusal *why)
{
	struct doing *x = ctx;

	if (why->status == 409)
		doing_fail(x, 409, x->deed->wrong_state,
			   "the sandbox is being removed");
	else if (why->status)
		doing_fail(x, why->status == 503 ? 503 : 500, x->deed->failed,
			   why->diag.msg);
	else
		doing_end(x, NULL);
}

static void deed_keep(struct doing *x)
{
	record_set_state(x->lifecycle, span_str(x->id), x->deed->to,
			 x->deed->reason, x->deed->message, on_kept, x);
}

static bool is_done(const struct doing *x, const struct docker_answer *a)
{
	const struct json *state = json_find(a->json, "State");

	return docker_is_ok(a) && json_bool(json_find(state, "Running")) &&
	       json_bool(json_find(state, "Paused")) ==
		       (x->deed->to == BOX_PAUSED);
}

static void on_looked(void *ctx, const struct docker_answer *a)
{
	struct doing *x = ctx;

	if (is_done(x, a))
		deed_keep(x);
	else if (docker_is_ok(a) &&
		 !json_bool(json_find(json_find(a->json, "State"), "Running")))
		doing_fail(x, 409, x->deed->wrong_state,
			   "the container of the sandbox does not run");
	else
		doing_end(x, &x->no);
}

static void on_done(void *ctx, const struct docker_answer *a)
{
	struct doing *x = ctx;
	const struct box *b = boxes_find(&x->lifecycle->boxes, span_str(x->id));
	char path[PATH_BYTES];

	if (docker_is_ok(a)) {
		deed_keep(x);
		return;
	}
	if (a->status == 404) {
		doing_fail(x, 404, "DOCKER::SANDBOX_NOT_FOUND", a->message);
		return;
	}
	(void)lifecycle_error_set(&x->no, runtime_status_of(a), x->deed->failed,
				  "%s", a->message);
	if (a->status < 0 || x->lifecycle->ended || !b) {
		doing_end(x, &x->no);
		return;
	}
	(void)snprintf(path, sizeof(path), "/containers/%s/json", b->container);
	(void)docker_ask(x->lifecycle->docker, "GET", path, SPAN_NONE,
			 on_looked, x);
}

static void deed_do(struct lifecycle *l, const struct deed *deed,
		    struct span id, lifecycle_done_fn *done, void *ctx)
{
	struct doing *x = doing_new(l, id, done, ctx);
	const struct box *b = boxes_find(&l->boxes, id);
	char path[PATH_BYTES];

	x->deed = deed;
	if (!b) {
		doing_fail(x, 404, "DOCKER::SANDBOX_NOT_FOUND",
			   "there is no such sandbox");
		return;
	}
	if (b->state != deed->from) {
		(void)snprintf(path, sizeof(path), "the sandbox is %s, not %s",
			       box_state_name(b->state), deed->what);
		doing_fail(x, 409, deed->wrong_state, path);
		return;
	}
	(void)snprintf(path, sizeof(path), "/containers/%s/%s", b->container,
		       deed->verb);
	(void)docker_ask(l->docker, "POST", path, SPAN_NONE, on_done, x);
}

void lifecycle_pause(struct lifecycle *l, struct span id,
		     lifecycle_done_fn *done, void *ctx)
{
	deed_do(l, &pausing, id, done, ctx);
}

void lifecycle_resume(struct lifecycle *l, struct span id,
		      lifecycle_done_fn *done, void *ctx)
{
	deed_do(l, &resuming, id, done, ctx);
}

/* -- images of sandboxes -------------------------------------------------- */

static void on_image(void *ctx, const struct docker_answer *a)
{
	struct doing *x = ctx;

	if (docker_is_ok(a) || (x->missing_is_fine && a->status == 404))
		doing_end(x, NULL);
	else
		doing_fail(x, a->status == 409 ? 409 : runtime_status_of(a),
			   x->failed, a->message);
}

/* The container's settings would come along, our entrypoint among them: a
 * sandbox that is made of the image gets its own anyway. Labels must not: they
 * would make a container of somebody's look like a sandbox. */
void lifecycle_commit(struct lifecycle *l, struct span id, struct span snapshot,
		      lifecycle_done_fn *done, void *ctx)
{
	struct doing *x = doing_new(l, id, done, ctx);
	const struct box *b = boxes_find(&l->boxes, id);
	char image[CONTAINER_IMAGE_MAX], path[2 * PATH_BYTES + 256], *tag;

	x->failed = "SNAPSHOT::CREATE_FAILED";
	if (!b || !b->container[0]) {
		doing_fail(x, 404, "DOCKER::SANDBOX_NOT_FOUND",
			   "there is no such sandbox");
		return;
	}
	container_snapshot_image(snapshot, image, sizeof(image));
	tag = strchr(image, ':');
	*tag++ = '\0';
	(void)snprintf(path, sizeof(path),
		       "/commit?container=%s&repo=%s&tag=%s&pause=1",
		       b->container, image, tag);
	(void)docker_ask(l->docker, "POST", path,
			 SPAN("{\"Labels\":{\"" CONTAINER_LABEL "\":\"\"}}"),
			 on_image, x);
}

void lifecycle_drop_image(struct lifecycle *l, struct span snapshot,
			  lifecycle_done_fn *done, void *ctx)
{
	struct doing *x = doing_new(l, SPAN_NONE, done, ctx);
	char image[CONTAINER_IMAGE_MAX], path[PATH_BYTES * 2];

	x->failed = "DOCKER::SNAPSHOT_IMAGE_REMOVE_FAILED";
	x->missing_is_fine = true;
	container_snapshot_image(snapshot, image, sizeof(image));
	(void)snprintf(path, sizeof(path), "/images/%s", image);
	(void)docker_ask(l->docker, "DELETE", path, SPAN_NONE, on_image, x);
}
