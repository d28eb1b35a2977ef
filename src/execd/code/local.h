/* SPDX-License-Identifier: Apache-2.0 */
/* local.h - contexts on an interpreter that the image has
 *
 * One process per context, started when the context is made: python3 or
 * python, node, bash or sh.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/span.h"
#include "src/execd/code/engine.h"

struct execd;

/* NULL: this language needs a Jupyter server. cell, events, ctx and cwd (NULL:
 * ours) are borrowed; language is a literal's or lives as long. */
struct engine *local_new(struct execd *e, struct span language, const char *cwd,
			 struct cell *cell, const struct engine_events *events,
			 void *ctx);
