/* SPDX-License-Identifier: Apache-2.0 */
/* capturing.c - the work on snapshots, and what becomes of it after a restart
 *
 * How it works: a job per snapshot, from the moment it is asked for to the
 * change of its record that ends it. The record says Creating or Deleting
 * meanwhile. A record that says so without a job was left by a control process
 * that ended: an image that was being made is then not known to be whole, so
 * the snapshot has Failed; a removal is simply done again.
 */

#include "src/control/lifecycle/capturing.h"

#include <stdio.h>
#include <stdlib.h>

#include "src/base/err.h"
#include "src/base/list.h"
#include "src/base/log.h"
#include "src/control/lifecycle/capture.h"
#include "src/control/lifecycle/capture_record.h"

#define BIT(state) (1U << (state))

struct job {
	struct list link; /* in lifecycle.captures_in_work */
	struct lifecycle *lifecycle;
	char id[BOX_ID_SIZE], sandbox_id[BOX_ID_SIZE];
	enum capture_state before; /* of one that is removed */
	lifecycle_done_fn *done;   /* NULL: answered */
	void *ctx;
	struct lifecycle_error no;
};

static struct job *job_new(struct lifecycle *l, const struct capture *s,
			   lifecycle_done_fn *done, void *ctx)
{
	struct job *j = must_alloc(sizeof(*j));

	j->lifecycle = l;
	memcpy(j->id, s->id, sizeof(j->id));
	memcpy(j->sandbox_id, s->sandbox_id, sizeof(j->sandbox_id));
	j->before = s->state;
	j->done = done;
	j->ctx = ctx;
	list_init(&j->link);
	list_push(&l->captures_in_work, &j->link);
	return j;
}

static void job_free(struct job *j)
{
	list_remove(&j->link);
	free(j);
}

/* Whoever asked is told, once. */
static void job_tell(struct job *j, const struct lifecycle_error *no)
{
	lifecycle_done_fn *done = j->done;

	j->done = NULL;
	if (done)
		done(j->ctx, no);
}

static void job_refuse(struct job *j, const struct refusal *why)
{
	(void)lifecycle_error_set(&j->no, why->status, why->code, "%s",
				  why->diag.msg);
	job_tell(j, &j->no);
	job_free(j);
}

static bool is_worked_at(const struct lifecycle *l, struct span id)
{
	list_for_each(it, &l->captures_in_work)
	{
		if (span_eq(span_str(container_of(it, struct job, link)->id),
			    id))
			return true;
	}
	return false;
}

/* -- making --------------------------------------------------------------- */

static void on_ended(void *ctx, const struct refusal *why)
{
	struct job *j = ctx;

	/* one whose record is gone was removed meanwhile */
	if (why->status && why->status != 404)
		log_error("snapshot %s: its end could not be kept: %s", j->id,
			  why->diag.msg);
	job_free(j);
}

static void on_committed(void *ctx, const struct lifecycle_error *no)
{
	struct job *j = ctx;

	if (j->lifecycle->ended) {
		job_free(j);
		return;
	}
	if (no)
		log_warn("snapshot %s of sandbox %s could not be made: %s",
			 j->id, j->sandbox_id, no->message);
	else
		log_info("snapshot %s of sandbox %s is there", j->id,
			 j->sandbox_id);
	capture_record_move(j->lifecycle, span_str(j->id),
			    BIT(CAPTURE_CREATING),
			    no ? CAPTURE_FAILED : CAPTURE_READY,
			    no ? no->message : NULL, on_ended, j);
}

static void on_recorded(void *ctx, const struct refusal *why)
{
	struct job *j = ctx;

	if (why->status) {
		job_refuse(j, why);
		return;
	}
	job_tell(j, NULL);
	if (j->lifecycle->ended) {
		job_free(j);
		return;
	}
	lifecycle_commit(j->lifecycle, span_str(j->sandbox_id), span_str(j->id),
			 on_committed, j);
}

void capturing_begin(struct lifecycle *l, struct capture *s,
		     lifecycle_done_fn *done, void *ctx)
{
	struct job *j = job_new(l, s, done, ctx);

	capture_record_add(l, s, on_recorded, j);
}

