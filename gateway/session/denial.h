/* SPDX-License-Identifier: Apache-2.0 */
/* denial.h - a refusal that agents and people can read
 *
 * One JSON object with one plain sentence in it, and the header
 * Sallyport-Denied with the reason, so that a program need not parse.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct audit;
struct buf;

/* A whole HTTP/1.1 response with a->status. detail: a further sentence, may be
 * empty. head_only: to a HEAD request. 0 or -ENOBUFS. */
WUNRES int denial_emit(const struct audit *a, bool close, bool head_only,
		       struct buf *out);
