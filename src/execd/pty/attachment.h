/* SPDX-License-Identifier: Apache-2.0 */
/* attachment.h - one WebSocket client at a terminal: its holder, or a viewer
 *
 * It knows up to which offset of the terminal's ring its client has been sent
 * output. The holder gets it in frames 0x01 and 0x02, a viewer, and whoever
 * missed some, in frames 0x03 with their offset (contract 5.8).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/span.h"
#include "src/execd/pty/terminal.h"

struct attachment;
struct httpd_request;

/* What a client asks for in its query. */
struct attachment_wish {
	bool viewer, pty;
	uint64_t since;
};

/* Takes the request (which websocket_check() has seen): replay, "connected",
 * and then what comes. A holder takes the place of the one there is, who is
 * closed with 4001, and starts the program when it does not run. */
void attachment_new(struct terminal *t, struct httpd_request *r,
		    const struct attachment_wish *wish);

struct attachment *attachment_of_link(struct list *link);

/* -- what the terminal says; none of these frees an attachment ------------- */

/* Of what kind the bytes are that the holder is sent next. */
void attachment_set_frame(struct attachment *a, enum terminal_frame frame);
/* Sends what the client lacks, as far as there is room. */
void attachment_go_on(struct attachment *a);
/* Is something left that it had no room for? */
bool attachment_is_behind(const struct attachment *a);
/* Input has room again. */
void attachment_read_on(struct attachment *a);
void attachment_error(struct attachment *a, const char *code,
		      const char *sentence);

/* -- its end; a may be freed ----------------------------------------------- */

/* The program exited: the client is told when it has all output, and closed.
 * The terminal has no holder any more. */
void attachment_exit(struct attachment *a, int code);
/* The terminal is being removed. */
void attachment_gone(struct attachment *a);
