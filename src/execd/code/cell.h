/* SPDX-License-Identifier: Apache-2.0 */
/* cell.h - one run of code on its way to the client who asked for it
 *
 * A cell is open from cell_open() until one of the functions that end it:
 * cell_done(), cell_exit(), cell_fail() or cell_die(). Whoever executes code
 * tells a cell what happens and need not know of event streams. All functions
 * but cell_open() do nothing on a cell that is not open.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/execd/event_stream.h"
#include "src/execd/lines.h"

struct execd;
struct failure;
struct httpd_request;
struct json;

struct cell {
	struct execd *execd;
	struct event_stream *stream; /* NULL: not open */
	uint64_t started_ms;
	bool counted;
	struct lines out, err; /* of texts that come in pieces */
};

/* Takes the request: init (with this id) and ping are sent. */
void cell_open(struct cell *c, struct execd *e, struct httpd_request *r,
	       struct span id, const struct event_stream_ops *ops, void *ctx);
static inline bool cell_is_open(const struct cell *c)
{
	return c->stream != NULL;
}

bool cell_is_full(struct cell *c);
void cell_status(struct cell *c, struct span text);
/* Output in pieces; what is left of a line is told at the latest before a
 * result and at the end. */
void cell_text(struct cell *c, bool is_stderr, struct span bytes);
/* Once; 0 is no count. */
void cell_count(struct cell *c, uint64_t count);
/* An object mime type -> value. */
void cell_result(struct cell *c, const struct json *data);

/* -- these end it --------------------------------------------------------- */

void cell_done(struct cell *c);
/* The exit status of a shell: as that of a command (event.h). */
void cell_exit(struct cell *c, unsigned code);
void cell_fail(struct cell *c, const struct failure *f);
/* The context, not the code, is why it ended: the error has this name and this
 * sentence. */
void cell_die(struct cell *c, const char *ename, const char *fmt, ...)
	PRINTF(3, 4);
