/* SPDX-License-Identifier: Apache-2.0 */
/* boxes.c - all sandboxes of the lifecycle API: found, filtered, in pages */

#include <stdlib.h>

#include "src/base/err.h"
#include "src/control/lifecycle/box.h"
#include "src/control/lifecycle/list_query.h"
#include "src/text/json.h"

void boxes_init(struct boxes *all)
{
	map_init(&all->by_id);
}

void boxes_fini(struct boxes *all)
{
	size_t cursor = 0;
	struct box *b;

	while ((b = map_next(&all->by_id, &cursor, NULL)))
		box_free(b);
	map_fini(&all->by_id);
}

struct box *boxes_find(const struct boxes *all, struct span id)
{
	return map_find(&all->by_id, id);
}

void boxes_put(struct boxes *all, struct box *b)
{
	box_free(map_set(&all->by_id, span_str(b->id), b));
}

void boxes_remove(struct boxes *all, struct span id)
{
	box_free(map_take(&all->by_id, id));
}

static bool box_matches(const struct box *b, const struct boxes_query *q)
{
	const char *value;
	unsigned i;

	if (q->states && !(q->states & (1U << b->state)))
		return false;
	for (i = 0; i < q->metadata_count; i++) {
		value = map_find(&b->metadata, q->metadata[i].name);
		if (!value || !span_eq(span_str(value), q->metadata[i].value))
			return false;
	}
	return true;
}

/* Newest first; among equals by id, so that pages do not overlap. */
static int newest_first(const void *a, const void *b)
{
	const struct box *x = *(struct box *const *)a;
	const struct box *y = *(struct box *const *)b;

	if (x->created_ms != y->created_ms)
		return x->created_ms < y->created_ms ? 1 : -1;
	return strcmp(x->id, y->id);
}

void boxes_emit(struct json_out *o, const struct boxes *all,
		const struct boxes_query *q)
{
	size_t count = map_count(&all->by_id), cursor = 0, n = 0, i, first;
	struct box **found = must_alloc((count + 1) * sizeof(struct box *));
	struct box *b;

	while ((b = map_next(&all->by_id, &cursor, NULL)))
		if (box_matches(b, q))
			found[n++] = b;
	qsort(found, n, sizeof(struct box *), newest_first);

	json_open_object(o, NULL);
	json_open_array(o, "items");
	first = (size_t)(q->page - 1) * q->page_size;
	for (i = first; i < n && i < first + q->page_size; i++)
		box_emit(o, found[i], true);
	json_close(o);
	list_page_emit(o, q->page, q->page_size, n);
	json_close(o);
	free(found);
}
