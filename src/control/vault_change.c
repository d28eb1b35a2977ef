/* SPDX-License-Identifier: Apache-2.0 */
/* vault_change.c - parsing changes, storing and applying them */

#include "src/control/vault_change.h"

#include <errno.h>
#include <stdlib.h>

#include "policy/binding.h"
#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/control/vault_link.h"
#include "src/control/vault_state.h"
#include "src/text/json.h"
#include "src/wire/header.h"

enum { CHANGES_MAX = 4096 };

/* -- parsing -------------------------------------------------------------- */

/* Reads the value; the sentence never repeats it. */
static int value_read(const struct json *source, struct span *ret,
		      struct diag *d)
{
	static const char *const known[] = { "type", "value", NULL };
	struct span type = SPAN("inline"), value = SPAN_NONE;
	int r;

	r = json_refuse_unknown(source, "source", known, d);
	if (!r)
		r = json_get_text(source, "source", "type", &type, d);
	if (r >= 0)
		r = json_get_text(source, "source", "value", &value, d);
	if (r < 0)
		return r;
	if (!span_eq(type, SPAN("inline")))
		return diag_set(d, 0, 0,
				"unsupported credential source type; expected "
				"\"inline\"");
	if (!value.len)
		return diag_set(d, 0, 0, "source: \"value\" is missing");
	if (value.len > CREDENTIAL_VALUE_MAX)
		return diag_set(d, 0, 0,
				"source: \"value\": found %zu bytes, expected "
				"at most %d",
				value.len, CREDENTIAL_VALUE_MAX);
	if (!header_value_is_valid(value))
		return diag_set(d, 0, 0,
				"source: \"value\" holds CR, LF, NUL or "
				"another control byte, which no header can "
				"carry");
	*ret = value;
	return 0;
}

static int credential_read(const struct json *j, struct span path_name,
			   struct credential_change *ret, struct diag *d)
{
	static const char *const known[] = { "name", "source", NULL };
	struct span name = path_name;
	const struct json *source;
	int r;

	r = json_want(j, JSON_KIND_OBJECT, "credential", d);
	if (!r)
		r = json_refuse_unknown(j, "credential", known, d);
	if (!r)
		r = json_get_text(j, "credential", "name", &name, d);
	if (r < 0)
		return r;
	if (!binding_name_parse(name, &ret->name))
		return diag_set(d, 0, 0,
				"credential: \"name\": expected 1 to %d bytes "
				"without control characters",
				BINDING_NAME_MAX);
	if (path_name.ptr && !span_eq(ret->name, path_name))
		return diag_set(d, 0, 0,
				"credential: \"name\" differs from the path");
	r = json_get_object(j, "credential", "source", &source, d);
	if (r == JSON_E_ABSENT)
		return diag_set(d, 0, 0, "credential: \"source\" is missing");
	return r ? r : value_read(source, &ret->value, d);
}

static int binding_read(const struct json *j, struct span path_name,
			struct binding_change *ret, struct diag *d)
{
	int r;

	r = binding_parse(j, &ret->binding, d);
	if (r)
		return r;
	ret->name = ret->binding->name;
	if (path_name.ptr && !span_eq(ret->name, path_name))
		return diag_set(d, 0, 0,
				"binding: \"name\" differs from the path");
	return 0;
}

static struct vault_change *change_new(unsigned credentials, unsigned bindings)
{
	struct vault_change *c = must_alloc(sizeof(*c));

	c->expected = -1;
	c->credentials =
		must_alloc((credentials + 1) * sizeof(*c->credentials));
	c->bindings = must_alloc((bindings + 1) * sizeof(*c->bindings));
	return c;
}

struct vault_change *vault_change_free(struct vault_change *c)
{
	unsigned i;

	if (!c)
		return NULL;
	for (i = 0; i < c->binding_count; i++)
		binding_free(c->bindings[i].binding);
	free(c->bindings);
	free(c->credentials);
	free(c->name);
	json_free(c->body); /* wipes the values */
	free(c);
	return NULL;
}

