/* fuzz: execd */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_path.c - an expanded path is absolute and clean, whatever was asked */

#include <stdlib.h>

#include "src/base/diag.h"
#include "src/execd/files/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[PATH_BYTES], again[PATH_BYTES], parent[PATH_BYTES];
	struct diag d = { 0 };
	size_t len;

	if (path_expand(span_of(data, size), path, &d)) {
		if (!diag_is_set(&d))
			abort();
		return 0;
	}
	len = strlen(path);
	if (path[0] != '/' || strstr(path, "//") || strstr(path, "/./") ||
	    strstr(path, "/../") || (len > 1 && path[len - 1] == '/'))
		abort();
	path_parent(path, parent);
	if (strncmp(path, parent, strlen(parent)) != 0)
		abort();
	/* what is clean stays as it is, unless a '$' begins something anew */
	if (!strchr(path, '$') &&
	    (path_expand(span_str(path), again, &d) || strcmp(path, again)))
		abort();
	return 0;
}
