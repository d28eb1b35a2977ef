/* SPDX-License-Identifier: Apache-2.0 */
/* contexts.h - the code contexts of the daemon: a table of them, by id
 *
 * A context is a language and a state that lives from run to run; one run at a
 * time. Every language has one more, its default context, made by the first
 * run that names no id. Where a Jupyter server is configured its kernels run
 * the code; a language it has no kernel for, and every language without a
 * server, runs on the image's own interpreter if there is one.
 *
 * A run goes on when its client leaves; its output is then dropped.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/base/map.h"
#include "src/execd/code/cell.h"
#include "src/execd/id.h"

struct engine;
struct execd;
struct httpd_request;
struct jupyter;

enum {
	CONTEXTS_MAX = 256,
	CONTEXT_LANGUAGE_MAX = 63,
	CONTEXT_CODE_MAX = 4 * 1024 * 1024,
	/* An interrupt that did not help for so long is followed by a hard one.
	 */
	CONTEXT_PATIENCE_MS = 2000,
};

enum context_state {
	CONTEXT_IDLE,	   /* zero; no request, no cell */
	CONTEXT_CREATING,  /* .waiting is POST /code/context */
	CONTEXT_PREPARING, /* .waiting is POST /code, .code is to be run */
	CONTEXT_RUNNING,   /* .cell is open */
};

struct context {
	struct contexts *owner;
	char id[ID_SIZE];
	char language[CONTEXT_LANGUAGE_MAX + 1];
	char *cwd; /* NULL: ours */
	struct engine *engine;
	bool is_default;
	bool was_ready; /* once at least */
	enum context_state state;
	struct httpd_request *waiting;
	struct buf code;
	struct cell cell;
	uint64_t interrupted_ms; /* the first of this run; 0: none */
};

struct contexts {
	struct execd *execd;
	struct jupyter *jupyter; /* NULL: none is configured */
	struct map by_id;
};

struct contexts *contexts_new(struct execd *e);
/* Ends what they run. NULL is fine; returns NULL. */
struct contexts *contexts_free(struct contexts *t);

/* NULL: there is none. */
struct context *contexts_find(const struct contexts *t, struct span id);
/* NULL: there is none yet. */
struct context *contexts_default(const struct contexts *t,
				 struct span language);
/* Makes one and answers r with it, or with why not. cwd SPAN_NONE: ours. */
void contexts_create(struct contexts *t, struct httpd_request *r,
		     struct span language, struct span cwd);
/* Runs code in the language's default context, and takes r. */
void contexts_run_default(struct contexts *t, struct httpd_request *r,
			  struct span language, struct span code);

bool context_is_busy(const struct context *c);
/* Answers that it is busy, or runs. Takes r. */
void context_run(struct context *c, struct httpd_request *r, struct span code);
/* Of what runs; nothing when nothing runs. */
void context_interrupt(struct context *c);
/* Ends what runs and frees it. */
void context_delete(struct context *c);
