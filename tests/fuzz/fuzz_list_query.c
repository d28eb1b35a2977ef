/* fuzz: control */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_list_query.c - a query is taken whole or refused with a sentence; so is
 * a point in time */

#include <stdlib.h>

#include "src/control/lifecycle/create_request.h"
#include "src/control/lifecycle/list_query.h"
#include "src/control/lifecycle/rfc3339.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lifecycle_error no = { 0 };
	struct list_query q;
	uint64_t ms = 0;

	if (list_query_parse(span_of(data, size), &q, &no)) {
		if (no.status != 400 || !no.message[0])
			abort();
	} else if (!q.page || !q.page_size ||
		   list_page_first(&q, 7) > list_page_end(&q, 7)) {
		abort();
	}
	list_query_fini(&q);
	if (rfc3339_parse(span_of(data, size), &ms) && ms > 253402387200000)
		abort();
	return 0;
}
