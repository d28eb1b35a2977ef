/* SPDX-License-Identifier: Apache-2.0 */
/* inject.h - what the session must know to write the outgoing head */
#pragma once

#include <stdbool.h>

#include "gateway/pipeline/request.h"

/* Is a header of this name set by injection? Then every occurrence that the
 * sandbox sent is dropped. */
bool inject_replaces(const struct request *req, struct span name);

/* May a field of this id not be asked of the origin? Where bodies are redacted,
 * parts of them cannot be (Range). */
bool inject_forbids(const struct request *req, enum header_id id);
