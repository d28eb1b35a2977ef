/* SPDX-License-Identifier: Apache-2.0 */
/* child.h - a program started for a client: its process group and its pipes
 *
 * Every program leads a process group (a session, with a terminal), so that
 * signals meet what it started too. What goes wrong between fork and exec (no
 * such directory, no such user, no such program) comes back as the error of
 * child_start() and leaves nothing behind.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "src/base/attrib.h"
#include "src/base/span.h"
#include "src/execd/process/reaper.h"

struct diag;
struct env;
struct execd;

/* What could not be done. The first is ours, the others may be the fault of
 * who asked. */
enum child_stage {
	CHILD_STAGE_FORK,
	CHILD_STAGE_FILES, /* its first descriptors, its terminal */
	CHILD_STAGE_ENTER, /* what the caller had to be done in it */
	CHILD_STAGE_USER,
	CHILD_STAGE_CWD,
	CHILD_STAGE_EXEC,
	CHILD_STAGE_NUM,
};

struct child {
	struct reaper_child reaped;
	struct execd *execd;
	pid_t pid;   /* also of its group */
	bool exited; /* then: */
	int status;  /* as of waitpid() */
	void (*on_exit)(struct child *c);
	enum child_stage failed; /* after a failure */
	int late_error;		 /* > 0: of a failure after the start */
	int report;		 /* while it is not known whether it runs; -1 */
};

struct child_spec {
	const char *const *argv; /* argv[0] is looked up in the PATH of env */
	const char *const *env;	 /* NULL-terminated "NAME=value" */
	const char *cwd;	 /* NULL: ours */
	bool has_uid, has_gid;	 /* has_gid only with has_uid */
	uid_t uid;
	gid_t gid; /* without has_gid: the user's own, or the uid's number */
	/* -1: /dev/null. Borrowed: the caller closes his ends. */
	int in, out, err;
	/* > 0: becomes that fd of the program (0: fd 3); 0: none */
	int channel, channel_as;
	bool terminal; /* `in` becomes its controlling terminal */
	/* If `in` is our own controlling terminal, its group gets that. */
	bool foreground;
	/* Called in the new process, with its descriptors in place, while it is
	 * still ours: 0 or -errno. It may fork and return in either; who does
	 * not return must close `report`. */
	int (*enter)(void *ctx, int report);
	void *enter_ctx;
};

/* 0: it runs, and c->on_exit is called from the loop. -errno with a sentence
 * in d, and c->failed set.
 *
 * The daemon waits CHILD_START_MS at most. A program whose directory or file
 * does not answer by then (it may lie on a file system of the workload) counts
 * as running; if it cannot be run after all it exits with 127, and
 * child_late_failure() tells why. */
enum { CHILD_START_MS = 300, CHILD_LATE_SIZE = 128 };
/* Arguments and environment: the kernel's own limit, which is a quarter of the
 * stack's where that is less (execve(2)). */
enum { CHILD_WORDS_MAX = 6 * 1024 * 1024 };
WUNRES int child_start(struct execd *e, struct child *c,
		       const struct child_spec *spec, struct diag *d);
/* To the whole group; nothing after the exit of the leader was told unless
 * `always`: members may live on. */
void child_signal(struct child *c, int signal, bool always);
/* After the exit: why it never was the program, as a sentence in dst; false: it
 * was. */
bool child_late_failure(const struct child *c, char dst[CHILD_LATE_SIZE]);
/* Kills and forgets. */
void child_fini(struct child *c);

/* Does a process of its group live (or wait to be reaped)? */
bool child_group_lives(const struct child *c);

/* bash when the image has one, else sh; NULL: the image has no shell. Looked up
 * anew each time: an image changes while it runs. Static storage. */
const char *child_shell(const struct execd *e);
