/* SPDX-License-Identifier: Apache-2.0 */
/* pacing.h - streams of a sandbox that read no faster than its quota says */
#pragma once

#include "gateway/registry/quota.h"

struct loop;
struct pace;

/* One for each direction, loop and sandbox; kind: QUOTA_BYTES_OUT or _IN.
 * Refers to q. pace_limit() follows the limit. */
struct pace *pacing_new(struct loop *loop, struct quota *q,
			enum quota_kind kind);
