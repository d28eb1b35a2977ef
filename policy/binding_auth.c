/* SPDX-License-Identifier: Apache-2.0 */
/* binding_auth.c - the auth object of a binding: which headers it writes */

#include "policy/binding_read.h"

#include <errno.h>

#include "src/base/diag.h"
#include "src/text/json.h"
#include "src/wire/header.h"

/* "PRIVATE-TOKEN" becomes "Private-Token", as HTTP libraries write it. */
static void header_name_dress(char *name, size_t len)
{
	bool first = true;
	size_t i;

	for (i = 0; i < len; i++) {
		name[i] = span_lower_char(name[i]);
		if (first && name[i] >= 'a' && name[i] <= 'z')
			name[i] = (char)(name[i] - 'a' + 'A');
		first = name[i] == '-';
	}
}

static int header_name_read(struct binding_reader *rd, struct span text,
			    struct span *ret)
{
	struct span name;
	unsigned i;
	int r;

	text = span_trim(text);
	if (!header_name_is_valid(text))
		return binding_refuse(rd, "header", text, "a header name");
	if (header_flags_of(header_id_of(text)) & HEADER_RESERVED)
		return binding_refuse(rd, "header", text,
				      "a header that HTTP does not reserve");
	for (i = 0; i < rd->b->header_count; i++)
		if (span_eq_nocase(rd->b->headers[i].name, text))
			return binding_refuse(rd, "header", text,
					      "each header only once");
	r = binding_keep(rd, text, &name);
	if (r)
		return r;
	header_name_dress((char *)(uintptr_t)name.ptr, name.len);
	*ret = name;
	return 0;
}

/* Reads "credential", and "name" unless a fixed name is given. */
static int header_read(struct binding_reader *rd, const struct json *object,
		       struct span fixed, struct span prefix)
{
	struct binding_header header = { .name = fixed, .prefix = prefix };
	struct span text;
	int r;

	r = binding_need_text(rd, object, "credential", &text);
	if (!r)
		r = binding_read_name(rd, text, &header.credential);
	if (!r && !fixed.ptr) {
		r = binding_need_text(rd, object, "name", &text);
		if (!r)
			r = header_name_read(rd, text, &header.name);
	}
	if (!r)
		rd->b->headers[rd->b->header_count++] = header;
	return r;
}

static int headers_read(struct binding_reader *rd, const struct json *auth)
{
	static const char *const known[] = { "name", "credential", NULL };
	const struct json *array = NULL;
	size_t count;
	int r;

	r = json_get_array(auth, rd->where, "headers", &array, rd->d);
	if (r < 0)
		return r;
	count = json_count(array);
	if (!count || count > BINDING_HEADERS_MAX)
		return diag_set(rd->d, 0, 0,
				"%s: \"headers\": found %zu, expected 1 to %d",
				rd->where, count, BINDING_HEADERS_MAX);

	json_for_each(j, array)
	{
		r = json_want(j, JSON_KIND_OBJECT, rd->where, rd->d);
		if (!r)
			r = json_refuse_unknown(j, rd->where, known, rd->d);
		if (!r)
			r = header_read(rd, j, SPAN_NONE, SPAN(""));
		if (r)
			return r;
	}
	return 0;
}

int binding_read_auth(struct binding_reader *rd, const struct json *auth)
{
	static const char *const one[] = { "type", "credential", NULL };
	static const char *const key[] = { "type", "name", "credential", NULL };
	static const char *const custom[] = { "type", "headers", NULL };
	static const char *const *const known[] = {
		[BINDING_AUTH_BEARER] = one,
		[BINDING_AUTH_BASIC] = one,
		[BINDING_AUTH_API_KEY] = key,
		[BINDING_AUTH_CUSTOM_HEADERS] = custom,
	};
	struct span type;
	int kind, r;

	r = binding_need_text(rd, auth, "type", &type);
	if (r)
		return r;
	for (kind = 1; kind < BINDING_AUTH_NUM; kind++)
		if (span_eq(type, span_str(binding_auth_name(
					  (enum binding_auth)kind))))
			break;
	if (kind == BINDING_AUTH_NUM)
		return binding_refuse(rd, "type", type,
				      "bearer, basic, apiKey or customHeaders");
	r = json_refuse_unknown(auth, rd->where, known[kind], rd->d);
	if (r)
		return r;

	rd->b->auth = (enum binding_auth)kind;
	switch (rd->b->auth) {
	case BINDING_AUTH_BEARER:
		return header_read(rd, auth, SPAN("Authorization"),
				   SPAN("Bearer "));
	case BINDING_AUTH_BASIC:
		return header_read(rd, auth, SPAN("Authorization"),
				   SPAN("Basic "));
	case BINDING_AUTH_API_KEY:
		return header_read(rd, auth, SPAN_NONE, SPAN(""));
	case BINDING_AUTH_CUSTOM_HEADERS:
		return headers_read(rd, auth);
	case BINDING_AUTH_NONE:
	case BINDING_AUTH_NUM:
		break;
	}
	return -EINVAL;
}
