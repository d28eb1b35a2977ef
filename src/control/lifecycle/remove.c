/* SPDX-License-Identifier: Apache-2.0 */
/* remove.c - a sandbox with all that belongs to it goes, step by step
 *
 * How it works: a table of steps, each of which is content when what it removes
 * is not there. So the same table ends a sandbox that runs, one of which half
 * was made, and one whose removal was cut short by the end of this process. The
 * fence stays until the container is gone, the record until everything is. A
 * step that fails ends the removal; the record says Stopping, and expiry.c
 * tries again.
 *
 * A vault that goes away amid a step leaves it open whether that was stored:
 * the step is done again, which waits for the vault. A gateway that is away
 * needs no waiting for: who is cut off is gone already, and what the gateway is
 * told when it comes back has no word of it.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/changes.h"
#include "src/control/control.h"
#include "src/control/docker/docker.h"
#include "src/control/egress/net_policy_change.h"
#include "src/control/egress/vault_scope_change.h"
#include "src/control/lifecycle/container.h"
#include "src/control/lifecycle/network.h"
#include "src/control/lifecycle/record.h"
#include "src/control/lifecycle/runtime.h"
#include "src/text/json.h"

enum { PATH_BYTES = 1024, TRIES = 100, AGAIN_MS = 100, LOST_MOST = 3 };

struct waiter {
	struct list link;
	lifecycle_done_fn *done;
	void *ctx;
};

struct removal {
	struct lifecycle *lifecycle;
	struct list link;
	struct list waiters;
	struct timer timer;
	unsigned step, tries, lost;
	size_t volume;
	char id[BOX_ID_SIZE];
};

static void removal_next(struct removal *m);

static struct removal *removal_find(const struct lifecycle *l, struct span id)
{
	struct list *all = &l->runtime->removals;

	list_for_each(it, all)
	{
		struct removal *m = container_of(it, struct removal, link);

		if (span_eq(span_str(m->id), id))
			return m;
	}
	return NULL;
}

static struct removal *removal_free(struct removal *m)
{
	struct waiter *w;

	list_remove(&m->link);
	timer_stop(&m->timer);
	while ((w = list_first(&m->waiters, struct waiter, link))) {
		list_remove(&w->link);
		free(w);
	}
	free(m);
	return NULL;
}

/* The removal is out of the list before anybody hears of it. */
static void removal_end(struct removal *m, const struct lifecycle_error *no)
{
	struct waiter *w;

	list_remove(&m->link);
	while ((w = list_first(&m->waiters, struct waiter, link))) {
		list_remove(&w->link);
		w->done(w->ctx, no);
		free(w);
	}
	removal_free(m);
}

static void removal_fail(struct removal *m, unsigned status, const char *what,
			 const char *why)
{
	struct lifecycle_error no;

	log_error("sandbox %s could not be removed, its %s is still there: %s",
		  m->id, what, why);
	runtime_look_again(m->lifecycle);
	(void)lifecycle_error_set(&no, status, "DOCKER::SANDBOX_DELETE_FAILED",
				  "the %s could not be removed: %s", what, why);
	removal_end(m, &no);
}

/* -- the steps ------------------------------------------------------------ */

static bool edit_stopping(void *data, struct box *b)
{
	(void)data;
	box_set_state(b, BOX_STOPPING, "", "The sandbox is being removed.",
		      clock_wall_ms());
	return true;
}

/* Nobody knows whether it was stored. */
static bool is_lost(const struct refusal *why)
{
	return why->status && !strcmp(why->code, "VAULT_LOST");
}

/* It is stored, and in force when the gateway is back. */
static bool is_pending(const struct refusal *why)
{
	return why->status && !strcmp(why->code, "NOT_IN_FORCE");
}

