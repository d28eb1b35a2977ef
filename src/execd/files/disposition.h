/* SPDX-License-Identifier: Apache-2.0 */
/* disposition.h - Content-Disposition of a download (RFC 6266, RFC 8187)
 *
 * attachment; filename="...", for every client, in which a byte that is not
 * plain ASCII, a quote or a backslash is "_". When that changed something and
 * the name is UTF-8, filename*=UTF-8''... says it exactly. Pure.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;

/* name: without slashes. 0 or -ENOBUFS. */
WUNRES int disposition_put(struct buf *out, struct span name);
