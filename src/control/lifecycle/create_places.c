/* SPDX-License-Identifier: Apache-2.0 */
/* create_places.c - the step that has no link lead to where volumes are mounted
 *
 * A folder of a volume that an older daemon mounts by its path may be another
 * one by then (create_volumes.c). execd finds that out before anything runs:
 * if it is execd that is started. So nothing that somebody else can write may
 * stand in the place of its program at that moment. The image could lead there
 * by a link of its own: from /opt to a volume, or from a mount path to where
 * execd is; and of mounts inside mounts the outer one's owner could make a
 * link. The container is there and does not run: its files change for nobody
 * but us, so what is looked at now is what will be.
 */

#include <stdlib.h>

#include "src/base/base64.h"
#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/control/docker/docker.h"
#include "src/control/lifecycle/creation.h"
#include "src/text/json.h"

enum { PATH_BYTES = 3 * 4096, STAT_BYTES = 16 * 1024 };

/* Of os.FileMode (Go), as the daemon writes it. */
#define MODE_LINK (1ULL << 27)

static void places_go_on(struct creation *c);

static bool confirms_any(const struct creation *c)
{
	const char **sources = creation_sources(c);
	bool confirms = container_confirms_any(c->q, sources);

	free(sources);
	return confirms;
}

static struct span trimmed(struct span path)
{
	while (path.len > 1 && path.ptr[path.len - 1] == '/')
		path.len--;
	return path;
}

static bool is_below(struct span path, struct span folder)
{
	return path.len > folder.len && span_starts(path, folder) &&
	       path.ptr[folder.len] == '/';
}

/* Each volume's mount path, and behind the last where execd is. */
static struct span place_at(const struct creation *c, unsigned at)
{
	return at < c->q->volume_count ? trimmed(c->q->volumes[at].mount_path)
				       : SPAN("/" CONTAINER_EXECD);
}

static bool are_apart(const struct creation *c)
{
	unsigned i, k;

	for (i = 0; i < c->q->volume_count; i++)
		for (k = 0; k < c->q->volume_count; k++)
			if (is_below(place_at(c, i), place_at(c, k)))
				return false;
	return true;
}

static void fail(struct creation *c, const char *why)
{
	creation_fail(c, 400, "VOLUME::INVALID_MOUNT_PATH",
		      "%s, which this node's Docker cannot have beside the "
		      "subPath of a volume",
		      why);
}

static bool is_link(struct span base64)
{
	struct json *j CLEANUP_JSON = NULL;
	uint8_t text[STAT_BYTES];
	uint64_t mode;
	size_t len;

	/* what cannot be read is not what it should be */
	if (!base64_decode(base64, text, sizeof(text), &len) ||
	    json_parse(span_of((const char *)text, len), &j, NULL) ||
	    !json_u64(json_find(j, "mode"), &mode))
		return true;
	return mode & MODE_LINK;
}

static void on_looked(void *ctx, const struct docker_answer *a)
{
	struct creation *c = ctx;

	if (!creation_goes_on(c))
		return;
	if (a->status == 404) {
		/* what is not there is made, as a folder */
		c->volume++;
		c->reached = 0;
		places_go_on(c);
	} else if (!docker_is_ok(a)) {
		creation_fail(c, runtime_status_of(a),
			      "DOCKER::SANDBOX_START_FAILED",
			      "the container could not be looked into: %s",
			      a->message);
	} else if (is_link(a->path_stat)) {
		fail(c, "a link in the image leads to a mount path");
	} else {
		places_go_on(c);
	}
}

/* The next name of the path that is looked at, or of the next path. */
static void places_go_on(struct creation *c)
{
	struct buf path = BUF_INIT(PATH_BYTES);
	struct span place;

	while (c->volume <= c->q->volume_count &&
	       c->reached == place_at(c, c->volume).len) {
		c->volume++;
		c->reached = 0;
	}
	if (c->volume > c->q->volume_count) {
		creation_next(c);
		return;
	}
	place = place_at(c, c->volume);
	c->reached++; /* over the slash */
	c->reached += span_find(span_from(place, c->reached), '/');
	must(!docker_put_escaped(&path, span_of(place.ptr, c->reached)) &&
	     !buf_put(&path, span_of("", 1)));
	creation_ask(c, "HEAD", SPAN_NONE, on_looked,
		     "/containers/%s/archive?path=%s", c->container,
		     buf_peek(&path).ptr);
	buf_fini(&path);
}

void step_places(struct creation *c)
{
	c->volume = 0;
	c->reached = 0;
	if (!confirms_any(c))
		creation_next(c);
	else if (!are_apart(c))
		fail(c, "a mount path is below another one");
	else
		places_go_on(c);
}
