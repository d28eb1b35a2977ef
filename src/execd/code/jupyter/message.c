/* SPDX-License-Identifier: Apache-2.0 */
/* message.c - messages of a Jupyter kernel, as its server sends them */

#include "src/execd/code/jupyter/message.h"

#include <errno.h>

#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/text/json.h"

/* -- what comes ----------------------------------------------------------- */

static struct span text_at(const struct json *j, const char *name)
{
	return json_text(json_find(j, name));
}

static enum message_kind status_kind(const struct json *content, bool ours)
{
	struct span state = text_at(content, "execution_state");

	/* A dead kernel is told by the server, of no request. */
	if (span_eq(state, SPAN("dead")) ||
	    span_eq(state, SPAN("restarting")) ||
	    span_eq(state, SPAN("autorestarting")))
		return MESSAGE_RESTART;
	if (ours && span_eq(state, SPAN("idle")))
		return MESSAGE_IDLE;
	if (ours && span_eq(state, SPAN("busy")))
		return MESSAGE_BUSY;
	return MESSAGE_OTHER;
}

static enum message_kind kind_of(struct span type, const struct json *content,
				 bool ours)
{
	static const struct {
		struct span type;
		enum message_kind kind;
	} kinds[] = {
		{ SPAN_INIT("stream"), MESSAGE_STREAM },
		{ SPAN_INIT("execute_result"), MESSAGE_RESULT },
		{ SPAN_INIT("display_data"), MESSAGE_RESULT },
		{ SPAN_INIT("error"), MESSAGE_ERROR },
		{ SPAN_INIT("execute_reply"), MESSAGE_REPLY },
	};
	size_t i;

	if (span_eq(type, SPAN("status")))
		return status_kind(content, ours);
	for (i = 0; ours && i < ARRAY_LEN(kinds); i++)
		if (span_eq(type, kinds[i].type))
			return kinds[i].kind;
	return MESSAGE_OTHER;
}

int message_parse(struct span text, struct span request, struct message *ret)
{
	struct message m = { 0 };
	struct span parent, type;

	if (json_parse(text, &m.root, NULL))
		return -EINVAL;
	type = text_at(json_find(m.root, "header"), "msg_type");
	if (!type.len)
		type = text_at(m.root, "msg_type");
	m.content = json_find(m.root, "content");
	if (!type.len || json_kind(m.content) != JSON_KIND_OBJECT) {
		message_fini(&m);
		return -EINVAL;
	}
	parent = text_at(json_find(m.root, "parent_header"), "msg_id");
	m.kind = kind_of(type, m.content,
			 request.len && span_eq(parent, request));
	(void)json_u64(json_find(m.content, "execution_count"), &m.count);
	if (m.kind == MESSAGE_STREAM) {
		m.text = text_at(m.content, "text");
		m.is_stderr =
			span_eq(text_at(m.content, "name"), SPAN("stderr"));
	}
	m.failed = m.kind == MESSAGE_REPLY &&
		   !span_eq(text_at(m.content, "status"), SPAN("ok"));
	*ret = m;
	return 0;
}

void message_fini(struct message *m)
{
	m->root = json_free(m->root);
}

/* -- what is sent --------------------------------------------------------- */

int message_execute(struct buf *out, struct span id, struct span session,
		    struct span code)
{
	char date[CLOCK_TEXT_SIZE];
	struct json_out o;

	clock_text(clock_wall_ms(), date, sizeof(date));
	json_start(&o, out);
	json_open_object(&o, NULL);
	json_put_str(&o, "channel", "shell");
	json_open_object(&o, "header");
	json_put_text(&o, "msg_id", id);
	json_put_str(&o, "msg_type", "execute_request");
	json_put_text(&o, "session", session);
	json_put_str(&o, "username", "execd");
	json_put_str(&o, "date", date);
	json_put_str(&o, "version", "5.3");
	json_close(&o);
	json_open_object(&o, "parent_header");
	json_close(&o);
	json_open_object(&o, "metadata");
	json_close(&o);
	json_open_object(&o, "content");
	json_put_text(&o, "code", code);
	json_put_bool(&o, "silent", false);
	json_put_bool(&o, "store_history", true);
	json_open_object(&o, "user_expressions");
	json_close(&o);
	json_put_bool(&o, "allow_stdin", false);
	json_put_bool(&o, "stop_on_error", true);
	json_close(&o);
	json_open_array(&o, "buffers");
	json_close(&o);
	json_close(&o);
	return json_done(&o);
}

/* -- which kernel --------------------------------------------------------- */

struct span message_kernel(const struct json *specs, struct span language)
{
	const struct json *all = json_find(specs, "kernelspecs"), *entry;
	struct span standard = text_at(specs, "default"), found = SPAN_NONE;
	struct span name, speaks;
	void *at = NULL;

	while ((entry = json_next(all, &at, &name))) {
		speaks = text_at(json_find(entry, "spec"), "language");
		if (!span_eq_nocase(speaks, language) &&
		    !span_eq_nocase(name, language))
			continue;
		if (!found.ptr || span_eq(found, standard))
			found = name;
	}
	return found;
}
