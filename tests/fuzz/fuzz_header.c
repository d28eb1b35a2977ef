/* fuzz: wire */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_header.c - a name, NUL, a value: lookup and members */

#include <stdlib.h>

#include "src/wire/header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span value = span_of(data, size), member;
	struct span name = span_cut(&value, '\0');
	enum header_id id = header_id_of(name), i;

	for (i = HEADER_OTHER + 1; i < HEADER_ID_NUM; i++)
		if (span_eq_nocase(header_name(i), name) != (i == id))
			abort();
	if (id && !header_name_is_valid(name))
		abort();
	(void)header_value_is_valid(value);
	while ((member = header_next_member(&value)).ptr)
		if (!member.len || span_trim(member).len != member.len)
			abort();
	return 0;
}
