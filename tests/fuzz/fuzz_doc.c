/* fuzz: text */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_doc.c - a document tree from any bytes, walked whole */

#include <stdlib.h>

#include "src/text/doc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const struct doc_node *n, unsigned depth)
{
	unsigned count = 0;

	if (depth > DOC_DEPTH_MAX || !n->line || !n->col)
		abort();
	if (n->text.ptr && n->text.ptr[n->text.len] != '\0')
		abort();
	doc_for_each(it, n)
	{
		if ((it->key.ptr != NULL) != (n->kind == DOC_MAP))
			abort();
		walk(it, depth + 1);
		count++;
	}
	if (count != n->count)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct doc *doc = NULL;
	struct diag d = { 0 };

	if (!doc_parse(span_of(data, size), &doc, &d))
		walk(doc_root(doc), 0);
	else if (!diag_is_set(&d) || doc)
		abort();
	doc_free(doc);
	return 0;
}