/* Of each change: was it made, or was there nothing to be changed? */
static void changed(struct removal *m, const char *what,
		    const struct refusal *why)
{
	if (m->lifecycle->ended)
		return;
	if (is_lost(why) && m->lost++ < LOST_MOST) {
		m->step--;
		removal_next(m);
	} else if (why->status && why->status != 404 && !is_pending(why)) {
		removal_fail(m, why->status == 503 ? 503 : 500, what,
			     why->diag.msg);
	} else {
		removal_next(m);
	}
}

static void on_marked(void *ctx, const struct refusal *why)
{
	changed(ctx, "record", why);
}

static void step_mark(struct removal *m)
{
	record_edit(m->lifecycle, span_str(m->id), edit_stopping, NULL,
		    on_marked, m);
}

static void step_container(struct removal *m);

/* 409: somebody else removes it already; that will end. */
static void on_container(void *ctx, const struct docker_answer *a)
{
	struct removal *m = ctx;

	if (m->lifecycle->ended)
		return;
	if (a->status == 409 && ++m->tries < TRIES)
		timer_start(&m->timer, AGAIN_MS);
	else if (docker_is_ok(a) || a->status == 404)
		removal_next(m);
	else
		removal_fail(m, runtime_status_of(a), "container", a->message);
}

static void on_again(struct timer *t)
{
	step_container(container_of(t, struct removal, timer));
}

/* By its name, which it has from the first moment on. */
static void step_container(struct removal *m)
{
	char name[CONTAINER_NAME_SIZE], path[PATH_BYTES];

	container_name(m->id, name);
	(void)snprintf(path, sizeof(path), "/containers/%s?force=1&v=1", name);
	(void)docker_ask(m->lifecycle->docker, "DELETE", path, SPAN_NONE,
			 on_container, m);
}

static void on_unregistered(void *ctx, const struct refusal *why)
{
	changed(ctx, "registration", why);
}

static void step_registration(struct removal *m)
{
	sandbox_change_remove(m->lifecycle->control, span_str(m->id),
			      on_unregistered, m);
}

static void on_unruled(void *ctx, const struct refusal *why)
{
	changed(ctx, "policy", why);
}

static void step_policy(struct removal *m)
{
	net_policy_change_remove(m->lifecycle->control, span_str(m->id),
				 on_unruled, m);
}

static void on_emptied(void *ctx, const struct refusal *why)
{
	changed(ctx, "credential vault", why);
}

static void step_vault(struct removal *m)
{
	vault_scope_change_remove(m->lifecycle->control, span_str(m->id),
				  on_emptied, m);
}

/* -- volumes that were made for it ---------------------------------------- */

static void step_volumes(struct removal *m);

static void on_volume_gone(void *ctx, const struct docker_answer *a)
{
	struct removal *m = ctx;

	if (m->lifecycle->ended)
		return;
	if (!docker_is_ok(a) && a->status != 404 && a->status != 409) {
		removal_fail(m, runtime_status_of(a), "volume", a->message);
		return;
	}
	if (a->status == 409) /* it is that one's now */
		log_warn("a volume of sandbox %s is in use and stays", m->id);
	m->volume++;
	step_volumes(m);
}

static void volume_ask(struct removal *m, const char *method, struct span name,
		       docker_fn *fn)
{
	struct buf path = BUF_INIT(PATH_BYTES);

	must(!buf_put_str(&path, "/volumes/") &&
	     !docker_put_escaped(&path, name) &&
	     !buf_put(&path, span_of("", 1)));
	(void)docker_ask(m->lifecycle->docker, method, buf_peek(&path).ptr,
			 SPAN_NONE, fn, m);
	buf_fini(&path);
}

/* Only one that was made for this sandbox, and by us. */
static void on_volume(void *ctx, const struct docker_answer *a)
{
	struct removal *m = ctx;
	struct span owner = json_text(
		json_find(json_find(a->json, "Labels"), CONTAINER_LABEL));

	if (m->lifecycle->ended)
		return;
	if (docker_is_ok(a) && span_eq(owner, span_str(m->id))) {
		volume_ask(m, "DELETE", json_text(json_find(a->json, "Name")),
			   on_volume_gone);
		return;
	}
	if (!docker_is_ok(a) && a->status != 404) {
		removal_fail(m, runtime_status_of(a), "volume", a->message);
		return;
	}
	m->volume++;
	step_volumes(m);
}

