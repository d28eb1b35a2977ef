/* SPDX-License-Identifier: Apache-2.0 */
/* paths.c - the path parameters of a query */

#include "src/execd/files/paths.h"

#include <stdlib.h>

#include "src/base/err.h"
#include "src/execd/answer.h"
#include "src/httpd/httpd.h"

bool paths_take(struct httpd_request *r, struct paths *ret)
{
	struct paths p = { .count = httpd_query_count(r, "path") };
	unsigned i;

	p.items = must_alloc(MAX(p.count, 1u) * sizeof(*p.items));
	for (i = 0; i < p.count; i++) {
		p.items[i] = httpd_query_at(r, "path", i);
		if (p.items[i].ptr)
			continue;
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY,
			     "path: found a broken percent-escape, a NUL, or "
			     "too much");
		paths_fini(&p);
		return false;
	}
	*ret = p;
	return true;
}

void paths_fini(struct paths *p)
{
	free(p->items);
	p->items = NULL;
}
