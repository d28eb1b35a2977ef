/* SPDX-License-Identifier: Apache-2.0 */
/* bundle.h - values and failures of a cell, from JSON to what events tell
 *
 * Pure. Drivers and kernels tell a value as an object mime type -> data; an
 * event tells it as mime type -> text, with "text" for text/plain (contract
 * 5.3). Both are bounded here, whatever was sent: clients read an event as one
 * line, and some take 4 MiB at most.
 */
#pragma once

#include <stddef.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;
struct json;

enum {
	BUNDLE_MAX = 3 * 1024 * 1024, /* bytes of all texts as JSON */
	BUNDLE_MIME_MAX = 127,
	FAILURE_TEXT_MAX = 64 * 1024,
	FAILURE_LINE_MAX = 4096,
	FAILURE_LINES_MAX = 512,
};

/* Appends the JSON object of a result event: how many members it has, or
 * -ENOBUFS. A text is taken as it is, an array of strings is joined, anything
 * else is its own JSON text. Members that do not fit are left out; *left_out
 * then counts their bytes. */
WUNRES int bundle_put(struct buf *out, const struct json *data,
		      size_t *left_out);

/* Borrowed from the JSON it was read from. */
struct failure {
	struct span ename, evalue;
	struct span lines[FAILURE_LINES_MAX];
	unsigned line_count;
};

/* Of {ename, evalue, traceback[]}; what is missing or of another type is
 * empty, but for a name there always is one. */
void failure_read(const struct json *content, struct failure *ret);
