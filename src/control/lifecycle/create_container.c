/* SPDX-License-Identifier: Apache-2.0 */
/* create_container.c - the steps that make the container, fill it, start it */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/control.h"
#include "src/control/docker/docker.h"
#include "src/control/lifecycle/archive.h"
#include "src/control/lifecycle/bridge.h"
#include "src/control/lifecycle/creation.h"
#include "src/control/lifecycle/record.h"
#include "src/role/config.h"
#include "src/text/json.h"

enum {
	NOT_MODIFIED = 304,
	BODY_BYTES = 4 * 1024 * 1024,
	ARCHIVE_BYTES = EXECD_BYTES_MAX + CA_INSIDE_MAX + 64 * 1024,
};

/* Docker, of a folder of the node. */
#define NO_SOURCE "bind source path does not exist"

#define START_FAILED "DOCKER::SANDBOX_START_FAILED"

/* -- the kit -------------------------------------------------------------- */

static void on_kit(void *ctx, unsigned status, const char *why)
{
	struct creation *c = ctx;

	if (!creation_goes_on(c))
		return;
	if (status)
		creation_fail(c, status,
			      "DOCKER::SANDBOX_EXECD_DISTRIBUTION_FAILED",
			      "execd could not be laid ready for it: %s", why);
	else
		creation_next(c);
}

void step_kit(struct creation *c)
{
	c->is_bound = true;
	kit_ensure(&c->lifecycle->runtime->kit, c->image, on_kit, c);
}

/* -- made ----------------------------------------------------------------- */

struct named {
	char container[65];
};

static bool edit_container(void *data, struct box *b)
{
	const struct named *n = data;

	memcpy(b->container, n->container, sizeof(b->container));
	return true;
}

/* What Docker says then has the path in it. */
static bool names_kit(const struct creation *c, const struct docker_answer *a)
{
	return strstr(a->message, c->lifecycle->runtime->kit.source);
}

/* An operator who prunes volumes takes it away. Once. */
static bool kit_was_missing(struct creation *c, const struct docker_answer *a)
{
	if (a->status != 400 || c->has_met_no_kit || !names_kit(c, a))
		return false;
	c->has_met_no_kit = true;
	kit_forget(&c->lifecycle->runtime->kit);
	return true;
}

static void on_bridge(void *ctx, const char *why)
{
	struct creation *c = ctx;

	if (!creation_goes_on(c))
		return;
	if (why)
		creation_fail(c, 503, "DOCKER::INITIALIZATION_ERROR", "%s",
			      why);
	else
		creation_back(c, c->again);
}

/* An operator who prunes takes the network away too, while no sandbox runs. It
 * is made anew, and the step done again. Once. */
static bool network_was_missing(struct creation *c,
				const struct docker_answer *a,
				void (*step)(struct creation *c))
{
	struct lifecycle *l = c->lifecycle;

	if (a->status != 404 || c->has_met_no_network ||
	    !strstr(a->message, "network " NETWORK_NAME " not found"))
		return false;
	c->has_met_no_network = c->is_bound = true;
	c->again = step;
	log_warn("the network " NETWORK_NAME " is gone; it is made anew");
	bridge_ensure(l->docker, l->network, on_bridge, c);
	return true;
}

static bool volume_was_missing(const struct creation *c,
			       const struct docker_answer *a)
{
	return a->status == 400 && strstr(a->message, NO_SOURCE) &&
	       !names_kit(c, a);
}

static void on_made(void *ctx, const struct docker_answer *a)
{
	struct creation *c = ctx;
	struct named *n;

	if (!creation_goes_on(c))
		return;
	if (kit_was_missing(c, a)) {
		creation_back(c, step_kit);
		return;
	}
	if (network_was_missing(c, a, step_container))
		return;
	if (volume_was_missing(c, a)) {
		creation_fail(c, 400, "VOLUME::INVALID_SUB_PATH",
			      "a folder that was to be mounted is not there");
		return;
	}
	if (!docker_is_ok(a) ||
	    !span_copy(json_text(json_find(a->json, "Id")), c->container,
		       sizeof(c->container)) ||
	    !c->container[0]) {
		creation_fail(c, a->status == 400 ? 400 : runtime_status_of(a),
			      START_FAILED,
			      "the container could not be made: %s",
			      a->message);
		return;
	}
	n = must_alloc(sizeof(*n));
	memcpy(n->container, c->container, sizeof(n->container));
	c->is_bound = true;
	record_edit(c->lifecycle, span_str(c->id), edit_container, n,
		    creation_changed, c);
}

const char **creation_sources(const struct creation *c)
{
	unsigned count = c->q->volume_count, i;
	const char **sources = must_alloc((count + 1) * sizeof(*sources));

	for (i = 0; i < count; i++)
		sources[i] = c->sources[i];
	return sources;
}

/* "&platform=os/arch", where the client has said both. */
static void platform_put(const struct box *b, char *dst, size_t size)
{
	dst[0] = '\0';
	if (b->platform_os.len && b->platform_arch.len)
		(void)snprintf(dst, size, "&platform=%.*s%%2F%.*s",
			       SPAN_FMT(b->platform_os),
			       SPAN_FMT(b->platform_arch));
}

