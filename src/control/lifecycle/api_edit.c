/* SPDX-License-Identifier: Apache-2.0 */
/* api_edit.c - metadata and expiry of a sandbox changed, the latter by use too
 *
 * What is wrong with a request is said at once. Whether the sandbox may still
 * be changed is looked at again when the change's turn comes.
 */

#include <errno.h>
#include <stdlib.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/control/control.h"
#include "src/control/lifecycle/ask.h"
#include "src/control/lifecycle/metadata.h"
#include "src/control/lifecycle/record.h"
#include "src/control/lifecycle/relabel.h"
#include "src/control/lifecycle/rfc3339.h"
#include "src/role/config.h"
#include "src/text/json.h"

#define LABEL	"SANDBOX::INVALID_METADATA_LABEL"
#define EXPIRY	"DOCKER::INVALID_EXPIRATION"
#define INVALID "SANDBOX::INVALID_PARAMETER"

/* The body as an object, or NULL after an answer. */
static struct json *body_read(struct httpd_request *r)
{
	struct json *j = NULL;
	struct diag d = { 0 };

	if (json_parse(httpd_body(r), &j, &d))
		httpd_reply_error(r, 400, INVALID,
				  "the body is no JSON: line %u, column %u: %s",
				  d.line, d.col, d.msg);
	else if (json_kind(j) != JSON_KIND_OBJECT)
		httpd_reply_error(r, 400, INVALID,
				  "the body: expected an object, found %s",
				  json_kind_name(json_kind(j)));
	else
		return j;
	return json_free(j);
}

/* -- metadata (contract 4.6) ---------------------------------------------- */

/* The body once more: pieces of it are no use without it. */
struct patch {
	size_t len;
	char text[];
};

static int member_check(struct span name, const struct json *value,
			struct lifecycle_error *no)
{
	struct span text = json_text(value);

	if (json_kind(value) == JSON_KIND_NULL)
		return metadata_check(name, SPAN_NONE, no);
	if (json_kind(value) != JSON_KIND_STRING)
		return lifecycle_error_set(
			no, 400, INVALID,
			"%.*s: expected a string or null, found %s",
			SPAN_FMT(span_of(name.ptr, MIN(name.len, (size_t)64))),
			json_kind_name(json_kind(value)));
	return metadata_check(name, text, no);
}

static int patch_check(const struct box *b, const struct json *body,
		       struct lifecycle_error *no)
{
	size_t names = map_count(&b->metadata);
	const struct json *value;
	void *cursor = NULL;
	struct span name;
	int r = 0;

	while (!r && (value = json_next(body, &cursor, &name))) {
		r = member_check(name, value, no);
		if (json_kind(value) == JSON_KIND_NULL)
			names -= map_find(&b->metadata, name) != NULL;
		else
			names += map_find(&b->metadata, name) == NULL;
	}
	return r ? r : metadata_check_count(names, no);
}

static bool edit_metadata(void *data, struct box *b)
{
	struct json *body CLEANUP_JSON = NULL;
	const struct patch *p = data;
	const struct json *value;
	void *cursor = NULL;
	struct span name;

	if (b->state == BOX_STOPPING ||
	    json_parse(span_of(p->text, p->len), &body, NULL))
		return false;
	/* json_text() of null is SPAN_NONE, which removes */
	while ((value = json_next(body, &cursor, &name)))
		box_set_metadata(b, name, json_text(value));
	return relabel_fits(b);
}

static void on_relabelled(void *ctx, const struct refusal *why)
{
	struct ask *a = ctx;
	const struct box *b = boxes_find(&a->lifecycle->boxes, span_str(a->id));

	if (why->status)
		ask_refuse_change(a->request, why,
				  "SANDBOX::INVALID_METADATA_LABEL");
	else if (b)
		ask_reply_box(a->request, b);
	else
		ask_refuse_unknown(a->request);
	free(a);
}

/* The labels are in force before the answer. */
static void on_patched(void *ctx, const struct refusal *why)
{
	struct ask *a = ctx;
	struct lifecycle *l = a->lifecycle;
	const struct box *b = boxes_find(&l->boxes, span_str(a->id));

	if (why->status || !b || l->ended)
		on_relabelled(a, why);
	else
		relabel(l, b, on_relabelled, a);
}

