/* SPDX-License-Identifier: Apache-2.0 */
/* create_volumes.c - the step that has every volume there, and its real place
 */

#include <stdio.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/control/control.h"
#include "src/control/docker/docker.h"
#include "src/control/lifecycle/creation.h"
#include "src/role/config.h"
#include "src/text/json.h"

enum { PATH_BYTES = 1024, BODY_BYTES = 2048 };

static void volumes_go_on(struct creation *c);

static void volume_done(struct creation *c)
{
	c->volume++;
	volumes_go_on(c);
}

static void volume_fail(struct creation *c, unsigned status, const char *code,
			const char *why)
{
	creation_fail(c, status, code, "volumes[%u]: %s", c->volume, why);
}

/* -- named volumes of Docker ---------------------------------------------- */

/* A volume of a driver's, or one that is mounted itself, is not where its name
 * says. The path goes to execd with a colon behind it. */
static bool has_plain_folder(const struct json *volume,
			     const struct create_volume *v)
{
	return span_eq(json_text(json_find(volume, "Driver")), SPAN("local")) &&
	       !json_count(json_find_some(volume, "Options")) &&
	       span_find(v->mount_path, ':') == v->mount_path.len &&
	       span_find(v->sub_path, ':') == v->sub_path.len;
}

/* What a folder inside a volume leads to can be changed by whoever has the
 * volume mounted, at any moment until it is mounted itself: a link there would
 * lead to any place of the node. Docker, from 26.0 on, opens it so that no link
 * leads out, and mounts what it opened. An older one is given the path, and
 * execd looks at what was mounted before it lets anything run
 * (src/execd/init/mounts.h, create_places.c). */
static void volume_found(struct creation *c, const struct json *volume)
{
	const struct create_volume *v = &c->q->volumes[c->volume];
	struct span folder = json_text(json_find(volume, "Mountpoint"));
	char *to = c->sources[c->volume];
	int n;

	if (!v->sub_path.len ||
	    docker_serves(c->lifecycle->docker, SUBPATH_MAJOR, SUBPATH_MINOR)) {
		volume_done(c);
		return;
	}
	n = snprintf(to, sizeof(c->sources[0]), "%.*s/%.*s", SPAN_FMT(folder),
		     SPAN_FMT(v->sub_path));
	if (!has_plain_folder(volume, v) || !span_starts(folder, SPAN("/")) ||
	    n < 0 || (size_t)n >= sizeof(c->sources[0]))
		volume_fail(c, 400, "VOLUME::PVC_SUBPATH_UNSUPPORTED_DRIVER",
			    "subPath of this volume needs Docker 26.0 or newer "
			    "(API " SUBPATH_VERSION ") on this node: it is no "
			    "plain folder of the driver \"local\"");
	else
		volume_done(c);
}

static void on_made(void *ctx, const struct docker_answer *a)
{
	struct creation *c = ctx;

	if (!creation_goes_on(c))
		return;
	if (docker_is_ok(a))
		volume_found(c, a->json);
	else
		volume_fail(c, runtime_status_of(a),
			    "VOLUME::PVC_INSPECT_FAILED", a->message);
}

/* The label says for whom it was made: it goes with that one, if it is to. */
static void volume_make(struct creation *c, const struct create_volume *v)
{
	struct buf body = BUF_INIT(BODY_BYTES);
	struct json_out o;

	json_start(&o, &body);
	json_open_object(&o, NULL);
	json_put_text(&o, "Name", v->source);
	json_open_object(&o, "Labels");
	json_put_str(&o, CONTAINER_LABEL, c->id);
	json_put_str(&o, "opensandbox.io/volume-managed-by", "server");
	json_close(&o);
	json_close(&o);
	must(!json_done(&o));
	creation_ask(c, "POST", buf_peek(&body), on_made, "/volumes/create");
	buf_fini(&body);
}

static void on_volume(void *ctx, const struct docker_answer *a)
{
	const struct create_volume *v;
	struct creation *c = ctx;

	if (!creation_goes_on(c))
		return;
	v = &c->q->volumes[c->volume];
	if (docker_is_ok(a))
		volume_found(c, a->json);
	else if (a->status == 404 && v->create)
		volume_make(c, v);
	else if (a->status == 404)
		volume_fail(c, 400, "VOLUME::PVC_NOT_FOUND",
			    "there is no such volume, and it is not to be "
			    "made");
	else
		volume_fail(c, runtime_status_of(a),
			    "VOLUME::PVC_INSPECT_FAILED", a->message);
}

static void volume_named(struct creation *c, const struct create_volume *v)
{
	struct buf path = BUF_INIT(PATH_BYTES);

	must(span_copy(v->source, c->sources[c->volume],
		       sizeof(c->sources[0])));
	must(!docker_put_escaped(&path, v->source) &&
	     !buf_put(&path, span_of("", 1)));
	creation_ask(c, "GET", SPAN_NONE, on_volume, "/volumes/%s",
		     buf_peek(&path).ptr);
	buf_fini(&path);
}

/* -- all of them ---------------------------------------------------------- */

static const char *const *allowed_paths(const struct creation *c)
{
	const struct config_strings *s =
		&c->lifecycle->control->config->host_paths;
	const char **all = must_alloc((s->count + 1) * sizeof(*all));
	unsigned i;

	for (i = 0; i < s->count; i++)
		all[i] = s->items[i];
	return all;
}

/* False: it has failed. */
static bool volume_host(struct creation *c, const struct create_volume *v)
{
	const char *const *allowed = allowed_paths(c);
	struct lifecycle_error no;
	int r;

	r = host_path_resolve(v, allowed, c->sources[c->volume], &no);
	free((void *)(uintptr_t)allowed);
	if (r)
		volume_fail(c, no.status, no.code, no.message);
	return !r;
}

static void volumes_go_on(struct creation *c)
{
	const struct create_volume *v;

	for (; c->volume < c->q->volume_count; c->volume++) {
		v = &c->q->volumes[c->volume];
		if (!container_may_mount(v->mount_path)) {
			volume_fail(c, 400, "VOLUME::INVALID_MOUNT_PATH",
				    "it would hide /" CONTAINER_FOLDER);
			return;
		}
		if (v->kind == VOLUME_NAMED) {
			volume_named(c, v);
			return;
		}
		if (!volume_host(c, v))
			return;
	}
	creation_next(c);
}

void step_volumes(struct creation *c)
{
	volumes_go_on(c);
}
