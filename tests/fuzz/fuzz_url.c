/* fuzz: wire */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_url.c - a canonical path is a fixed point without dot segments */

#include <stdlib.h>

#include "src/wire/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span once, twice, rest, segment;
	struct arena arena;

	arena_init(&arena, 4 * size + 64 * 1024);
	if (url_canon_path(&arena, span_of(data, size), &once) == URL_PATH_OK) {
		if (url_canon_path(&arena, once, &twice) != URL_PATH_OK ||
		    !span_eq(once, twice) || once.len > size)
			abort();
		for (rest = once; rest.len;) {
			segment = span_cut(&rest, '/');
			if (span_eq(segment, SPAN(".")) ||
			    span_eq(segment, SPAN("..")))
				abort();
		}
	}
	arena_fini(&arena);
	return 0;
}
