/* SPDX-License-Identifier: Apache-2.0 */
/* create_container.c - the steps that make the container, fill it, start it */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/secret.h"
#include "src/control/control.h"
#include "src/control/docker/docker.h"
#include "src/control/lifecycle/archive.h"
#include "src/control/lifecycle/creation.h"
#include "src/control/lifecycle/record.h"
#include "src/role/config.h"
#include "src/text/json.h"

enum {
	BODY_BYTES = 4 * 1024 * 1024,
	ARCHIVE_BYTES = EXECD_BYTES_MAX + CA_INSIDE_MAX + 64 * 1024,
};

/* Docker, of a folder of the node. */
#define NO_SOURCE "bind source path does not exist"

#define START_FAILED "DOCKER::SANDBOX_START_FAILED"

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

static void on_made(void *ctx, const struct docker_answer *a)
{
	struct creation *c = ctx;
	struct named *n;

	if (!creation_goes_on(c))
		return;
	if (a->status == 400 && strstr(a->message, NO_SOURCE)) {
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

static const char **sources_of(const struct creation *c)
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
	const char **sources = sources_of(c);
	struct docker_request q = {
		.method = "POST",
		.path = path,
		.version = container_version(c->q, sources),
	};

	container_name(c->id, name);
	platform_put(c->q->box, platform, sizeof(platform));
	(void)snprintf(path, sizeof(path), "/containers/create?name=%s%s", name,
		       platform);
	if (container_emit(&body, c->q, c->lifecycle->network,
			   c->lifecycle->control->config, sources)) {
		creation_fail(c, 400, "SANDBOX::INVALID_PARAMETER",
			      "the request is too large");
	} else {
		q.body = buf_peek(&body);
		c->is_bound = true;
		c->call = docker_begin(c->lifecycle->docker, &q, on_made, c);
	}
	free(sources);
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
			      "execd could not be put into the container: %s",
			      a->message);
}

/* The folders are everybody's, since nobody but the daemon is there yet, as
 * whatever user the image has. It removes that of the token with the token;
 * the other one it closes if it may, and else is that user's, who can make
 * files there and not take ours away. */
static int archive_make(const struct creation *c, struct buf *out)
{
	const struct lifecycle *l = c->lifecycle;
	const struct box *b = c->q->box;
	char tokens[2 * BOX_TOKEN_SIZE + 1];
	int r, len;

	len = snprintf(tokens, sizeof(tokens), "%s\n%s\n", b->execd_token,
		       b->proxy_token);
	r = archive_put_folder(out, CONTAINER_FOLDER, 01777);
	if (!r)
		r = archive_put_file(out, CONTAINER_EXECD, 0755,
				     buf_peek(&l->runtime->execd));
	if (!r)
		r = archive_put_file(out, CONTAINER_CA, 0644,
				     buf_peek(&l->control->ca_inside));
	if (!r)
		r = archive_put_folder(out, CONTAINER_FOLDER "/start", 0777);
	if (!r)
		r = archive_put_file(out, CONTAINER_TOKEN, 0644,
				     span_of(tokens, (size_t)len));
	secret_wipe(tokens, sizeof(tokens));
	return r ? r : archive_end(out);
}

void step_place(struct creation *c)
{
	struct buf archive = BUF_INIT(ARCHIVE_BYTES);
	struct docker_request q = {
		.method = "PUT",
		.type = "application/x-tar",
	};
	char path[128];

	(void)snprintf(path, sizeof(path), "/containers/%s/archive?path=%%2F",
		       c->container);
	must(!archive_make(c, &archive));
	q.path = path;
	q.body = buf_peek(&archive);
	c->is_bound = true;
	c->call = docker_begin(c->lifecycle->docker, &q, on_placed, c);
	buf_wipe(&archive);
}

/* -- started -------------------------------------------------------------- */

static void on_started(void *ctx, const struct docker_answer *a)
{
	struct creation *c = ctx;

	if (!creation_goes_on(c))
		return;
	if (docker_is_ok(a))
		creation_next(c);
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
