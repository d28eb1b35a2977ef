/* SPDX-License-Identifier: Apache-2.0 */
/* upload.h - a form of metadata and file parts, written as it streams
 *
 * The n-th part "metadata" ({"path", "mode", "owner", "group"}) belongs to the
 * n-th part "file", and comes before it; both are sent with a file name. Other
 * parts are skipped. Nothing is put in place before the form is whole and its
 * parts fit together. Blocking; knows nothing of HTTP.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/span.h"

struct fault;
struct upload;

enum {
	UPLOAD_METADATA_MAX = 64 * 1024,
	UPLOAD_PENDING_MAX = 64 * 1024 * 1024, /* memory for pairs */
};

enum { UPLOAD_WAIT = 1, UPLOAD_MORE = 1 };

/* NULL with f set: the Content-Type is not that of a form. */
struct upload *upload_new(struct span content_type, struct fault *f);
/* What was not put in place leaves no trace. */
struct upload *upload_free(struct upload *u);
/* Takes bytes off *in: all (0), or some and UPLOAD_WAIT: a FIFO is full, call
 * again later, and leave the bytes that were fed where they are until then.
 * -errno with f set. */
WUNRES int upload_feed(struct upload *u, struct span *in, struct fault *f);
/* Bytes taken that still wait for a FIFO. */
size_t upload_pending(const struct upload *u);
/* The body is over: puts the files in place, in their order. 0: done;
 * UPLOAD_MORE: call again; -errno with f set. */
WUNRES int upload_finish(struct upload *u, struct fault *f);
