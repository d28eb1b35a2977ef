/* SPDX-License-Identifier: Apache-2.0 */
/* multipart.h - multipart/form-data (RFC 7578, RFC 2046 5.1) as it streams
 *
 * Pure: bytes at any split in, events out, without holding more than a part's
 * head of a body. Bodies are told in pieces as large as what was fed; a
 * boundary is looked for at memory speed.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/base/span.h"

enum { MULTIPART_BOUNDARY_MAX = 70, MULTIPART_HEAD_MAX = 8 * 1024 };

enum multipart_kind {
	MULTIPART_PART, /* a part begins: name, filename, type */
	MULTIPART_BYTES,
	MULTIPART_PART_END,
	MULTIPART_END, /* the closing boundary; what follows is ignored */
};

struct multipart_event {
	enum multipart_kind kind;
	struct span bytes; /* borrowed from what was fed, or from the parser */
	/* Of a part, until the next call; SPAN_NONE: not given. */
	struct span name, filename, type;
};

enum multipart_error {
	MULTIPART_OK,
	MULTIPART_E_BOUNDARY =
		1,	  /* the Content-Type names none, or a bad one */
	MULTIPART_E_HEAD, /* of a part: malformed or too long */
	MULTIPART_E_CUT,  /* the body ended before the closing boundary */
	MULTIPART_E_NUM,
};

struct multipart {
	char delimiter[4 + MULTIPART_BOUNDARY_MAX]; /* CRLF "--" boundary */
	size_t delimiter_len;
	size_t matched; /* so much of a delimiter ended what was fed, */
	size_t unsaid;	/* of which so much is no data in any case */
	int state;
	bool in_part;	 /* bytes belong to a part, not to the preamble */
	struct buf held; /* a part's head; or what follows a delimiter */
	enum multipart_error error; /* for ever */
};

/* From the value of Content-Type. */
WUNRES enum multipart_error multipart_init(struct multipart *m,
					   struct span content_type);
void multipart_fini(struct multipart *m);
/* Takes bytes off the front of *in until there is one event. 1: *ev is set; 0:
 * more bytes are needed; < 0: -(enum multipart_error). */
WUNRES int multipart_next(struct multipart *m, struct span *in,
			  struct multipart_event *ev);
/* The body ended. MULTIPART_OK or MULTIPART_E_CUT. */
WUNRES enum multipart_error multipart_end(const struct multipart *m);
const char *multipart_error_text(enum multipart_error e);
