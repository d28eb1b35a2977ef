/* fuzz: execd */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_execd_env.c - the file of variables, which the workload may write: what
 * comes of it can be given to a program, and is not endless
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/err.h"
#include "src/execd/process/env.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As a program would see it: each name once, and by env_get() as well. */
static void check(struct env *v)
{
	const char *const *at, *const *other;
	size_t bytes = 0, len;
	char *name;

	for (at = env_list(v); *at; at++) {
		len = strcspn(*at, "=");
		must(len && (*at)[len] == '=');
		bytes += strlen(*at) + 1;
		name = must_alloc(len + 1);
		memcpy(name, *at, len);
		must(env_get(v, name) == *at + len + 1);
		free(name);
		/* few are enough to find two of a name */
		for (other = at + 1; *other && other < at + 64; other++)
			must(strncmp(*at, *other, len + 1) != 0);
	}
	must(bytes <= ENV_ENTRIES_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct env *v = env_new_empty();

	env_take_text(v, span_of(data, size));
	check(v);
	(void)env_free(v);
	return 0;
}
