/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - what executes the code of a context
 *
 * There are two: an interpreter of the image (local.h) and a kernel of a
 * Jupyter server (jupyter/kernel.h). An engine belongs to one context and has
 * its cell to speak to. When its state is lost, because the interpreter died
 * or the kernel is gone, it sets .lost; the next .prepare makes a fresh one.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct cell;
struct diag;
struct engine;

enum { ENGINE_E_LATER = 1 };

struct engine_ops {
	/* Makes it ready to execute. 0: it is; ENGINE_E_LATER: events->prepared
	 * will be called from the loop; -errno with a sentence in d. */
	int (*prepare)(struct engine *e, struct diag *d);
	/* Prepared, and the cell is open: code is copied. */
	void (*execute)(struct engine *e, struct span code);
	/* Of the open cell. hard: a first one some time ago did not help. */
	void (*interrupt)(struct engine *e, bool hard);
	/* The client of the cell can take more again. */
	void (*room)(struct engine *e);
	/* Ends what runs. NULL is fine; returns NULL. */
	struct engine *(*free)(struct engine *e);
};

struct engine_events {
	/* error 0; or -errno with a sentence: -ENOENT, the language is none of
	 * its own. It may free the engine. */
	void (*prepared)(void *ctx, int error, const char *why);
};

struct engine {
	const struct engine_ops *ops;
	const struct engine_events *events;
	void *ctx;
	struct cell *cell;
	bool lost; /* a state was lost that nobody was told of yet */
};
