/* SPDX-License-Identifier: Apache-2.0 */
/* create_image.c - the step that has the image: it is there, or it is pulled
 *
 * How it works: an image that is there is taken as it is and no registry is
 * asked, whatever credentials came with the request. A pull may take as long as
 * lifecycle.pullTimeoutS says, however much of it is told to be under way; then
 * the call is given up, and with the connection the daemon gives up the pull.
 * Creations of one image that pull at a time are one pull of Docker's.
 *
 * What the daemon says of a failure may be a registry's own words. One that
 * puts there what it was sent would have it in our log: then nothing is said
 * but that.
 */

#include <stdio.h>

#include "src/base/base64.h"
#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/secret.h"
#include "src/control/control.h"
#include "src/control/docker/docker.h"
#include "src/control/lifecycle/creation.h"
#include "src/control/lifecycle/registry_echo.h"
#include "src/role/config.h"
#include "src/text/json.h"

enum { AUTH_BYTES = 4096, PATH_BYTES = 4096 };

/* base64url of {"username", "password"}, as Docker wants it. False: too long.
 */
static bool auth_make(const struct create_request *q, struct buf *out)
{
	struct buf text = BUF_INIT(AUTH_BYTES);
	struct json_out o;
	char *at;
	size_t i, len;
	bool fits;

	json_start(&o, &text);
	json_open_object(&o, NULL);
	json_put_text(&o, "username", q->registry_user);
	json_put_text(&o, "password", q->registry_password);
	json_close(&o);
	len = BASE64_SIZE(buf_len(&text));
	fits = !json_done(&o) && !buf_reserve(out, len, &at);
	if (fits) {
		base64_encode(buf_peek(&text), at);
		for (i = 0; i < len; i++)
			at[i] = at[i] == '+' ? '-' : at[i] == '/' ? '_' : at[i];
		buf_commit(out, len);
	}
	buf_wipe(&text);
	return fits;
}

/* {"Config": {"User": "name-or-number[:group]"}}; none is root. */
static void image_found(struct creation *c, const struct json *image)
{
	struct span user =
		json_text(json_find(json_find(image, "Config"), "User"));

	user = span_cut(&user, ':');
	c->has_user = user.len && !span_eq(user, SPAN("root")) &&
		      !span_eq(user, SPAN("0"));
	creation_next(c);
}

static void image_look(struct creation *c, docker_fn *fn)
{
	struct buf path = BUF_INIT(PATH_BYTES);

	must(!docker_put_escaped(&path, span_str(c->image)) &&
	     !buf_put(&path, span_of("", 1)));
	creation_ask(c, "GET", SPAN_NONE, fn, "/images/%s/json",
		     buf_peek(&path).ptr);
	buf_fini(&path);
}

static void on_seen(void *ctx, const struct docker_answer *a)
{
	struct creation *c = ctx;

	if (!creation_goes_on(c))
		return;
	if (docker_is_ok(a))
		image_found(c, a->json);
	else
		creation_fail(c, runtime_status_of(a),
			      "DOCKER::SANDBOX_IMAGE_PULL_FAILED",
			      "the image %s was pulled, but: %s", c->image,
			      a->message);
}

static void image_came(struct creation *c)
{
	image_look(c, on_seen);
}

static void on_pulled(void *ctx, const struct docker_answer *a)
{
	struct creation *c = ctx;
	bool echoes;

	timer_stop(&c->timer);
	if (!creation_goes_on(c))
		return;
	if (docker_is_ok(a)) {
		creation_step_back(c, image_came);
		return;
	}
	echoes = registry_echoes(a->message, c->q->registry_user,
				 c->q->registry_password);
	creation_fail(c, runtime_status_of(a),
		      "DOCKER::SANDBOX_IMAGE_PULL_FAILED",
		      "the image %s could not be pulled: %s", c->image,
		      echoes ? "the registry refuses in words that have the "
			       "credentials in them"
			     : a->message);
}

/* Nothing of a registry's own words is in what a daemon tells of progress. */
static void on_late(struct creation *c)
{
	char said[DOCKER_MESSAGE_SIZE]; /* it outlives the call */

	(void)snprintf(said, sizeof(said), "%s", docker_pull_said(c->call));
	creation_fail(c, 503, "DOCKER::SANDBOX_IMAGE_PULL_FAILED",
		      "the image %s could not be pulled: it has not come "
		      "within %u s; the Docker daemon said %s%s",
		      c->image, c->lifecycle->control->config->pull_timeout_s,
		      *said ? "at last: " : "nothing", said);
}

static void image_pull(struct creation *c)
{
	struct buf auth = BUF_INIT(2 * AUTH_BYTES);
	struct span given = SPAN_NONE;

	if (c->q->registry_user.len || c->q->registry_password.len) {
		if (!auth_make(c->q, &auth)) {
			creation_fail(c, 400, "SANDBOX::INVALID_PARAMETER",
				      "image.auth: too long");
			return;
		}
		given = buf_peek(&auth);
	}
	c->call = docker_pull(c->lifecycle->docker, span_str(c->image), given,
			      on_pulled, c);
	buf_wipe(&auth);
	c->on_time = on_late;
	timer_start(&c->timer,
		    (uint64_t)c->lifecycle->control->config->pull_timeout_s *
			    1000);
	creation_step_aside(c);
}

static void on_looked(void *ctx, const struct docker_answer *a)
{
	struct creation *c = ctx;

	if (!creation_goes_on(c))
		return;
	if (docker_is_ok(a))
		image_found(c, a->json);
	else if (a->status == 404 && c->q->box->snapshot_id.len)
		creation_fail(c, 404, "SNAPSHOT::NOT_FOUND",
			      "the image of the snapshot is not there any "
			      "more");
	else if (a->status == 404)
		image_pull(c);
	else
		creation_fail(c, runtime_status_of(a),
			      "DOCKER::SANDBOX_IMAGE_PULL_FAILED",
			      "the image %s: %s", c->image, a->message);
}

void step_image(struct creation *c)
{
	image_look(c, on_looked);
}