void lifecycle_metadata_patch(void *ctx, struct httpd_request *r)
{
	struct json *body CLEANUP_JSON = NULL;
	struct span text = httpd_body(r);
	const struct box *b = ask_box(ctx, r);
	struct lifecycle_error no;
	struct patch *p;
	struct ask *a;

	if (!b)
		return;
	body = body_read(r);
	if (!body)
		return;
	if (patch_check(b, body, &no)) {
		lifecycle_refuse(r, &no);
		return;
	}
	p = must_alloc(sizeof(*p) + text.len);
	p->len = text.len;
	memcpy(p->text, text.ptr, text.len);
	a = ask_new(ctx, r, span_str(b->id));
	record_edit(ctx, span_str(a->id), edit_metadata, p, on_patched, a);
}

/* -- expiry --------------------------------------------------------------- */

struct renewal {
	uint64_t expires_ms;
};

static bool edit_expiry(void *data, struct box *b)
{
	const struct renewal *n = data;

	if (b->state == BOX_STOPPING || !b->expires_ms)
		return false;
	b->expires_ms = n->expires_ms;
	return true;
}

static void on_renewed(void *ctx, const struct refusal *why)
{
	struct ask *a = ctx;
	const struct box *b = boxes_find(&a->lifecycle->boxes, span_str(a->id));
	struct buf out = BUF_INIT(1024);
	char text[CLOCK_TEXT_SIZE];
	struct json_out o;

	if (why->status) {
		ask_refuse_change(a->request, why, EXPIRY);
	} else if (!b) {
		ask_refuse_unknown(a->request);
	} else {
		clock_text(b->expires_ms, text, sizeof(text));
		json_start(&o, &out);
		json_open_object(&o, NULL);
		json_put_str(&o, "expiresAt", text);
		json_close(&o);
		ask_reply(a->request, 200, json_done(&o), &out);
	}
	buf_fini(&out);
	free(a);
}

/* Never earlier than it was; what would not move is not stored. */
static bool edit_accessed(void *data, struct box *b)
{
	uint64_t expires_ms =
		clock_wall_ms() + (uint64_t)b->renew_extend_s * 1000;

	(void)data;
	if (b->state != BOX_RUNNING || !b->renew_extend_s || !b->expires_ms ||
	    expires_ms <= b->expires_ms)
		return false;
	b->expires_ms = expires_ms;
	return true;
}

void lifecycle_accessed(struct lifecycle *l, struct span id)
{
	if (l && !l->ended && boxes_find(&l->boxes, id))
		record_edit(l, id, edit_accessed, NULL, NULL, NULL);
}

/* False: answered. */
static bool expiry_read(struct httpd_request *r, uint64_t max_s, uint64_t *ret)
{
	struct json *body CLEANUP_JSON = body_read(r);
	struct span text = json_text(json_find(body, "expiresAt"));
	uint64_t now = clock_wall_ms();

	if (!body)
		return false;
	if (!rfc3339_parse(text, ret)) {
		httpd_reply_error(r, 400, INVALID,
				  "expiresAt: expected a time such as "
				  "2030-01-31T12:00:00Z");
		return false;
	}
	if (*ret <= now) {
		httpd_reply_error(r, 400, EXPIRY,
				  "expiresAt: %.*s is not in the future",
				  SPAN_FMT(text));
		return false;
	}
	if (max_s && *ret > now + max_s * 1000) {
		httpd_reply_error(r, 400, EXPIRY,
				  "expiresAt: %.*s is more than %llu s ahead",
				  SPAN_FMT(text), (unsigned long long)max_s);
		return false;
	}
	return true;
}

void lifecycle_renew_post(void *ctx, struct httpd_request *r)
{
	struct lifecycle *l = ctx;
	const struct box *b = ask_box(l, r);
	struct renewal *n;
	uint64_t expires_ms;
	struct ask *a;

	if (!b || !expiry_read(r, l->control->config->lifecycle_max_timeout_s,
			       &expires_ms))
		return;
	if (!b->expires_ms) {
		httpd_reply_error(r, 409, EXPIRY,
				  "the sandbox has no expiry: it was made for "
				  "manual cleanup");
		return;
	}
	n = must_alloc(sizeof(*n));
	n->expires_ms = expires_ms;
	a = ask_new(l, r, span_str(b->id));
	record_edit(l, span_str(a->id), edit_expiry, n, on_renewed, a);
}
