/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h - contexts on kernels of a Jupyter server */
#pragma once

#include "src/base/attrib.h"
#include "src/base/span.h"
#include "src/execd/code/engine.h"

struct jupyter;

/* All is borrowed until .free. cwd, NULL: the server's own; it is
 * below the server's root. */
struct engine *kernel_new(struct jupyter *j, struct span language,
			  const char *cwd, struct cell *cell,
			  const struct engine_events *events, void *ctx);
