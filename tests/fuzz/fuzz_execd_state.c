/* fuzz: execd */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_execd_state.c - what a shell tells of its state, and what else may be
 * written there */

#include <stdint.h>
#include <stdlib.h>

#include "src/base/err.h"
#include "src/execd/session/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span bytes = span_of(data, size);
	struct state s;
	char *path;

	if (!state_read(bytes, "MARK", &s))
		return 0;
	must(s.cwd.ptr >= bytes.ptr && s.exports.ptr >= s.cwd.ptr);
	must(s.exports.ptr + s.exports.len <= bytes.ptr + bytes.len);
	must(s.cwd.len && s.cwd.ptr[0] == '/');

	path = must_alloc(s.cwd.len + 1);
	memcpy(path, s.cwd.ptr, s.cwd.len);
	state_clean_cwd(path);
	must(path[0] == '/' && strlen(path) <= s.cwd.len);
	must(!strstr(path, "//") && !strstr(path, "/../"));
	free(path);
	return 0;
}
