/* fuzz: wire */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_range.c - a part of a file lies in the file */

#include <stdlib.h>

#include "src/wire/range.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t sizes[] = { 0, 1, 1000, UINT64_MAX };
	struct range range;
	size_t i;

	for (i = 0; i < ARRAY_LEN(sizes); i++)
		if (range_parse(span_of(data, size), sizes[i], &range) ==
			    RANGE_PART &&
		    (range.first > range.last || range.last >= sizes[i]))
			abort();
	return 0;
}
