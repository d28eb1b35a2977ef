/* SPDX-License-Identifier: Apache-2.0 */
/* log_frames.h - what a container said, taken out of Docker's frames
 *
 * Docker tells standard output and error of a container without a terminal as
 * frames: one byte that names the stream, three of zero, the length in four,
 * most significant first (Docker Engine API, "Attach to a container"). What is
 * not framed so is text as it is.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;

/* Appends the text. A frame that is cut gives what is there. 0 or -ENOBUFS. */
WUNRES int log_frames_text(struct span body, struct buf *out);
/* The last max bytes at most, from the beginning of a line on. */
struct span log_frames_tail(struct span text, size_t max);
