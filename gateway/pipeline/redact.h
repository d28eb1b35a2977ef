/* SPDX-License-Identifier: Apache-2.0 */
/* redact.h - keep an origin's echo of a credential from reaching the sandbox */
#pragma once

#include "gateway/pipeline/request.h"

struct buf;

/* Appends value to out with every occurrence of an injected value (alone or
 * with its prefix) replaced by "[REDACTED]"; counts into req->audit. 0 or
 * -ENOBUFS. */
WUNRES int redact_value(struct request *req, struct span value,
			struct buf *out);
