/* SPDX-License-Identifier: Apache-2.0 */
/* frame.h - what an interpreter says on its private channel, cut out of bytes
 *
 * Pure. A frame is a line and a payload of so many bytes:
 *
 *     WORD SP RUN SP LENGTH LF payload
 *
 *     ready   an interpreter is there; its name and version
 *     begin   empty; from here on SIGINT is for the cell
 *     count   the number of the cell, in decimal
 *     result  a JSON object, mime type -> value
 *     show    the same; "ack\n" is wanted when all before it has been told
 *     error   a JSON object {ename, evalue, traceback[]}; ends the run
 *     exit    an exit status in decimal, of a shell; ends the run
 *     done    empty; ends the run
 *
 * RUN is the number the run was asked for with. The workload shares the
 * process and can write what it likes there: every frame is bounded, and what
 * is no frame ends the context, nothing else.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

enum frame_word {
	FRAME_NONE, /* zero */
	FRAME_READY,
	FRAME_BEGIN,
	FRAME_COUNT,
	FRAME_RESULT,
	FRAME_SHOW,
	FRAME_ERROR,
	FRAME_EXIT,
	FRAME_DONE,
	FRAME_WORD_NUM,
};

enum {
	FRAME_HEAD_MAX = 48, /* the line, without LF */
	FRAME_PAYLOAD_MAX = 4 * 1024 * 1024 + 64 * 1024,
	FRAME_MAX = FRAME_HEAD_MAX + 1 + FRAME_PAYLOAD_MAX,
};

struct frame {
	enum frame_word word;
	uint64_t run;
	struct span payload; /* in the bytes given */
};

/* The frame at the front of bytes: its length, and *ret is set; 0: more bytes
 * are needed; -EPROTO: this is no frame and never becomes one. */
WUNRES ssize_t frame_parse(struct span bytes, struct frame *ret);
