/* SPDX-License-Identifier: Apache-2.0 */
/* relabel.c - a registry entry with other labels, everything else as it was */

#include "src/control/lifecycle/relabel.h"

#include <assert.h>

#include "src/base/buf.h"
#include "src/base/log.h"
#include "src/control/control.h"
#include "src/control/lifecycle/lifecycle.h"
#include "src/control/lifecycle/metadata.h"
#include "src/text/json.h"

static_assert((int)METADATA_NAMES_MAX == (int)SANDBOX_LABELS_MAX,
	      "what a request may have fits");

enum { TEXT_MAX = 1024 * 1024 };

bool relabel_fits(const struct box *b)
{
	size_t cursor = 0;
	struct span name;

	while (map_next(&b->metadata, &cursor, &name))
		if (name.len > SANDBOX_LABEL_MAX)
			return false;
	return map_count(&b->metadata) <= SANDBOX_LABELS_MAX;
}

static void put_labels(struct json_out *o, const struct box *b)
{
	size_t cursor = 0;
	struct span name;
	const char *value;

	json_open_object(o, "labels");
	while ((value = map_next(&b->metadata, &cursor, &name))) {
		json_put_name(o, name);
		json_put_str(o, NULL, value);
	}
	json_close(o);
}

/* The entry as it is, member by member. */
static int entry_emit(const struct sandbox *s, const struct box *b,
		      struct buf *out)
{
	struct buf now CLEANUP(buf_fini) = BUF_INIT(TEXT_MAX);
	struct json *j CLEANUP_JSON = NULL;
	const struct json *value;
	void *cursor = NULL;
	struct json_out o;
	struct span name;
	int r;

	json_start(&o, &now);
	json_open_object(&o, NULL);
	sandbox_emit(&o, s);
	json_close(&o);
	r = json_done(&o);
	if (!r)
		r = json_parse(buf_peek(&now), &j, NULL);
	if (r)
		return r;
	json_start(&o, out);
	json_open_object(&o, NULL);
	while ((value = json_next(j, &cursor, &name))) {
		if (span_eq(name, SPAN("labels")))
			continue;
		json_put_name(&o, name);
		json_put_json(&o, NULL, value);
	}
	put_labels(&o, b);
	json_close(&o);
	return json_done(&o);
}

void relabel(struct lifecycle *l, const struct box *b, changed_fn *fn,
	     void *ctx)
{
	const struct sandbox *s =
		sandboxes_find(&l->control->sandboxes, span_str(b->id));
	struct buf text CLEANUP(buf_fini) = BUF_INIT(TEXT_MAX);
	struct refusal why = { 0 };
	struct sandbox *next;

	if (s &&
	    (entry_emit(s, b, &text) ||
	     sandbox_parse(buf_peek(&text), SPAN_NONE, &next, &why.diag))) {
		log_error("the registry could not follow the metadata of "
			  "sandbox %s: %s",
			  b->id, why.diag.msg);
		why.status = 500;
		why.code = "SANDBOX::UNKNOWN_ERROR";
		s = NULL;
	}
	if (s)
		sandbox_change_put(l->control, next, fn, ctx);
	else
		fn(ctx, &why);
}

static bool has_followed(const struct sandbox *s, const struct box *b)
{
	const char *value;
	unsigned i;

	if (s->label_count != map_count(&b->metadata))
		return false;
	for (i = 0; i < s->label_count; i++) {
		value = map_find(&b->metadata, s->labels[i].key);
		if (!value || !span_eq(span_str(value), s->labels[i].value))
			return false;
	}
	return true;
}

static void on_followed(void *ctx, const struct refusal *why)
{
	(void)ctx;
	if (why->status)
		log_warn("the registry has not followed a sandbox's metadata: "
			 "%s",
			 why->diag.msg);
}

/* Those that are being made or removed have no changed metadata. */
void relabel_all(struct lifecycle *l)
{
	const struct sandbox *s;
	size_t cursor = 0;
	struct box *b;

	while ((b = map_next(&l->boxes.by_id, &cursor, NULL))) {
		s = sandboxes_find(&l->control->sandboxes, span_str(b->id));
		if (s && b->state != BOX_PENDING && b->state != BOX_STOPPING &&
		    !has_followed(s, b))
			relabel(l, b, on_followed, NULL);
	}
}
