/* SPDX-License-Identifier: Apache-2.0 */
/* reconcile.c - what the daemon has against what the records say
 *
 *   record      container       then
 *   Pending     any             nobody was answered: removed
 *   Stopping    any             removed
 *   any other   none, ended     Terminated or Failed, as it ended
 *   any other   there           Running or Paused, as it is
 *   none        with our label  removed
 *
 * A sandbox that is being made or removed by a job of this process is the
 * job's. One whose state was set after the daemon was asked is left alone,
 * since the list may be from before, and looked at again.
 */

#include <stdio.h>
#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/docker/docker.h"
#include "src/control/lifecycle/container.h"
#include "src/control/lifecycle/record.h"
#include "src/control/lifecycle/runtime.h"
#include "src/text/json.h"

#define CONTAINERS                                             \
	"/containers/json?all=1&filters=%7B%22label%22:%5B%22" \
	"opensandbox.io%2Fid%22%5D%7D"

enum { EXIT_UNKNOWN = -1 };

struct reconciling {
	struct lifecycle *lifecycle;
	uint64_t changes; /* of states, when the daemon was asked */
	void (*fn)(void *ctx, const char *why);
	void *ctx;
};

static bool has_job(const struct lifecycle *l, struct span id)
{
	return creation_is_on(l, id) || removal_is_on(l, id) ||
	       kit_is_at_work(&l->runtime->kit, id);
}

/* -- states --------------------------------------------------------------- */

void reconcile_ended(struct lifecycle *l, struct span id, int exit_status)
{
	const struct box *b = boxes_find(&l->boxes, id);
	char message[96];

	if (creation_is_on(l, id)) {
		creation_died(l, id, exit_status);
		return;
	}
	if (!b || removal_is_on(l, id) || b->state == BOX_TERMINATED ||
	    b->state == BOX_FAILED)
		return;
	if (exit_status == EXIT_UNKNOWN)
		(void)snprintf(message, sizeof(message),
			       "The container is not there any more.");
	else
		(void)snprintf(message, sizeof(message),
			       "The container exited with status %d.",
			       exit_status);
	log_info("the container of sandbox %s ended", b->id);
	if (exit_status)
		record_set_state(l, id, BOX_FAILED, "CONTAINER_EXITED_ERROR",
				 message, NULL, NULL);
	else
		record_set_state(l, id, BOX_TERMINATED, "CONTAINER_EXITED",
				 message, NULL, NULL);
}

static void box_is(struct lifecycle *l, const struct box *b,
		   enum box_state state, const char *reason,
		   const char *message)
{
	if (b->state != state)
		record_set_state(l, span_str(b->id), state, reason, message,
				 NULL, NULL);
}

/* "Exited (137) 3 seconds ago" */
static int exit_status_of(const struct json *container)
{
	struct span text = json_text(json_find(container, "Status"));
	uint64_t status;

	(void)span_cut(&text, '(');
	text = span_cut(&text, ')');
	return span_parse_u64(text, &status) && status < 256 ? (int)status
							     : EXIT_UNKNOWN;
}

static void box_compare(struct lifecycle *l, const struct box *b,
			const struct json *container)
{
	struct span state = json_text(json_find(container, "State"));

	if (b->state == BOX_PENDING || b->state == BOX_STOPPING)
		lifecycle_remove(l, span_str(b->id), NULL, NULL);
	else if (!container)
		reconcile_ended(l, span_str(b->id), EXIT_UNKNOWN);
	else if (span_eq(state, SPAN("running")) ||
		 span_eq(state, SPAN("restarting")))
		box_is(l, b, BOX_RUNNING, "CONTAINER_RUNNING",
		       "The container runs.");
	else if (span_eq(state, SPAN("paused")))
		box_is(l, b, BOX_PAUSED, "CONTAINER_PAUSED",
		       "The container is paused.");
	else
		reconcile_ended(l, span_str(b->id), exit_status_of(container));
}

/* -- orphans -------------------------------------------------------------- */

static void on_orphan(void *ctx, const struct docker_answer *a)
{
	struct lifecycle *l = ctx;

	if (!l->ended && !docker_is_ok(a) && a->status != 404)
		log_warn("a container without a sandbox could not be removed: "
			 "%s",
			 a->message);
}

static void orphan_remove(struct lifecycle *l, struct span id)
{
	char path[160];

	if (!id.len || id.len > 64)
		return;
	log_warn("removes container %.*s, which belongs to no sandbox",
		 (int)MIN(id.len, (size_t)12), id.ptr);
	(void)snprintf(path, sizeof(path), "/containers/%.*s?force=1&v=1",
		       SPAN_FMT(id));
	(void)docker_ask(l->docker, "DELETE", path, SPAN_NONE, on_orphan, l);
}

/* What an earlier life of ours had asked for, and was done only now. */
void reconcile_appeared(struct lifecycle *l, struct span id,
			struct span container)
{
	if (!boxes_find(&l->boxes, id) && !has_job(l, id))
		orphan_remove(l, container);
}

/* -- all of them ---------------------------------------------------------- */

static struct span id_of(const struct json *container)
{
	return json_text(
		json_find(json_find(container, "Labels"), CONTAINER_LABEL));
}

/* False: some were left out. Ids first: comparing changes the boxes. */
static bool boxes_compare(struct lifecycle *l, const struct map *containers,
			  uint64_t changes)
{
	size_t count = map_count(&l->boxes.by_id), cursor = 0, n = 0, i;
	char(*ids)[BOX_ID_SIZE] = must_alloc((count + 1) * sizeof(*ids));
	const struct box *b;
	bool all = true;

	while ((b = map_next(&l->boxes.by_id, &cursor, NULL)))
		memcpy(ids[n++], b->id, BOX_ID_SIZE);
	for (i = 0; i < n; i++) {
		b = boxes_find(&l->boxes, span_str(ids[i]));
		if (!b || has_job(l, span_str(ids[i])))
			continue;
		if (b->change <= changes)
			box_compare(l, b,
				    map_find(containers, span_str(ids[i])));
		else
			all = false;
	}
	free(ids);
	return all;
}

static void on_listed(void *ctx, const struct docker_answer *a)
{
	struct reconciling *rec = ctx;
	struct lifecycle *l = rec->lifecycle;
	struct map containers;

	if (l->ended || !docker_is_ok(a) ||
	    json_kind(a->json) != JSON_KIND_ARRAY) {
		if (!l->ended)
			rec->fn(rec->ctx,
				docker_is_ok(a) ? "the Docker daemon's list of "
						  "containers is none"
						: a->message);
		free(rec);
		return;
	}
	map_init(&containers);
	json_for_each(it, a->json)
	{
		if (id_of(it).len)
			(void)map_set(&containers, id_of(it),
				      (void *)(uintptr_t)it);
		if (!boxes_find(&l->boxes, id_of(it)) && !has_job(l, id_of(it)))
			orphan_remove(l, json_text(json_find(it, "Id")));
	}
	if (!boxes_compare(l, &containers, rec->changes))
		timer_start(&l->runtime->retry, RUNTIME_RETRY_MS);
	map_fini(&containers);
	rec->fn(rec->ctx, NULL);
	free(rec);
}

void reconcile(struct lifecycle *l, void (*fn)(void *ctx, const char *why),
	       void *ctx)
{
	struct reconciling *rec = must_alloc(sizeof(*rec));

	*rec = (struct reconciling){ l, l->changes, fn, ctx };
	(void)docker_ask(l->docker, "GET", CONTAINERS, SPAN_NONE, on_listed,
			 rec);
}