/* -- removing ------------------------------------------------------------- */

static void on_removed(void *ctx, const struct refusal *why)
{
	struct job *j = ctx;

	if (why->status && why->status != 404) {
		job_refuse(j, why);
		return;
	}
	job_tell(j, NULL);
	job_free(j);
}

/* The image stays, so the snapshot is what it was. */
static void on_put_back(void *ctx, const struct refusal *why)
{
	struct job *j = ctx;

	(void)why;
	job_tell(j, &j->no);
	job_free(j);
}

static void on_dropped(void *ctx, const struct lifecycle_error *no)
{
	struct job *j = ctx;

	if (j->lifecycle->ended) {
		(void)lifecycle_error_set(&j->no, 503, "SNAPSHOT::NOT_DELETED",
					  "the daemon is ending; the snapshot "
					  "is removed when it is back");
		job_tell(j, &j->no);
		job_free(j);
		return;
	}
	if (!no) {
		capture_record_remove(j->lifecycle, span_str(j->id), on_removed,
				      j);
		return;
	}
	j->no = *no;
	if (j->no.status == 409)
		j->no.code = "SNAPSHOT::DELETE_CONFLICT";
	log_warn("snapshot %s could not be removed: %s", j->id, j->no.message);
	capture_record_move(j->lifecycle, span_str(j->id),
			    BIT(CAPTURE_DELETING), j->before, NULL, on_put_back,
			    j);
}

static void on_marked(void *ctx, const struct refusal *why)
{
	struct job *j = ctx;

	if (why->status)
		job_refuse(j, why);
	else if (j->lifecycle->ended)
		on_dropped(j, NULL);
	else
		lifecycle_drop_image(j->lifecycle, span_str(j->id), on_dropped,
				     j);
}

void capturing_remove(struct lifecycle *l, struct span id,
		      lifecycle_done_fn *done, void *ctx)
{
	const struct capture *s = captures_find(&l->captures, id);
	struct lifecycle_error no;

	if (!s) {
		(void)lifecycle_error_set(&no, 404, "SNAPSHOT::NOT_FOUND",
					  "there is no such snapshot");
	} else if (is_worked_at(l, id)) {
		(void)lifecycle_error_set(&no, 409, "SNAPSHOT::INVALID_STATE",
					  "the snapshot is %s",
					  capture_state_name(s->state));
	} else {
		capture_record_move(l, id,
				    BIT(CAPTURE_READY) | BIT(CAPTURE_FAILED) |
					    BIT(CAPTURE_DELETING),
				    CAPTURE_DELETING, NULL, on_marked,
				    job_new(l, s, done, ctx));
		return;
	}
	if (done)
		done(ctx, &no);
}

/* -- after a restart ------------------------------------------------------ */

/* Ids first: what is begun may change the map. */
void capturing_resume(struct lifecycle *l)
{
	size_t count = map_count(&l->captures.by_id), cursor = 0, i, n = 0;
	char(*ids)[BOX_ID_SIZE] = must_alloc((count + 1) * sizeof(*ids));
	const struct capture *s;

	while ((s = map_next(&l->captures.by_id, &cursor, NULL)))
		if ((s->state == CAPTURE_CREATING ||
		     s->state == CAPTURE_DELETING) &&
		    !is_worked_at(l, span_str(s->id)))
			memcpy(ids[n++], s->id, BOX_ID_SIZE);
	for (i = 0; i < n; i++) {
		s = captures_find(&l->captures, span_str(ids[i]));
		if (s && s->state == CAPTURE_CREATING)
			capture_record_move(l, span_str(ids[i]),
					    BIT(CAPTURE_CREATING),
					    CAPTURE_FAILED,
					    "The daemon ended before the "
					    "snapshot was made.",
					    NULL, NULL);
		else if (s)
			capturing_remove(l, span_str(ids[i]), NULL, NULL);
	}
	free(ids);
}

void capturing_init(struct lifecycle *l)
{
	list_init(&l->captures_in_work);
	captures_init(&l->captures);
}

void capturing_fini(struct lifecycle *l)
{
	struct job *j;

	while ((j = list_first(&l->captures_in_work, struct job, link)))
		job_free(j);
	captures_fini(&l->captures);
}
