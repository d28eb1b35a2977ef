/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - the pipe a program writes to, read into events
 *
 * One for stdout and one for stderr of a program (or one for both). Bytes are
 * read while the event stream has room; a stream that is full stops the
 * reading and so, in the end, the program. Without a client the bytes are read
 * and dropped, so that the program never waits for nobody.
 *
 * The end of a program is its exit, not the end of the pipe: what it left in
 * the background may hold the other end open for ever. output_drain() tells
 * what the pipe holds at that moment; afterwards the pipe is handed to the
 * drain of the daemon, which reads and drops until its writers are gone, so
 * that they do not die of a broken pipe.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/execd/event.h"
#include "src/execd/lines.h"
#include "src/io/loop.h"

struct event_stream;
struct execd;

struct output {
	struct execd *execd;
	struct watch watch;
	int fd; /* -1: none */
	bool ended;
	bool draining; /* then: */
	size_t left;   /* of what was in the pipe when the program exited */
	enum event_type type;	     /* EVENT_STDOUT or EVENT_STDERR */
	struct event_stream *stream; /* NULL: drop */
	struct lines lines;
	struct buf rest; /* read when the stream became full */
};

/* Makes a pipe; *write_end is the caller's, to give to the program and close.
 */
WUNRES int output_open(struct output *o, struct execd *e, enum event_type type,
		       struct event_stream *stream, int *write_end);
/* The stream has room again, or (NULL) is no more. */
void output_set_stream(struct output *o, struct event_stream *stream);
void output_go_on(struct output *o);
/* The program exited: tells what is in the pipe and the unfinished line. True:
 * all was told; false: the stream is full, call again when it has room. */
bool output_drain(struct output *o);
/* The program goes on, but what the pipe holds now, and the unfinished line,
 * are to be told first; as output_drain(), and reading goes on afterwards. */
bool output_catch_up(struct output *o);
void output_fini(struct output *o);