/* One array of a patch section ("add") into the change. */
static int patch_verb_read(struct vault_change *c, const struct json *section,
			   const char *member, enum change_verb verb,
			   bool is_binding, struct diag *d)
{
	struct credential_change credential = { .verb = verb };
	struct binding_change binding = { .verb = verb };
	const struct json *array;
	struct span *name = is_binding ? &binding.name : &credential.name;
	int r;

	r = json_get_array(section, is_binding ? "bindings" : "credentials",
			   member, &array, d);
	if (r)
		return r < 0 ? r : 0;
	json_for_each(j, array)
	{
		binding.binding = NULL;
		if (verb == CHANGE_DELETE) {
			if (!binding_name_parse(json_text(j), name))
				r = diag_set(d, 0, 0, "delete: expected names");
		} else if (is_binding) {
			r = binding_read(j, SPAN_NONE, &binding, d);
		} else {
			r = credential_read(j, SPAN_NONE, &credential, d);
		}
		if (is_binding && (!r || binding.binding))
			c->bindings[c->binding_count++] = binding;
		else if (!r)
			c->credentials[c->credential_count++] = credential;
		if (r)
			return r;
	}
	return 0;
}

/* The two lists of a vault that is created. */
static int create_read(struct vault_change *c, struct diag *d)
{
	static const char *const known[] = { "credentials", "bindings", NULL };
	int r;

	r = json_refuse_unknown(c->body, "request", known, d);
	if (!r)
		r = patch_verb_read(c, c->body, "credentials", CHANGE_ADD,
				    false, d);
	if (!r)
		r = patch_verb_read(c, c->body, "bindings", CHANGE_ADD, true,
				    d);
	return r;
}

static int patch_section_read(struct vault_change *c, const char *member,
			      bool is_binding, struct diag *d)
{
	static const char *const known[] = { "add", "replace", "delete", NULL };
	const struct json *section;
	int r;

	r = json_get_object(c->body, "patch", member, &section, d);
	if (r)
		return r < 0 ? r : 0;
	r = json_refuse_unknown(section, member, known, d);
	if (!r)
		r = patch_verb_read(c, section, "delete", CHANGE_DELETE,
				    is_binding, d);
	if (!r)
		r = patch_verb_read(c, section, "replace", CHANGE_REPLACE,
				    is_binding, d);
	if (!r)
		r = patch_verb_read(c, section, "add", CHANGE_ADD, is_binding,
				    d);
	return r;
}

static size_t patch_size(const struct json *section)
{
	return json_count(json_find(section, "add")) +
	       json_count(json_find(section, "replace")) +
	       json_count(json_find(section, "delete"));
}

static int patch_read(struct vault_change *c, struct diag *d)
{
	static const char *const known[] = { "expectedRevision", "credentials",
					     "bindings", NULL };
	uint64_t expected;
	int r;

	r = json_refuse_unknown(c->body, "patch", known, d);
	if (!r)
		r = json_get_u64(c->body, "patch", "expectedRevision",
				 &expected, d);
	if (r < 0)
		return r;
	if (!r)
		c->expected = (int64_t)MIN(expected, (uint64_t)INT64_MAX);
	r = patch_section_read(c, "credentials", false, d);
	return r ? r : patch_section_read(c, "bindings", true, d);
}

/* size: how many changes one of the two members is. */
static int change_parse(struct span text, const char *what,
			size_t (*size)(const struct json *part),
			int (*read)(struct vault_change *c, struct diag *d),
			struct vault_change **ret, struct diag *d)
{
	struct json *body;
	struct vault_change *c;
	size_t credentials, bindings;
	int r;

	r = json_parse(text, &body, d);
	if (r)
		return r;
	credentials = size(json_find(body, "credentials"));
	bindings = size(json_find(body, "bindings"));
	r = json_want(body, JSON_KIND_OBJECT, what, d);
	if (!r && credentials + bindings > CHANGES_MAX)
		r = diag_set(d, 0, 0,
			     "%s: found %zu, expected at most %d changes", what,
			     credentials + bindings, CHANGES_MAX);
	if (r) {
		json_free(body);
		return r;
	}
	c = change_new((unsigned)credentials, (unsigned)bindings);
	c->body = body;
	r = read(c, d);
	if (r)
		vault_change_free(c);
	else
		*ret = c;
	return r;
}

int vault_change_parse_patch(struct span text, struct vault_change **ret,
			     struct diag *d)
{
	return change_parse(text, "patch", patch_size, patch_read, ret, d);
}

