/* fuzz: vault */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_record.c - keys and rows of a store that somebody else wrote */

#include <stdint.h>

#include "src/base/err.h"
#include "vault/record.h"
#include "vault/refs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What parses must come out again as the same bytes. */
static void key_check(struct span key)
{
	struct record_place p;
	struct record_key k;

	if (!record_key_parse(key, &p))
		return;
	if (p.table == RECORD_TABLE_VALUE)
		record_key_value(&k, p.scope, p.kind, p.name);
	else if (p.table == RECORD_TABLE_MANIFEST)
		record_key_manifest(&k, p.scope);
	else
		record_key_single(&k, p.table);
	must(span_eq(record_key_span(&k), key));
}

static void row_check(struct span row)
{
	char head[RECORD_HEAD_SIZE], aad[RECORD_AAD_MAX];
	struct record_head h;
	struct span sealed;

	if (!record_parse(row, &h, &sealed))
		return;
	must(sealed.len >= RECORD_TAG_SIZE);
	record_head_emit(&h, head);
	must(!memcmp(head, row.ptr, sizeof(head)));
	must(record_aad(&h, SPAN("s"), aad) <= sizeof(aad));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span bytes = span_of(data, size);
	struct ref_list refs;

	key_check(bytes);
	row_check(bytes);
	if (!ref_list_parse(bytes, &refs, NULL))
		must(refs.count <= REFS_PER_BINDING);
	ref_list_fini(&refs);
	return 0;
}
