/* SPDX-License-Identifier: Apache-2.0 */
/* h1_head.h - what reading requests and responses have in common
 *
 * Private to the h1_*.c files.
 */
#pragma once

#include "src/wire/h1.h"

/* What the fields of a head say about the message itself. */
struct h1_facts {
	const struct header *host; /* NULL: none */
	bool has_length, has_coding;
	uint64_t length;		 /* with has_length */
	bool close, keep_alive, upgrade; /* Connection options */
	bool has_upgrade;		 /* an Upgrade field */
	bool expect_continue;
};

/* What a control byte at p means for a line that ends there: H1_OK for CR LF,
 * H1_E_INCOMPLETE at end, else why the message is refused. */
enum h1_error h1_control_error(const char *p, const char *end);

/* Cuts the next line, without its CR LF, off *rest. */
enum h1_error h1_take_line(struct span *rest, struct span *ret_line);

/* "HTTP/1.0" or "HTTP/1.1". */
enum h1_error h1_parse_version(struct span text, uint8_t *ret_minor);

/* Reads the field lines and the empty line; nothing may follow. Also holds the
 * rules that are the same for both directions. */
enum h1_error h1_parse_fields(struct span rest, uint8_t minor,
			      struct headers *ret, struct h1_facts *ret_facts);

/* Does the connection outlive this message? */
bool h1_keeps_alive(const struct h1_facts *facts, uint8_t minor);