void step_container(struct creation *c)
{
	struct buf body = BUF_INIT(BODY_BYTES);
	char name[CONTAINER_NAME_SIZE], platform[128], path[256];
	const char **volumes = creation_sources(c);
	const struct container_sources sources = {
		.kit = c->lifecycle->runtime->kit.source,
		.volumes = volumes,
	};
	struct docker_request q = {
		.method = "POST",
		.path = path,
		.version = container_version(c->q, volumes),
	};

	container_name(c->id, name);
	platform_put(c->q->box, platform, sizeof(platform));
	(void)snprintf(path, sizeof(path), "/containers/create?name=%s%s", name,
		       platform);
	if (container_emit(&body, c->q, c->lifecycle->network,
			   c->lifecycle->control->config, &sources)) {
		creation_fail(c, 400, "SANDBOX::INVALID_PARAMETER",
			      "the request is too large");
	} else {
		q.body = buf_peek(&body);
		c->is_bound = true;
		c->call = docker_begin(c->lifecycle->docker, &q, on_made, c);
	}
	free(volumes);
	buf_wipe(&body);
}

/* -- filled --------------------------------------------------------------- */

static void on_placed(void *ctx, const struct docker_answer *a)
{
	struct creation *c = ctx;

	if (!creation_goes_on(c))
		return;
	if (docker_is_ok(a))
		creation_next(c);
	else
		creation_fail(c, runtime_status_of(a),
			      "DOCKER::SANDBOX_EXECD_DISTRIBUTION_FAILED",
			      "the folder of execd could not be put into the "
			      "container: %s",
			      a->message);
}

/* The folder is everybody's, since nobody but the daemon is there yet, as
 * whatever user the image has: it is that user's, who can make files there and
 * not take ours away. If it is root after all it closes the folder. */
static int archive_make(const struct creation *c, bool with_files,
			struct buf *out)
{
	const struct lifecycle *l = c->lifecycle;
	int r;

	r = archive_put_folder(out, CONTAINER_FOLDER, 01777);
	if (!r && with_files)
		r = archive_put_file(out, CONTAINER_EXECD, 0755,
				     buf_peek(&l->runtime->kit.execd));
	if (!r && with_files)
		r = archive_put_file(out, CONTAINER_CA, 0644,
				     buf_peek(&l->control->ca_inside));
	return r ? r : archive_end(out);
}

/* Mostly there is nothing to do, and it costs: dockerd starts a program of its
 * own for each archive. Root writes where it likes; another user needs a folder
 * that is open; and what has no files of the kit mounted (container.c) gets
 * them here. */
void step_place(struct creation *c)
{
	const char **sources = creation_sources(c);
	bool with_files = container_confirms_any(c->q, sources);
	struct buf archive = BUF_INIT(ARCHIVE_BYTES);
	struct docker_request q = {
		.method = "PUT",
		.type = "application/x-tar",
	};
	char path[128];

	free(sources);
	if (!with_files && !c->has_user) {
		creation_next(c);
		return;
	}
	(void)snprintf(path, sizeof(path), "/containers/%s/archive?path=%%2F",
		       c->container);
	must(!archive_make(c, with_files, &archive));
	q.path = path;
	q.body = buf_peek(&archive);
	c->is_bound = true;
	c->call = docker_begin(c->lifecycle->docker, &q, on_placed, c);
	buf_fini(&archive);
}

/* -- started -------------------------------------------------------------- */

/* Docker 26 and newer opens the subPath of a volume only now, and answers 500,
 * whatever was wrong with it. */
static bool is_sub_path_fault(const struct creation *c,
			      const struct docker_answer *a)
{
	static const char *const said[] = {
		"escapes the base directory",
		"cannot access path ",
		"resolving symlinks in combined path",
		"openat2 ",
	};
	bool has_any = false, is_said = false;
	unsigned i;

	for (i = 0; i < c->q->volume_count; i++)
		has_any |= c->q->volumes[i].kind == VOLUME_NAMED &&
			   c->q->volumes[i].sub_path.len;
	for (i = 0; i < ARRAY_LEN(said); i++)
		is_said |= strstr(a->message, said[i]) != NULL;
	return has_any && is_said && a->status >= 400;
}

static void on_started(void *ctx, const struct docker_answer *a)
{
	struct creation *c = ctx;

	if (!creation_goes_on(c))
		return;
	/* it runs already: the first answer was lost, libcurl asked again */
	if (docker_is_ok(a) || a->status == NOT_MODIFIED)
		creation_next(c);
	else if (network_was_missing(c, a, step_start))
		return;
	else if (is_sub_path_fault(c, a))
		creation_fail(c, 400, "VOLUME::INVALID_SUB_PATH",
			      "the subPath of a volume leads out of it, or is "
			      "not there");
	else
		creation_fail(c, runtime_status_of(a), START_FAILED,
			      "the container could not be started: %s",
			      a->message);
}

void step_start(struct creation *c)
{
	creation_ask(c, "POST", SPAN_NONE, on_started, "/containers/%s/start",
		     c->container);
}
