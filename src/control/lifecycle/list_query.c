/* SPDX-License-Identifier: Apache-2.0 */
/* list_query.c - the query string of a list, read strictly where it matters */

#include "src/control/lifecycle/list_query.h"

#include "src/base/err.h"
#include "src/control/lifecycle/create_request.h"
#include "src/httpd/httpd.h"
#include "src/text/json.h"

#define INVALID	 "SANDBOX::INVALID_PARAMETER"
#define METADATA "INVALID_METADATA_FORMAT"

enum { SHOWN_MAX = 80 };

struct reading {
	struct list_query *q;
	struct lifecycle_error *no;
};

static struct span shown(struct span text)
{
	return span_of(text.ptr, MIN(text.len, (size_t)SHOWN_MAX));
}

/* -- one parameter each --------------------------------------------------- */

static int take_state(struct reading *rd, struct span value)
{
	struct list_query *q = rd->q;

	if (q->state_count == LIST_STATES_MAX)
		return lifecycle_error_set(rd->no, 400, INVALID,
					   "state: found more than %d of them",
					   LIST_STATES_MAX);
	q->states[q->state_count++] = value;
	return 0;
}

static int take_pair(struct reading *rd, struct span text)
{
	size_t cut = span_find(text, '=');
	struct list_query *q = rd->q;
	struct box_pair pair;

	if (cut == text.len || !cut ||
	    !httpd_decode(&q->arena, span_of(text.ptr, cut), true,
			  &pair.name) ||
	    !httpd_decode(&q->arena, span_from(text, cut + 1), true,
			  &pair.value))
		return lifecycle_error_set(rd->no, 400, METADATA,
					   "metadata: found \"%.*s\", expected "
					   "name=value, joined by &",
					   SPAN_FMT(shown(text)));
	if (q->pair_count == LIST_PAIRS_MAX)
		return lifecycle_error_set(rd->no, 400, METADATA,
					   "metadata: found more than %d names",
					   LIST_PAIRS_MAX);
	q->pairs[q->pair_count++] = pair;
	return 0;
}

static int take_metadata(struct reading *rd, struct span value)
{
	int r = 0;

	/* no name is without its '=': then all of it is escaped once more */
	if (value.len && span_find(value, '=') == value.len &&
	    !httpd_decode(&rd->q->arena, value, true, &value))
		return lifecycle_error_set(rd->no, 400, METADATA,
					   "metadata: found a broken escape");
	while (!r && value.len)
		r = take_pair(rd, span_cut(&value, '&'));
	return r;
}

static int take_sandbox_id(struct reading *rd, struct span value)
{
	rd->q->sandbox_id = value.len ? value : SPAN_NONE;
	return 0;
}

static int take_name(struct reading *rd, struct span value)
{
	rd->q->name = value.len ? value : SPAN_NONE;
	return 0;
}

static int take_number(struct reading *rd, const char *name, struct span value,
		       unsigned max, unsigned *ret)
{
	uint64_t number;

	if (!span_parse_u64(value, &number) || number < 1 || number > max)
		return lifecycle_error_set(rd->no, 400, INVALID,
					   "%s: found \"%.*s\", expected a "
					   "whole number from 1 to %u",
					   name, SPAN_FMT(shown(value)), max);
	*ret = (unsigned)number;
	return 0;
}

static int take_page(struct reading *rd, struct span value)
{
	return take_number(rd, "page", value, INT32_MAX, &rd->q->page);
}

static int take_page_size(struct reading *rd, struct span value)
{
	return take_number(rd, "pageSize", value, LIST_PAGE_SIZE_MAX,
			   &rd->q->page_size);
}

static const struct {
	const char *name;
	int (*take)(struct reading *rd, struct span value);
} parameters[] = {
	{ "state", take_state },
	{ "metadata", take_metadata },
	{ "sandboxId", take_sandbox_id },
	{ "name", take_name },
	{ "page", take_page },
	{ "pageSize", take_page_size },
};

static int take_parameter(struct reading *rd, struct span name,
			  struct span escaped)
{
	struct span value;
	size_t i;

	for (i = 0; i < ARRAY_LEN(parameters); i++) {
		if (!span_eq(name, span_str(parameters[i].name)))
			continue;
		if (!httpd_decode(&rd->q->arena, escaped, true, &value))
			return lifecycle_error_set(rd->no, 400, INVALID,
						   "%s: found a broken escape",
						   parameters[i].name);
		return parameters[i].take(rd, value);
	}
	return 0;
}

int list_query_parse(struct span raw, struct list_query *ret,
		     struct lifecycle_error *no)
{
	struct reading rd = { ret, no };
	struct span one, name;
	size_t cut;
	int r = 0;

	memset(ret, 0, sizeof(*ret));
	arena_init(&ret->arena, 8 * LIST_QUERY_MAX);
	ret->page = 1;
	ret->page_size = LIST_PAGE_SIZE;
	if (raw.len > LIST_QUERY_MAX)
		return lifecycle_error_set(no, 400, INVALID,
					   "the query is longer than %d bytes",
					   LIST_QUERY_MAX);
	while (!r && raw.len) {
		one = span_cut(&raw, '&');
		cut = span_find(one, '=');
		if (!httpd_decode(&ret->arena, span_of(one.ptr, cut), true,
				  &name))
			name = SPAN_NONE;
		r = take_parameter(&rd, name, span_from(one, cut + 1));
	}
	return r;
}

void list_query_fini(struct list_query *q)
{
	arena_fini(&q->arena);
}

/* -- pages ---------------------------------------------------------------- */

size_t list_page_first(const struct list_query *q, size_t total)
{
	uint64_t first = (uint64_t)(q->page - 1) * q->page_size;

	return (size_t)MIN(first, (uint64_t)total);
}

size_t list_page_end(const struct list_query *q, size_t total)
{
	uint64_t end = (uint64_t)q->page * q->page_size;

	return (size_t)MIN(end, (uint64_t)total);
}

void list_page_emit(struct json_out *o, unsigned page, unsigned page_size,
		    size_t total)
{
	uint64_t pages = (total + page_size - 1) / page_size;

	json_open_object(o, "pagination");
	json_put_u64(o, "page", page);
	json_put_u64(o, "pageSize", page_size);
	json_put_u64(o, "totalItems", total);
	json_put_u64(o, "totalPages", pages);
	json_put_bool(o, "hasNextPage", page < pages);
	json_close(o);
}