int vault_change_parse_create(struct span text, struct vault_change **ret,
			      struct diag *d)
{
	return change_parse(text, "request", json_count, create_read, ret, d);
}

int vault_change_parse_credential(struct span text, enum change_verb verb,
				  struct span name, struct vault_change **ret,
				  struct diag *d)
{
	struct vault_change *c = change_new(1, 0);
	int r;

	c->credentials[0].verb = verb;
	r = json_parse(text, &c->body, d);
	if (!r)
		r = credential_read(c->body, name, &c->credentials[0], d);
	if (r) {
		vault_change_free(c);
		return r;
	}
	/* a name that came from the path does not live as long as we do */
	c->name = must_alloc(c->credentials[0].name.len + 1);
	memcpy(c->name, c->credentials[0].name.ptr, c->credentials[0].name.len);
	c->credentials[0].name.ptr = c->name;
	c->credential_count = 1;
	*ret = c;
	return 0;
}

int vault_change_parse_binding(struct span text, enum change_verb verb,
			       struct span name, struct vault_change **ret,
			       struct diag *d)
{
	struct vault_change *c = change_new(0, 1);
	int r;

	c->bindings[0].verb = verb;
	c->binding_count = 1;
	r = json_parse(text, &c->body, d);
	if (!r)
		r = binding_read(c->body, name, &c->bindings[0], d);
	if (r)
		vault_change_free(c);
	else
		*ret = c;
	return r;
}

static struct vault_change *change_delete(struct span name, struct span *ret)
{
	struct vault_change *c = change_new(1, 1);

	c->name = must_alloc(name.len + 1);
	memcpy(c->name, name.ptr, name.len);
	*ret = span_of(c->name, name.len);
	return c;
}

struct vault_change *vault_change_delete_credential(struct span name)
{
	struct vault_change *c = change_delete(name, &name);

	c->credentials[c->credential_count++] =
		(struct credential_change){ CHANGE_DELETE, name, SPAN_NONE };
	return c;
}

struct vault_change *vault_change_delete_binding(struct span name)
{
	struct vault_change *c = change_delete(name, &name);

	c->bindings[c->binding_count++] =
		(struct binding_change){ CHANGE_DELETE, name, NULL };
	return c;
}

/* -- storing and applying ------------------------------------------------- */

static void binding_store(const struct binding *b, struct vault_link *link)
{
	struct buf text = BUF_INIT(BINDING_TEXT_MAX);

	must(!binding_emit(b, false, &text)); /* its size was checked */
	vault_link_put(link, RECORD_BINDING, b->name, buf_peek(&text));
	buf_fini(&text);
}

void vault_change_store(const struct vault_change *c, struct vault_link *link)
{
	const struct credential_change *credential;
	const struct binding_change *binding;
	unsigned i;

	for (i = 0; i < c->credential_count; i++) {
		credential = &c->credentials[i];
		if (credential->verb == CHANGE_DELETE)
			vault_link_remove(link, RECORD_CREDENTIAL,
					  credential->name);
		else
			vault_link_put(link, RECORD_CREDENTIAL,
				       credential->name, credential->value);
	}
	for (i = 0; i < c->binding_count; i++) {
		binding = &c->bindings[i];
		if (binding->verb == CHANGE_DELETE)
			vault_link_remove(link, RECORD_BINDING, binding->name);
		else
			binding_store(binding->binding, link);
	}
}

void vault_change_apply(struct vault_change *c, struct vault_state *s,
			uint64_t revision)
{
	struct binding_change *binding;
	unsigned i;

	s->revision = revision;
	for (i = 0; i < c->credential_count; i++) {
		if (c->credentials[i].verb == CHANGE_DELETE)
			vault_state_remove_credential(s,
						      c->credentials[i].name);
		else
			vault_state_put_credential(s, c->credentials[i].name,
						   revision);
	}
	for (i = 0; i < c->binding_count; i++) {
		binding = &c->bindings[i];
		if (binding->verb == CHANGE_DELETE)
			vault_state_remove_binding(s, binding->name);
		else
			vault_state_put_binding(s, take_ptr(binding->binding),
						revision);
	}
}
