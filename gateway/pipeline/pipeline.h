/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.h - run a request through its stages, in their one order */
#pragma once

#include "gateway/pipeline/request.h"

/* STEP_NEXT: every stage agreed; the request may be forwarded with its grant
 * and injections. STEP_DENY or STEP_FAIL: refused, audit says why, and
 * audit->status is the HTTP status to answer. Never waits. */
enum step pipeline_run(struct request *req);
