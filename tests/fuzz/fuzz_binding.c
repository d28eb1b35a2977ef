/* fuzz: policy */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_binding.c - any bytes as a set of bindings: what is accepted reads back
 * as the same, and questions to it end
 */

#include <stdint.h>

#include "policy/binding.h"
#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/text/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_one(const struct binding *b)
{
	struct buf first = BUF_INIT(BINDING_TEXT_MAX * 8);
	struct buf second = BUF_INIT(BINDING_TEXT_MAX * 8);
	struct diag d = { 0 };
	struct binding *again;
	struct json *j;

	if (!binding_emit(b, true, &first)) {
		must(!json_parse(buf_peek(&first), &j, &d));
		must(!binding_parse(j, &again, &d));
		must(!binding_emit(again, true, &second));
		must(span_eq(buf_peek(&first), buf_peek(&second)));
		binding_free(again);
		json_free(j);
	}
	must(binding_clashes(b, b) || !b->header_count);
	buf_fini(&first);
	buf_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct binding *found[2];
	struct binding_query q = {
		.sandbox = SPAN("s"),
		.scheme = BINDING_HTTPS,
		.port = 443,
		.host = SPAN("a.b.example.com"),
		.method = SPAN("GET"),
		.path = SPAN("/v1/x"),
	};
	struct binding_set *set;
	struct diag d = { 0 };
	unsigned i;

	if (binding_set_parse(span_of(data, size), &set, &d)) {
		must(diag_is_set(&d));
		return 0;
	}
	for (i = 0; i < set->count; i++)
		check_one(set->items[i]);
	(void)binding_set_match(set, &q, found);
	(void)binding_set_concerns(set, &q);
	binding_set_free(set);
	return 0;
}
