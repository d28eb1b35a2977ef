/* fuzz: execd */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_permission.c - bodies that name modes and owners */

#include <stdlib.h>

#include "src/base/diag.h"
#include "src/execd/files/permission.h"
#include "src/text/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json *j CLEANUP_JSON = NULL;
	struct diag d = { 0 };
	struct permission p;

	if (json_parse(span_of(data, size), &j, &d))
		return 0;
	if (permission_parse(j, &p, &d)) {
		if (!diag_is_set(&d))
			abort();
		return 0;
	}
	if (p.has_mode &&
	    (p.mode > 07777 || !p.mode || permission_decimal(p.mode) > 7777))
		abort();
	return 0;
}
