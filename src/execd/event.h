/* SPDX-License-Identifier: Apache-2.0 */
/* event.h - the frames of an event stream, as bytes (contract 5.3)
 *
 * A frame is one JSON object in one line and "\n\n": no "data:", no comments.
 * Pure: bytes in, bytes out. Whatever the text holds, the frame is valid JSON
 * on one line in ASCII-safe form: what is not UTF-8 becomes U+FFFD, and control
 * characters and the separators on which line readers break (U+0085, U+2028,
 * U+2029, ...) are escaped.
 *
 * Members stand in this order and are left out when they are empty: type,
 * text, execution_count, execution_time, timestamp, results, error.
 */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;

enum event_type {
	EVENT_INIT, /* text: the id of the execution */
	EVENT_PING, /* text: "pong" */
	EVENT_STATUS,
	EVENT_STDOUT,
	EVENT_STDERR,
	EVENT_RESULT,
	EVENT_EXECUTION_COUNT,
	EVENT_ERROR,		  /* terminal */
	EVENT_EXECUTION_COMPLETE, /* terminal */
	EVENT_TYPE_NUM,
};

struct event {
	enum event_type type;
	uint64_t timestamp; /* Unix ms */
	struct span text;
	uint64_t execution_count;
	uint64_t execution_time; /* ms */
	/* Of a result: a JSON object, already written, mime -> string. */
	struct span results;
	/* Of an error. */
	struct span ename, evalue;
	const struct span *traceback;
	unsigned traceback_count;
};

/* Appends the frame. 0 or -ENOBUFS (nothing was appended). */
WUNRES int event_put(struct buf *out, const struct event *ev);

/* How the end of a process is told: complete after exit status 0, otherwise
 * the error CommandExecError whose evalue is the number. status as of
 * waitpid(); a signal counts as 128 + its number. */
struct event_end {
	struct event event;
	struct span trace;
	char number[24], line[128];
};
void event_end(struct event_end *e, int status, uint64_t duration_ms,
	       uint64_t timestamp);
/* It was killed for having run too long: the same error with the number of
 * timeout(1). */
enum { EVENT_TIMEOUT_CODE = 124, EVENT_UNSTARTED_CODE = 127 };
void event_end_timeout(struct event_end *e, uint64_t timeout_ms,
		       uint64_t timestamp);
/* It never was the program it was to be: the same error with 127 and why. */
void event_end_unstarted(struct event_end *e, const char *why,
			 uint64_t timestamp);
/* The number of event_end(). */
int event_exit_code(int status);
