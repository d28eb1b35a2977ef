/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.h - a program at a terminal, or at three pipes, and who looks at it
 *
 * A terminal outlives its clients: it is made by POST /pty, its program is
 * started by the first client that holds it, and it goes on without one. What
 * the program writes goes into a ring (ring.h), from which clients that come
 * later are told what they missed.
 *
 * Clients (attachment.h) are one holder, who types, and any number of viewers.
 * The holder is sent output as it is read; when he does not take it, reading
 * stops, and so in the end does the program; one who takes nothing for
 * HOLDER_STALL_MS is dropped. Viewers read from the ring at their own pace and
 * hold up nobody: who falls behind it sees a gap in the offsets.
 *
 * When the program has exited and its output was told, the clients are told
 * its exit code and are closed. The next holder starts it anew.
 */
#pragma once

#include <stdbool.h>

#include "src/base/buf.h"
#include "src/base/list.h"
#include "src/execd/id.h"
#include "src/execd/process/child.h"
#include "src/execd/pty/ring.h"
#include "src/io/loop.h"

struct attachment;
struct diag;
struct execd;

enum {
	TERMINAL_INPUT_MAX = 1024 * 1024,
	/* From so many bytes on the holder is not read any more. */
	TERMINAL_INPUT_FULL = 64 * 1024,
	TERMINAL_VIEWERS_MAX = 64,
	HOLDER_STALL_MS = 10 * 1000,
};

/* The first byte of a binary frame to a client. */
enum terminal_frame {
	TERMINAL_STDOUT = 0x01,
	TERMINAL_STDERR = 0x02,
	TERMINAL_REPLAY = 0x03,
};

/* One of the fds between us and the program. */
struct terminal_end {
	struct terminal *terminal;
	struct watch watch;
	int fd; /* -1: none */
	enum terminal_frame frame;
};

struct terminal {
	struct list link; /* in terminals.all, oldest first */
	struct execd *execd;
	char id[ID_SIZE];
	char *cwd;     /* NULL: the daemon's */
	char *command; /* NULL: an interactive shell */
	uint16_t cols, rows;

	bool running; /* started, and its exit was not told yet */
	bool exiting; /* running; the program is gone, its output not all told
		       */
	bool is_pty;
	struct child child;
	size_t drain_left; /* of an exiting one: how much is still read */
	/* The master, or stdout; the reading end of stderr; the writing end of
	 * stdin (a duplicate of the master). */
	struct terminal_end out, err, in;
	struct ring ring;
	struct buf input; /* for the program */

	int slave; /* the terminal's other side, held so that it outlives
		      a program that closes it; -1: none */

	struct attachment *holder; /* NULL: none; in .attachments too */
	struct list attachments;   /* all clients */
	unsigned viewer_count;
};

/* cwd and command are copied; empty: none. */
struct terminal *terminal_new(struct execd *e, struct span cwd,
			      struct span command);
/* Kills the program, tells the clients that it is gone. Returns NULL. */
struct terminal *terminal_free(struct terminal *t);

/* Starts the program at a terminal, or at pipes. 0, or -errno with a sentence
 * in d. Not while it is running. */
WUNRES int terminal_start(struct terminal *t, bool pty, struct diag *d);

/* What clients do. Input is taken whole; 0 or -EPIPE (the program does not
 * read any more). While terminal_is_full() no more should be given; the holder
 * is told by attachment_go_on() when that has changed. */
WUNRES int terminal_input(struct terminal *t, struct span bytes);
bool terminal_is_full(const struct terminal *t);
void terminal_signal(struct terminal *t, int signal);
void terminal_resize(struct terminal *t, uint16_t cols, uint16_t rows);
/* The holder came, went, or has room again. */
void terminal_go_on(struct terminal *t);
