/* SPDX-License-Identifier: Apache-2.0 */
/* capture.c - records of snapshots: read, written, listed */

#include "src/control/lifecycle/capture.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "src/base/clock.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/control/lifecycle/list_query.h"
#include "src/text/json.h"

static const struct {
	const char *name, *reason, *message;
} states[] = {
	[CAPTURE_CREATING] = { "Creating", "snapshot_accepted",
			       "Snapshot creation accepted." },
	[CAPTURE_READY] = { "Ready", "", "" },
	[CAPTURE_FAILED] = { "Failed", "snapshot_capture_failed",
			     "The snapshot could not be made." },
	[CAPTURE_DELETING] = { "Deleting", "snapshot_deleting",
			       "The snapshot is being deleted." },
};
static_assert(ARRAY_LEN(states) == CAPTURE_STATE_NUM, "a row per state");

const char *capture_state_name(enum capture_state state)
{
	return state < CAPTURE_STATE_NUM ? states[state].name : "Unknown";
}

static bool state_by_name(struct span name, enum capture_state *ret)
{
	unsigned i;

	for (i = 0; i < CAPTURE_STATE_NUM; i++) {
		if (span_eq_nocase(name, span_str(states[i].name))) {
			*ret = (enum capture_state)i;
			return true;
		}
	}
	return false;
}

/* -- the stored form ------------------------------------------------------ */

void capture_emit_stored(struct json_out *o, const struct capture *s)
{
	json_open_object(o, NULL);
	json_put_str(o, "id", s->id);
	json_put_str(o, "sandboxId", s->sandbox_id);
	json_put_str(o, "name", s->name);
	json_put_str(o, "state", capture_state_name(s->state));
	json_put_str(o, "message", s->message);
	json_put_u64(o, "createdMs", s->created_ms);
	json_put_u64(o, "changedMs", s->changed_ms);
	json_close(o);
}

static int read_text(const struct json *j, const char *name, char *dst,
		     size_t size, struct diag *d)
{
	if (!span_copy(json_text(json_find(j, name)), dst, size))
		return diag_set(d, 0, 0,
				"\"%s\" of the record is no text of at most "
				"%zu bytes",
				name, size - 1);
	return 0;
}

static int read_members(struct capture *s, const struct json *j, struct diag *d)
{
	struct span state = json_text(json_find(j, "state"));
	int r;

	r = read_text(j, "id", s->id, sizeof(s->id), d);
	if (!r)
		r = read_text(j, "sandboxId", s->sandbox_id,
			      sizeof(s->sandbox_id), d);
	if (!r)
		r = read_text(j, "name", s->name, sizeof(s->name), d);
	if (!r)
		r = read_text(j, "message", s->message, sizeof(s->message), d);
	if (r)
		return r;
	if (!s->id[0])
		return diag_set(d, 0, 0, "the record has no \"id\"");
	if (!state_by_name(state, &s->state))
		return diag_set(d, 0, 0, "the record has the state \"%.*s\"",
				SPAN_FMT(state));
	(void)json_u64(json_find(j, "createdMs"), &s->created_ms);
	(void)json_u64(json_find(j, "changedMs"), &s->changed_ms);
	return 0;
}

int capture_parse(struct span text, struct capture **ret, struct diag *d)
{
	struct json *j CLEANUP_JSON = NULL;
	struct capture *s;
	int r;

	r = json_parse(text, &j, d);
	if (!r)
		r = json_want(j, JSON_KIND_OBJECT, "record", d);
	if (r)
		return r;
	s = must_alloc(sizeof(*s));
	r = read_members(s, j, d);
	if (r) {
		free(s);
		return r;
	}
	*ret = s;
	return 0;
}

/* -- the shown form ------------------------------------------------------- */

static void put_time(struct json_out *o, const char *name, uint64_t ms)
{
	char text[CLOCK_TEXT_SIZE];

	clock_text(ms, text, sizeof(text));
	json_put_str(o, name, text);
}

/* A Ready one has neither reason nor message. */
void capture_emit(struct json_out *o, const struct capture *s)
{
	const char *message =
		s->message[0] ? s->message : states[s->state].message;

	json_open_object(o, NULL);
	json_put_str(o, "id", s->id);
	json_put_str(o, "sandboxId", s->sandbox_id);
	if (s->name[0])
		json_put_str(o, "name", s->name);
	json_open_object(o, "status");
	json_put_str(o, "state", capture_state_name(s->state));
	if (states[s->state].reason[0]) {
		json_put_str(o, "reason", states[s->state].reason);
		json_put_str(o, "message", message);
	}
	put_time(o, "lastTransitionAt", s->changed_ms);
	json_close(o);
	put_time(o, "createdAt", s->created_ms);
	json_close(o);
}

/* -- all of them ---------------------------------------------------------- */

void captures_init(struct captures *all)
{
	map_init(&all->by_id);
}

void captures_fini(struct captures *all)
{
	struct capture *s;
	size_t cursor = 0;

	while ((s = map_next(&all->by_id, &cursor, NULL)))
		free(s);
	map_fini(&all->by_id);
}

struct capture *captures_find(const struct captures *all, struct span id)
{
	return map_find(&all->by_id, id);
}

void captures_put(struct captures *all, struct capture *s)
{
	free(map_set(&all->by_id, span_str(s->id), s));
}

void captures_remove(struct captures *all, struct span id)
{
	free(map_take(&all->by_id, id));
}

static bool capture_matches(const struct capture *s, const struct list_query *q)
{
	struct span state = span_str(capture_state_name(s->state));
	unsigned i;

	if (q->name.ptr && !span_eq(q->name, span_str(s->name)))
		return false;
	if (q->sandbox_id.ptr &&
	    !span_eq(q->sandbox_id, span_str(s->sandbox_id)))
		return false;
	for (i = 0; i < q->state_count; i++)
		if (span_eq_nocase(q->states[i], state))
			return true;
	return !q->state_count;
}

/* Among equals by id, so that pages do not overlap. */
static int newest_first(const void *a, const void *b)
{
	const struct capture *x = *(struct capture *const *)a;
	const struct capture *y = *(struct capture *const *)b;

	if (x->created_ms != y->created_ms)
		return x->created_ms < y->created_ms ? 1 : -1;
	return strcmp(x->id, y->id);
}

void captures_emit(struct json_out *o, const struct captures *all,
		   const struct list_query *q)
{
	size_t count = map_count(&all->by_id), cursor = 0, n = 0, i;
	struct capture **found =
		must_alloc((count + 1) * sizeof(struct capture *));
	struct capture *s;

	while ((s = map_next(&all->by_id, &cursor, NULL)))
		if (capture_matches(s, q))
			found[n++] = s;
	qsort(found, n, sizeof(struct capture *), newest_first);

	json_open_object(o, NULL);
	json_open_array(o, "items");
	for (i = list_page_first(q, n); i < list_page_end(q, n); i++)
		capture_emit(o, found[i]);
	json_close(o);
	list_page_emit(o, q->page, q->page_size, n);
	json_close(o);
	free(found);
}
