/* SPDX-License-Identifier: Apache-2.0 */
/* source.h - a file being read for a download, piece by piece
 *
 * Either a range of its bytes, or a window of its lines. What is told first is
 * kept: a file that shrinks meanwhile is an error, what it grows by is not
 * read. Files of the kernel, which say a size of 0 or a page, are as long as
 * they read. Blocking; knows nothing of HTTP but the Range header.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/span.h"
#include "src/execd/files/path.h"
#include "src/wire/range.h"

struct fault;

enum { SOURCE_PIECE = 256 * 1024 };

struct source {
	char path[PATH_BYTES];
	/* what was asked */
	struct span range_text; /* SPAN_NONE: no such header; borrowed */
	bool lines;		/* a window of lines: */
	uint64_t line_first, line_count; /* from 1 */

	/* after the first piece */
	bool open;
	bool is_part;	   /* of .size bytes, .range is told */
	bool size_unknown; /* neither is known; SOURCE_END says where it ends */
	uint64_t size;
	struct range range;

	int fd;
	uint64_t at, line; /* what is read next */
	char *piece;	   /* SOURCE_PIECE; NULL: none is held */
	struct span told;  /* of it */
	bool ended;	   /* there is nothing behind .told */
};

enum source_next {
	SOURCE_FAULT = -1, /* f is set */
	SOURCE_TOLD,	   /* .told, .ended */
	SOURCE_AGAIN,	   /* nothing yet: call again */
};

/* The next piece, at most SOURCE_PIECE bytes of reading. The first call opens
 * the file. The piece is held until the next call or source_drop(). */
WUNRES enum source_next source_next(struct source *s, struct fault *f);
void source_drop(struct source *s);
void source_fini(struct source *s);
