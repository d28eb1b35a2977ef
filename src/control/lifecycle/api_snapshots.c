/* SPDX-License-Identifier: Apache-2.0 */
/* api_snapshots.c - routes of snapshots (contract 4.11) */

#include <stdio.h>
#include <stdlib.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/control/lifecycle/ask.h"
#include "src/control/lifecycle/capture.h"
#include "src/control/lifecycle/capturing.h"
#include "src/control/lifecycle/id.h"
#include "src/control/lifecycle/list_query.h"
#include "src/text/json.h"

#define INVALID "SANDBOX::INVALID_PARAMETER"

static void refuse_unknown(struct httpd_request *r)
{
	httpd_reply_error(r, 404, "SNAPSHOT::NOT_FOUND",
			  "there is no such snapshot");
}

static void reply_capture(struct httpd_request *r, unsigned status,
			  const struct capture *s)
{
	struct buf out = BUF_INIT(64 * 1024);
	struct json_out o;

	json_start(&o, &out);
	capture_emit(&o, s);
	ask_reply(r, status, json_done(&o), &out);
}

/* No body, {} or {"name": ...}. False: answered. */
static bool name_read(struct httpd_request *r, char *dst, size_t size)
{
	struct json *body CLEANUP_JSON = NULL;
	struct span text = httpd_body(r), name;
	const struct json *member;

	dst[0] = '\0';
	if (!text.len)
		return true;
	if (json_parse(text, &body, NULL) ||
	    json_kind(body) != JSON_KIND_OBJECT) {
		httpd_reply_error(r, 400, INVALID,
				  "the body: expected a JSON object");
		return false;
	}
	member = json_find(body, "name");
	if (!member || json_kind(member) == JSON_KIND_NULL)
		return true;
	name = json_text(member);
	if (!name.len || !span_copy(name, dst, size)) {
		httpd_reply_error(r, 400, INVALID,
				  "name: expected a string of 1 to %zu bytes",
				  size - 1);
		return false;
	}
	return true;
}

static void on_accepted(void *ctx, const struct lifecycle_error *no)
{
	struct ask *a = ctx;
	const struct capture *s =
		captures_find(&a->lifecycle->captures, span_str(a->id));
	char path[128];

	if (no) {
		lifecycle_refuse(a->request, no);
	} else if (!s) {
		refuse_unknown(a->request);
	} else {
		(void)snprintf(path, sizeof(path), "/v1/snapshots/%s", s->id);
		httpd_set_header(a->request, "Location", span_str(path));
		reply_capture(a->request, 202, s);
	}
	free(a);
}

void lifecycle_snapshots_post(void *ctx, struct httpd_request *r)
{
	const struct box *b = ask_box(ctx, r);
	char name[CAPTURE_NAME_MAX + 1];
	struct capture *s;

	if (!b || !name_read(r, name, sizeof(name)))
		return;
	if (b->state != BOX_RUNNING && b->state != BOX_PAUSED) {
		httpd_reply_error(r, 409, "SNAPSHOT::INVALID_SOURCE_STATE",
				  "the sandbox is %s, not Running or Paused",
				  box_state_name(b->state));
		return;
	}
	s = must_alloc(sizeof(*s));
	id_make(s->id);
	memcpy(s->sandbox_id, b->id, sizeof(s->sandbox_id));
	memcpy(s->name, name, sizeof(s->name));
	s->created_ms = s->changed_ms = clock_wall_ms();
	capturing_begin(ctx, s, on_accepted, ask_new(ctx, r, span_str(s->id)));
}

void lifecycle_snapshots_list(void *ctx, struct httpd_request *r)
{
	struct buf out = BUF_INIT(ASK_REPLY_MAX);
	struct lifecycle *l = ctx;
	struct list_query q = { 0 };
	struct json_out o;

	if (!ask_list(r, &q))
		return;
	json_start(&o, &out);
	captures_emit(&o, &l->captures, &q);
	list_query_fini(&q);
	ask_reply(r, 200, json_done(&o), &out);
}

void lifecycle_snapshot_get(void *ctx, struct httpd_request *r)
{
	struct lifecycle *l = ctx;
	const struct capture *s =
		captures_find(&l->captures, httpd_param(r, "id"));

	if (s)
		reply_capture(r, 200, s);
	else
		refuse_unknown(r);
}

/* Sandboxes of it live on its image. */
static bool is_used(const struct lifecycle *l, struct span id)
{
	const struct box *b;
	size_t cursor = 0;

	while ((b = map_next(&l->boxes.by_id, &cursor, NULL)))
		if (span_eq(b->snapshot_id, id))
			return true;
	return false;
}

void lifecycle_snapshot_delete(void *ctx, struct httpd_request *r)
{
	struct lifecycle *l = ctx;
	struct span id = httpd_param(r, "id");

	if (captures_find(&l->captures, id) && is_used(l, id)) {
		httpd_reply_error(r, 409, "SNAPSHOT::DELETE_CONFLICT",
				  "a sandbox was made of this snapshot");
		return;
	}
	capturing_remove(l, id, ask_on_removed, ask_new(l, r, id));
}
