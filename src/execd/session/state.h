/* SPDX-License-Identifier: Apache-2.0 */
/* state.h - what a session remembers between two runs, told by its shell
 *
 * Pure. Each run is a fresh shell. When it ends it writes its directory and its
 * exported variables and functions to a descriptor, in its own quoting, which
 * any bytes survive; the next run evaluates them first.
 *
 *	mark "\n" directory "\n" mark "\n" exports mark
 *
 * The mark is drawn anew for each run, so that no name of a directory and no
 * value can be taken for it.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;

enum { STATE_MARK_SIZE = 33, STATE_BYTES_MAX = 768 * 1024 };

/* How the shell is to write. */
struct state_way {
	bool bash; /* else a POSIX shell */
	bool proc; /* /proc/self/fd is there */
};

/* The number under which the shell finds the descriptor. */
int state_channel(const struct state_way *way);
/* Appends the lines to run before (an exit trap) and after the command. */
void state_before_put(struct buf *out, const struct state_way *way,
		      const char *mark);
void state_after_put(struct buf *out, const struct state_way *way,
		     const char *mark);

struct state {
	struct span cwd, exports;
};

/* The last whole state in the bytes. False: there is none. */
bool state_read(struct span bytes, const char *mark, struct state *ret);

/* An absolute path without ".", ".." and needless slashes, as "cd" writes it.
 */
void state_clean_cwd(char *path);
