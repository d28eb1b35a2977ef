/* SPDX-License-Identifier: Apache-2.0 */
/* api_description.c - GET /openapi.json: what the API says of itself
 *
 * The document that this program was built with, as JSON. It is made at the
 * first question and kept: anybody may ask, and as often as he likes.
 */

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/control/lifecycle/ask.h"
#include "src/control/lifecycle/description.h"
#include "src/text/doc.h"
#include "src/text/json.h"

/* No deeper than DOC_DEPTH_MAX. */
static void put_node(struct json_out *o, const struct doc_node *n)
{
	if (n->key.ptr)
		json_put_name(o, n->key);
	switch (n->kind) {
	case DOC_MAP:
		json_open_object(o, NULL);
		break;
	case DOC_LIST:
		json_open_array(o, NULL);
		break;
	case DOC_STRING:
		json_put_text(o, NULL, n->text);
		return;
	default: /* null, true and numbers are written alike */
		json_put_raw(o, NULL, n->text.len ? n->text : SPAN("null"));
		return;
	}
	doc_for_each(it, n) put_node(o, it);
	json_close(o);
}

static void description_make(struct buf *out)
{
	struct doc *doc CLEANUP_DOC = NULL;
	struct diag d = { 0 };
	struct json_out o;

	/* it is ours, and a test asks for it */
	must(!doc_parse(span_of(lifecycle_yaml, lifecycle_yaml_len), &doc, &d));
	json_start(&o, out);
	put_node(&o, doc_root(doc));
	must(!json_done(&o));
}

void lifecycle_description_get(void *ctx, struct httpd_request *r)
{
	struct lifecycle *l = ctx;

	if (!buf_len(&l->description))
		description_make(&l->description);
	httpd_reply_json(r, 200, buf_peek(&l->description));
}
