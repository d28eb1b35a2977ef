/* SPDX-License-Identifier: Apache-2.0 */
/* range.h - the Range header (RFC 9110 14.1.2), first range only */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct range {
	uint64_t first, last; /* both in the file */
};

enum range_kind {
	RANGE_NONE, /* no header, or a unit we do not know: the whole file */
	RANGE_PART,
	RANGE_UNSATISFIABLE, /* 416 */
};

/* value: SPAN_NONE when there is no header. size: of the file. */
WUNRES enum range_kind range_parse(struct span value, uint64_t size,
				   struct range *ret);
