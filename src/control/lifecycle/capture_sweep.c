/* SPDX-License-Identifier: Apache-2.0 */
/* capture_sweep.c - images of snapshots that no record knows are removed
 *
 * Docker makes an image to its end whoever has asked for it. So when control
 * ends meanwhile, its snapshot has Failed and may be removed before there is an
 * image, which then comes to belong to nobody. It is looked for when Docker is
 * met, and when a sandbox has become an image that is not known, or whose
 * record is about to go.
 *
 * Another server of the contract may keep images by the same name here. Ours
 * have the label of sandboxes without a value (pause.c), theirs with one: those
 * stay.
 */

#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/docker/docker.h"
#include "src/control/lifecycle/capture.h"
#include "src/control/lifecycle/capturing.h"
#include "src/control/lifecycle/container.h"
#include "src/text/json.h"

#define SNAPSHOTS "opensandbox-snapshots"
#define IMAGES                                                           \
	"/images/json?filters=%7B%22reference%22:%5B%22" SNAPSHOTS "%22" \
	"%5D%7D"

/* Of "opensandbox-snapshots:{id}"; empty: it is none. */
static struct span id_of(struct span name)
{
	struct span repository = span_cut(&name, ':');

	return span_eq(repository, SPAN(SNAPSHOTS)) && name.len < BOX_ID_SIZE
		       ? name
		       : SPAN_NONE;
}

static void on_dropped(void *ctx, const struct lifecycle_error *no)
{
	const struct lifecycle *l = ctx;

	if (no && !l->ended)
		log_warn("an image without a snapshot could not be removed: %s",
			 no->message);
}

static bool is_ours(const struct json *image)
{
	const struct json *label =
		json_find(json_find(image, "Labels"), CONTAINER_LABEL);

	return json_kind(label) == JSON_KIND_STRING && !json_text(label).len;
}

static void on_images(void *ctx, const struct docker_answer *a)
{
	struct lifecycle *l = ctx;
	struct span id;

	if (l->ended || !docker_is_ok(a) ||
	    json_kind(a->json) != JSON_KIND_ARRAY)
		return; /* it is looked again with the next meeting */
	json_for_each(image, a->json)
	{
		if (!is_ours(image))
			continue;
		json_for_each(name, json_find(image, "RepoTags"))
		{
			id = id_of(json_text(name));
			if (!id.len || captures_find(&l->captures, id))
				continue;
			log_warn("removes the image of snapshot %.*s, which "
				 "is not known",
				 SPAN_FMT(id));
			lifecycle_drop_image(l, id, on_dropped, l);
		}
	}
}

void capturing_sweep(struct lifecycle *l)
{
	(void)docker_ask(l->docker, "GET", IMAGES, SPAN_NONE, on_images, l);
}

/* One that is being removed may have asked for its image a moment too early. */
void capturing_appeared(struct lifecycle *l, struct span image)
{
	struct span id = id_of(image);
	const struct capture *s;

	if (!id.len)
		return;
	s = captures_find(&l->captures, id);
	if (!s)
		capturing_sweep(l);
	else if (s->state == CAPTURE_DELETING)
		lifecycle_drop_image(l, id, on_dropped, l);
}
