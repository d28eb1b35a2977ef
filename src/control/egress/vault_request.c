/* SPDX-License-Identifier: Apache-2.0 */
/* vault_request.c - the client's words, cleaned, then read as a change
 *
 * The text is written once more without what means nothing, and that is what
 * vault_change.c reads. Both trees and the text between them are wiped.
 */

#include "src/control/egress/vault_request.h"

#include "policy/binding.h"
#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/log.h"
#include "src/control/vault_change.h"
#include "src/text/json.h"

/* -- what cannot be asked for --------------------------------------------- */

static int refuse_member(const struct json *binding, const char *what,
			 struct diag *d)
{
	char name[128];

	return diag_set(d, 0, 0, "binding \"%s\": %s",
			log_escape(json_text(json_find(binding, "name")), name,
				   sizeof(name)),
			what);
}

static int binding_look(const struct json *b, struct diag *d)
{
	const struct json *auth = json_find(b, "auth");

	if (json_find(b, "substitutions"))
		return refuse_member(b,
				     "\"substitutions\" are not supported; "
				     "credentials are put into headers, by "
				     "\"auth\"",
				     d);
	if (span_eq(json_text(json_find(auth, "type")), SPAN("passthrough")))
		return refuse_member(
			b,
			"auth type \"passthrough\" is not "
			"supported, expected bearer, basic, apiKey "
			"or customHeaders",
			d);
	if (json_find(b, "sandboxes"))
		return refuse_member(b,
				     "unknown field \"sandboxes\": it is for "
				     "this sandbox alone",
				     d);
	if (json_find(b, "revision"))
		return refuse_member(
			b,
			"unknown field \"revision\": it is counted "
			"here",
			d);
	return 0;
}

static int bindings_look(const struct json *list, struct diag *d)
{
	int r;

	json_for_each(b, list)
	{
		r = binding_look(b, d);
		if (r)
			return r;
	}
	return 0;
}

/* -- what means nothing --------------------------------------------------- */

/* Members that somewhere may be left out; others stay, to be refused. */
static const char *const optional[] = {
	"credentials", "bindings", "expectedRevision",
	"add",	       "replace",  "delete",
	"schemes",     "ports",	   "hosts",
	"methods",     "paths",	   "headers",
	"type",	       "value",	   "redactBody",
};

static bool means_nothing(struct span name, const struct json *value)
{
	size_t i;

	if (json_kind(value) != JSON_KIND_NULL &&
	    (json_kind(value) != JSON_KIND_ARRAY || json_count(value)))
		return false;
	for (i = 0; i < ARRAY_LEN(optional); i++)
		if (span_eq(name, span_str(optional[i])))
			return true;
	return false;
}

static void put_clean(struct json_out *o, const struct json *j);

static void put_clean_object(struct json_out *o, const struct json *j)
{
	const struct json *value;
	void *cursor = NULL;
	struct span name;

	json_open_object(o, NULL);
	while ((value = json_next(j, &cursor, &name))) {
		if (means_nothing(name, value))
			continue;
		json_put_name(o, name);
		put_clean(o, value);
	}
	json_close(o);
}

/* As deep as json_parse() lets a text be. */
static void put_clean(struct json_out *o, const struct json *j)
{
	switch (json_kind(j)) {
	case JSON_KIND_OBJECT:
		put_clean_object(o, j);
		return;
	case JSON_KIND_ARRAY:
		json_open_array(o, NULL);
		json_for_each(item, j)
		{
			put_clean(o, item);
		}
		json_close(o);
		return;
	case JSON_KIND_NONE:
	case JSON_KIND_NULL:
	case JSON_KIND_BOOL:
	case JSON_KIND_NUMBER:
	case JSON_KIND_STRING:
	case JSON_KIND_NUM:
		json_put_json(o, NULL, j);
		return;
	}
}

/* -- the two -------------------------------------------------------------- */

typedef int parse_fn(struct span text, struct vault_change **ret,
		     struct diag *d);

/* A copy that grows leaves pieces of it behind, so its room is had at once. */
static int parse_clean(const struct json *j, size_t len, parse_fn *parse,
		       struct vault_change **ret, struct diag *d)
{
	struct buf text = BUF_INIT(VAULT_REQUEST_TEXT_MAX);
	struct json_out o;
	char *room;
	int r;

	r = buf_reserve(&text,
			MIN(2 * len + 64, (size_t)VAULT_REQUEST_TEXT_MAX),
			&room);
	if (!r) {
		json_start(&o, &text);
		put_clean(&o, j);
		r = json_done(&o);
	}
	if (r)
		r = diag_set(d, 0, 0, "larger than %d bytes",
			     VAULT_REQUEST_TEXT_MAX);
	else
		r = parse(buf_peek(&text), ret, d);
	buf_wipe(&text);
	return r;
}

static int prefix(const char *what, const struct diag *why, struct diag *d)
{
	return diag_set(d, 0, 0, "invalid credential vault %s: %.*s", what,
			(int)sizeof(d->msg) - 64, why->msg);
}

int vault_request_parse_create(struct span text, struct vault_change **ret,
			       struct diag *d)
{
	struct json *j CLEANUP_JSON = NULL;
	struct diag why = { 0 };
	int r;

	r = json_parse(text, &j, &why);
	if (!r)
		r = json_want(j, JSON_KIND_OBJECT, "request", &why);
	if (!r)
		r = bindings_look(json_find(j, "bindings"), &why);
	if (!r)
		r = parse_clean(j, text.len, vault_change_parse_create, ret,
				&why);
	return r ? prefix("request", &why, d) : 0;
}

int vault_request_parse_patch(struct span text, struct vault_change **ret,
			      struct diag *d)
{
	struct json *j CLEANUP_JSON = NULL;
	const struct json *bindings;
	struct diag why = { 0 };
	int r;

	r = json_parse(text, &j, &why);
	if (!r)
		r = json_want(j, JSON_KIND_OBJECT, "request", &why);
	bindings = json_find(j, "bindings");
	if (!r)
		r = bindings_look(json_find(bindings, "add"), &why);
	if (!r)
		r = bindings_look(json_find(bindings, "replace"), &why);
	if (!r)
		r = parse_clean(j, text.len, vault_change_parse_patch, ret,
				&why);
	return r ? prefix("mutation request", &why, d) : 0;
}
