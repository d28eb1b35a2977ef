/* SPDX-License-Identifier: Apache-2.0 */
/* rfc3339.h - a point in time as clients write it (RFC 3339 5.6) */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

/* "2026-11-29T21:42:13.5+01:00": any fraction (cut to milliseconds), 'T', 't'
 * or a space in the middle, an offset or 'Z'. A leap second is the second that
 * follows. False: it is no such text, or a time before 1970 or behind 9999. */
WUNRES bool rfc3339_parse(struct span text, uint64_t *ret_ms);
