/* SPDX-License-Identifier: Apache-2.0 */
/* binding.c - what a binding is called, and how it is written */

#include "policy/binding.h"

#include <stdlib.h>

#include "src/base/buf.h"
#include "src/text/json.h"

static const char *const auth_names[] = {
	[BINDING_AUTH_NONE] = "none",
	[BINDING_AUTH_BEARER] = "bearer",
	[BINDING_AUTH_BASIC] = "basic",
	[BINDING_AUTH_API_KEY] = "apiKey",
	[BINDING_AUTH_CUSTOM_HEADERS] = "customHeaders",
};
_Static_assert(ARRAY_LEN(auth_names) == BINDING_AUTH_NUM, "a name for each");

const char *binding_auth_name(enum binding_auth auth)
{
	return auth < BINDING_AUTH_NUM ? auth_names[auth] : "none";
}

bool binding_name_parse(struct span text, struct span *ret)
{
	struct span name = span_trim(text);
	size_t i;

	if (!name.len || name.len > BINDING_NAME_MAX)
		return false;
	for (i = 0; i < name.len; i++)
		if ((unsigned char)name.ptr[i] < 0x20 || name.ptr[i] == 0x7f)
			return false;
	*ret = name;
	return true;
}

struct binding *binding_free(struct binding *b)
{
	if (!b)
		return NULL;
	arena_fini(&b->arena);
	free(b);
	return NULL;
}

/* -- writing -------------------------------------------------------------- */

static void list_emit(struct json_out *o, const char *name,
		      const struct binding_list *list)
{
	unsigned i;

	json_open_array(o, name);
	for (i = 0; i < list->count; i++)
		json_put_text(o, NULL, list->items[i]);
	json_close(o);
}

static void match_emit(struct json_out *o, const struct binding *b)
{
	unsigned i;

	json_open_object(o, "match");
	json_open_array(o, "schemes");
	if (b->schemes & BINDING_HTTPS)
		json_put_str(o, NULL, "https");
	if (b->schemes & BINDING_HTTP)
		json_put_str(o, NULL, "http");
	json_close(o);
	json_open_array(o, "ports");
	for (i = 0; i < b->port_count; i++)
		json_put_u64(o, NULL, b->ports[i]);
	json_close(o);
	list_emit(o, "hosts", &b->hosts);
	list_emit(o, "methods", &b->methods);
	list_emit(o, "paths", &b->paths);
	json_close(o);
}

static void header_emit(struct json_out *o, const struct binding_header *h,
			bool named)
{
	if (named)
		json_put_text(o, "name", h->name);
	json_put_text(o, "credential", h->credential);
}

static void auth_emit(struct json_out *o, const struct binding *b)
{
	unsigned i;

	json_open_object(o, "auth");
	json_put_str(o, "type", binding_auth_name(b->auth));
	if (b->auth != BINDING_AUTH_CUSTOM_HEADERS) {
		header_emit(o, &b->headers[0], b->auth == BINDING_AUTH_API_KEY);
	} else {
		json_open_array(o, "headers");
		for (i = 0; i < b->header_count; i++) {
			json_open_object(o, NULL);
			header_emit(o, &b->headers[i], true);
			json_close(o);
		}
		json_close(o);
	}
	json_close(o);
}

int binding_emit(const struct binding *b, bool with_revision, struct buf *buf)
{
	struct json_out o;

	json_start(&o, buf);
	json_open_object(&o, NULL);
	json_put_text(&o, "name", b->name);
	if (with_revision && b->revision)
		json_put_u64(&o, "revision", b->revision);
	if (!b->every_sandbox)
		list_emit(&o, "sandboxes", &b->sandboxes);
	match_emit(&o, b);
	auth_emit(&o, b);
	if (b->redact_body)
		json_put_bool(&o, "redactBody", true);
	json_close(&o);
	return json_done(&o);
}

void binding_emit_shown(struct json_out *o, const struct binding *b,
			uint64_t revision)
{
	json_open_object(o, NULL);
	json_put_text(o, "name", b->name);
	json_put_u64(o, "revision", revision);
	match_emit(o, b);
	json_open_object(o, "auth");
	json_put_str(o, "type", binding_auth_name(b->auth));
	if (b->auth == BINDING_AUTH_API_KEY)
		json_put_text(o, "name", b->headers[0].name);
	json_close(o);
	json_close(o);
}
