/* SPDX-License-Identifier: Apache-2.0 */
/* bundle.c - values and failures of a cell, from JSON to what events tell */

#include "src/execd/code/bundle.h"

#include <errno.h>

#include "src/base/buf.h"
#include "src/text/json.h"

/* The text of one member, as a JSON string in `text`. 0 or -ENOBUFS. */
static int member_text(struct buf *text, const struct json *value)
{
	struct buf plain = BUF_INIT(BUNDLE_MAX);
	struct span s = json_text(value);
	int r = 0;

	if (!s.ptr && json_kind(value) == JSON_KIND_ARRAY &&
	    json_text(json_item(value, 0)).ptr) {
		json_for_each(line, value) if (!r) r =
			buf_put(&plain, json_text(line));
		s = buf_peek(&plain);
	} else if (!s.ptr) {
		r = json_emit(&plain, value);
		s = buf_peek(&plain);
	}
	if (!r)
		r = json_escape(text, s);
	buf_fini(&plain);
	return r;
}

/* How large it is about, for the sentence that it was left out. */
static size_t member_size(const struct json *value)
{
	size_t sum = json_text(value).len;

	json_for_each(line, value) sum += json_text(line).len;
	return sum ? sum : BUNDLE_MAX;
}

static struct span event_name(struct span mime)
{
	return span_eq(mime, SPAN("text/plain")) ? SPAN("text") : mime;
}

int bundle_put(struct buf *out, const struct json *data, size_t *left_out)
{
	struct buf text = BUF_INIT(BUNDLE_MAX);
	const struct json *value;
	struct json_out o;
	size_t sum = 0;
	struct span mime;
	void *at = NULL;
	int count = 0, r;

	*left_out = 0;
	json_start(&o, out);
	json_open_object(&o, NULL);
	while ((value = json_next(data, &at, &mime))) {
		if (json_kind(value) == JSON_KIND_NULL)
			continue;
		buf_clear(&text);
		if (mime.len > BUNDLE_MIME_MAX || member_text(&text, value) ||
		    sum + buf_len(&text) > BUNDLE_MAX) {
			*left_out += member_size(value);
			continue;
		}
		sum += buf_len(&text) + mime.len;
		json_put_name(&o, event_name(mime));
		json_put_raw(&o, NULL, buf_peek(&text));
		count++;
	}
	json_close(&o);
	r = json_done(&o);
	buf_fini(&text);
	return r ? r : count;
}

static struct span bounded(struct span s, size_t max)
{
	return s.ptr ? span_of(s.ptr, MIN(s.len, max)) : SPAN("");
}

void failure_read(const struct json *content, struct failure *ret)
{
	struct span name = json_text(json_find(content, "ename"));

	*ret = (struct failure){ 0 };
	ret->ename = name.len ? bounded(name, BUNDLE_MIME_MAX) : SPAN("Error");
	ret->evalue = bounded(json_text(json_find(content, "evalue")),
			      FAILURE_TEXT_MAX);
	json_for_each(line,
		      json_find(content, "traceback")) if (ret->line_count <
							   FAILURE_LINES_MAX)
		ret->lines[ret->line_count++] =
		bounded(json_text(line), FAILURE_LINE_MAX);
}
