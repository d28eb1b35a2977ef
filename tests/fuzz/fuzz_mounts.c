/* fuzz: execd */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_mounts.c - mountinfo, in which whoever makes folders has a say
 *
 * The first line is the path that is looked for, the second the folder.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/execd/init/mounts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(cond)              \
	do {                     \
		if (!(cond))     \
			abort(); \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span in = span_of((const char *)data, size);
	struct span path = span_cut(&in, '\n');
	struct span folder = span_cut(&in, '\n');
	char root[4096], small[16];

	if (!mounts_find(in, path, root, sizeof(root)))
		return 0;
	CHECK(strlen(root) <= in.len);
	if (mounts_find(in, path, small, sizeof(small)))
		CHECK(!strcmp(root, small));
	if (mounts_is(span_str(root), folder))
		CHECK(root[0] == '/' && folder.len >= strlen(root) &&
		      !memcmp(folder.ptr + folder.len - strlen(root), root,
			      strlen(root)));
	return 0;
}
