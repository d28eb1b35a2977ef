/* SPDX-License-Identifier: Apache-2.0 */
/* id.c - names of executions and sessions */

#include "src/execd/id.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>

#include "src/base/err.h"

void id_draw(char dst[ID_SIZE])
{
	uint64_t words[2];

	must(getrandom(words, sizeof(words), 0) == sizeof(words));
	(void)snprintf(dst, ID_SIZE, "%016llx%016llx",
		       (unsigned long long)words[0],
		       (unsigned long long)words[1]);
}
