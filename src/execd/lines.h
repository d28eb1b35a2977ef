/* SPDX-License-Identifier: Apache-2.0 */
/* lines.h - output of a program cut into the texts of stdout events
 *
 * Pure: bytes are fed as they come, at any split. A text is a line without its
 * end; an empty line is the text "\n"; "\r\n" ends one line, a lone "\r" ends
 * one too. A line longer than LINES_MAX is told in pieces, never cut inside a
 * UTF-8 sequence; the last line needs no end.
 */
#pragma once

#include <stdbool.h>

#include "src/base/buf.h"
#include "src/base/span.h"

enum { LINES_MAX = 64 * 1024 };

struct lines {
	struct buf held; /* of an unfinished line */
	bool after_cr;	 /* a "\n" now belongs to the "\r" before */
};

typedef void lines_fn(void *ctx, struct span text);

void lines_init(struct lines *l);
void lines_fini(struct lines *l);
void lines_feed(struct lines *l, struct span bytes, lines_fn *fn, void *ctx);
/* There will be no more: tells what is held. */
void lines_end(struct lines *l, lines_fn *fn, void *ctx);

/* How many bytes of s stand before a UTF-8 sequence that is cut at its end; all
 * of them when none is. */
size_t lines_whole(struct span s);
