/* SPDX-License-Identifier: Apache-2.0 */
/* list_query.h - which items of a list a client asks for (contract 4.5, 4.11)
 *
 *	?state=Running&state=paused&metadata=team%3Dweb%26env%3Dtest&page=2
 *
 * Pure. A state may be repeated. The value of "metadata" is itself a query
 * string, of names and values that are escaped once more; some clients escape
 * the whole of it twice, which is understood too.
 */
#pragma once

#include "src/base/arena.h"
#include "src/base/attrib.h"
#include "src/control/lifecycle/box.h"

struct lifecycle_error;

enum {
	LIST_STATES_MAX = 32,
	LIST_PAIRS_MAX = 64,
	LIST_QUERY_MAX = 16 * 1024,
	LIST_PAGE_SIZE_MAX = 200,
	LIST_PAGE_SIZE = 20,
};

struct list_query {
	struct span states[LIST_STATES_MAX];
	unsigned state_count;
	struct box_pair pairs[LIST_PAIRS_MAX]; /* all must hold */
	unsigned pair_count;
	struct span sandbox_id, name; /* SPAN_NONE: any */
	unsigned page, page_size;
	struct arena arena; /* of all spans */
};

/* raw: what stands behind the '?'. 0, or *no is filled; ret needs a
 * list_query_fini() either way. Parameters of other names are passed over. */
WUNRES int list_query_parse(struct span raw, struct list_query *ret,
			    struct lifecycle_error *no);
void list_query_fini(struct list_query *q);

/* Where a page of `total` items begins and ends, both clamped. */
size_t list_page_first(const struct list_query *q, size_t total);
size_t list_page_end(const struct list_query *q, size_t total);
/* "pagination": {...} */
void list_page_emit(struct json_out *o, unsigned page, unsigned page_size,
		    size_t total);
