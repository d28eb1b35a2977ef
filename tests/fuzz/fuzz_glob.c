/* fuzz: execd */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_glob.c - a pattern and a name, the first byte says where one ends */

#include <stdlib.h>

#include "src/base/diag.h"
#include "src/execd/files/glob.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool has_meaning(struct span s)
{
	size_t i;

	for (i = 0; i < s.len; i++)
		if (s.ptr[i] && strchr("*?[{\\", s.ptr[i]))
			return true;
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span pattern, name, all = span_of(data, size);
	struct diag d = { 0 };
	struct glob *g;

	if (!size)
		return 0;
	pattern = span_from(all, 1);
	pattern.len = MIN(pattern.len, (size_t)data[0]);
	name = span_from(all, 1 + pattern.len);
	name.len = MIN(name.len, 255u);
	if (glob_new(pattern, &g, &d)) {
		if (!diag_is_set(&d))
			abort();
		return 0;
	}
	/* a pattern without meaning matches itself and nothing else */
	if (!has_meaning(pattern) &&
	    glob_matches(g, name) != span_eq(pattern, name))
		abort();
	(void)glob_matches(g, name);
	(void)glob_free(g);
	return 0;
}