static bool ends_with_sandbox(const struct json *volume)
{
	return json_bool(json_find(json_find(volume, "pvc"),
				   "deleteOnSandboxTermination"));
}

static void step_volumes(struct removal *m)
{
	const struct box *b = boxes_find(&m->lifecycle->boxes, span_str(m->id));
	struct json *j CLEANUP_JSON = NULL;
	const struct json *all, *v;

	if (b && b->request.len && !json_parse(b->request, &j, NULL)) {
		all = json_find(j, "volumes");
		for (; (v = json_item(all, m->volume)); m->volume++) {
			if (!ends_with_sandbox(v))
				continue;
			volume_ask(m, "GET",
				   json_text(json_find(json_find(v, "pvc"),
						       "claimName")),
				   on_volume);
			return;
		}
	}
	removal_next(m);
}

/* -- the record ----------------------------------------------------------- */

struct leaving {
	struct removal *removal;
	struct addr v4;
};

static void on_forgotten(void *ctx, const struct refusal *why)
{
	struct leaving *leaving = ctx;
	struct removal *m = leaving->removal;

	if (!m->lifecycle->ended && (!why->status || why->status == 404))
		network_give_back(m->lifecycle->network, clock_ms(),
				  &leaving->v4);
	changed(m, "record", why);
	free(leaving);
}

static void step_record(struct removal *m)
{
	const struct box *b = boxes_find(&m->lifecycle->boxes, span_str(m->id));
	struct leaving *leaving;

	if (!b) {
		removal_next(m);
		return;
	}
	leaving = must_alloc(sizeof(*leaving));
	leaving->removal = m;
	leaving->v4 = b->v4;
	record_remove(m->lifecycle, span_str(m->id), on_forgotten, leaving);
}

/* -- the table ------------------------------------------------------------ */

static void (*const steps[])(struct removal *m) = {
	step_mark,  step_container, step_registration, step_policy,
	step_vault, step_volumes,   step_record,
};

static void removal_next(struct removal *m)
{
	if (m->step < ARRAY_LEN(steps)) {
		steps[m->step++](m);
		return;
	}
	log_info("sandbox %s was removed", m->id);
	removal_end(m, NULL);
}

static struct removal *removal_new(struct lifecycle *l, struct span id)
{
	struct removal *m = must_alloc(sizeof(*m));

	m->lifecycle = l;
	(void)span_copy(id, m->id, sizeof(m->id));
	list_init(&m->link);
	list_init(&m->waiters);
	timer_init(&m->timer, l->control->loop, on_again);
	list_push(&l->runtime->removals, &m->link);
	return m;
}

static void waiter_add(struct removal *m, lifecycle_done_fn *done, void *ctx)
{
	struct waiter *w;

	if (!done)
		return;
	w = must_alloc(sizeof(*w));
	w->done = done;
	w->ctx = ctx;
	list_init(&w->link);
	list_push(&m->waiters, &w->link);
}

/* One that is being made ends first; its creation then comes here again. */
void lifecycle_remove(struct lifecycle *l, struct span id,
		      lifecycle_done_fn *done, void *ctx)
{
	struct removal *m = removal_find(l, id);
	bool is_new = !m;

	if (is_new)
		m = removal_new(l, id);
	waiter_add(m, done, ctx);
	if (creation_is_on(l, id))
		creation_abandon(l, id);
	else if (!m->step)
		removal_next(m);
}

bool removal_is_on(const struct lifecycle *l, struct span id)
{
	return removal_find(l, id) != NULL;
}

void removals_free(struct runtime *r)
{
	struct removal *m;

	while ((m = list_first(&r->removals, struct removal, link)))
		removal_free(m);
}
