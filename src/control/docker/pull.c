/* SPDX-License-Identifier: Apache-2.0 */
/* pull.c - an image fetched by the daemon, and how that ended
 *
 * How it works: the daemon answers 200 at once and tells its progress as lines
 * of JSON. What goes wrong then is a line {"error": "..."}, the last one. A
 * pull that ends without one is done.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/docker/inside.h"
#include "src/text/json.h"

enum { PATH_MAX_BYTES = 8 * 1024, BAD_GATEWAY = 502 };

struct pull {
	docker_fn *fn;
	void *ctx;
	bool failed;
	char message[DOCKER_MESSAGE_SIZE];
	char said[DOCKER_MESSAGE_SIZE]; /* the last status */
};

/* {"id": of a layer or the tag, if it is of one, "status"} */
static void said_keep(struct pull *p, const struct json *line)
{
	struct span id = json_text(json_find(line, "id"));
	struct span status = json_text(json_find(line, "status"));
	char of[32], what[DOCKER_MESSAGE_SIZE - sizeof(of)];

	if (!status.len)
		return;
	(void)snprintf(p->said, sizeof(p->said), "%s%s%s",
		       log_escape(id, of, sizeof(of)), id.len ? ": " : "",
		       log_escape(status, what, sizeof(what)));
}

static bool on_progress(void *ctx, struct span line)
{
	struct json *j CLEANUP_JSON = NULL;
	struct pull *p = ctx;
	struct span error;

	if (json_parse(line, &j, NULL) || json_kind(j) != JSON_KIND_OBJECT) {
		p->failed = true;
		(void)snprintf(p->message, sizeof(p->message),
			       "the Docker daemon told the progress of a pull "
			       "in what is no JSON");
		return false;
	}
	said_keep(p, j);
	error = json_text(json_find(j, "error"));
	if (!error.ptr)
		return true;
	p->failed = true;
	error = span_cut(&error, '\n');
	(void)log_escape(error, p->message, sizeof(p->message));
	return true;
}

static void on_pulled(void *ctx, const struct docker_answer *a)
{
	struct docker_answer b = *a;
	struct pull *p = ctx;

	if (docker_is_ok(a) && p->failed) {
		b.status = BAD_GATEWAY;
		b.message = p->message;
	}
	p->fn(p->ctx, &b);
}

/* "repo@sha256:..." and "repo:tag" are both taken whole as fromImage; without
 * either, "latest" is meant and not all tags there are. */
static bool has_tag(struct span image)
{
	size_t i;

	for (i = image.len; i > 0 && image.ptr[i - 1] != '/'; i--)
		if (image.ptr[i - 1] == ':' || image.ptr[i - 1] == '@')
			return true;
	return false;
}

struct docker_call *docker_pull(struct docker *d, struct span image,
				struct span registry_auth, docker_fn *fn,
				void *ctx)
{
	struct buf path = BUF_INIT(PATH_MAX_BYTES);
	struct docker_request q = {
		.method = "POST",
		.registry_auth = registry_auth,
		.shape = DOCKER_LINES,
		.piece = on_progress,
		.patient = true,
	};
	struct pull *p = must_alloc(sizeof(*p));
	struct docker_call *call;

	p->fn = fn;
	p->ctx = ctx;
	/* names are checked where they come from: they are short */
	must(!buf_put_str(&path, "/images/create?fromImage=") &&
	     !docker_put_escaped(&path, image) &&
	     !buf_put_str(&path, has_tag(image) ? "" : "&tag=latest") &&
	     !buf_put(&path, span_of("", 1)));
	q.path = buf_peek(&path).ptr;
	call = docker_begin(d, &q, on_pulled, p);
	call->owns_ctx = true;
	buf_fini(&path);
	return call;
}

const char *docker_pull_said(const struct docker_call *pull)
{
	const struct pull *p = pull->ctx;

	return p->said;
}
