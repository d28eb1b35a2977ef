/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - one execution of a command, from its request to its last event
 *
 * How it goes: started, it RUNs until its process exits. Then its status is
 * known and told to whoever asks, but its stream may still have output to tell:
 * it is DRAINING until the client has been given all of it (or has left). Then
 * it is OVER and remembered for a while.
 *
 * The client's leaving ends the stream, never the process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/list.h"
#include "src/base/span.h"
#include "src/execd/id.h"
#include "src/execd/process/child.h"
#include "src/execd/process/output.h"
#include "src/io/loop.h"

struct command_body;
struct commands;
struct diag;
struct env;
struct execd;
struct httpd_request;

enum { COMMAND_ERROR_SIZE = 128 };

enum command_kind {
	COMMAND_FOREGROUND,
	COMMAND_BACKGROUND, /* its output goes to a log */
	COMMAND_SESSION,    /* a run in a session: stderr is stdout */
};

enum command_state {
	COMMAND_RUNS,	  /* .child is alive */
	COMMAND_DRAINING, /* exited; output is still to be told */
	COMMAND_OVER,	  /* no stream, no pipes */
};

struct command {
	struct commands *owner;
	struct list link; /* of the owner: running, or finished */
	char id[ID_SIZE];
	enum command_kind kind;
	enum command_state state;
	char *text;
	size_t text_len;

	struct child child;
	struct output out, err;
	struct event_stream *stream; /* NULL: none any more */
	int log;		     /* of a background command; -1 */
	uint64_t log_bytes;	     /* when it finished */
	struct timer timeout, killer;
	uint64_t timeout_ms;
	uint64_t started_ms, started_wall_ms;
	uint64_t kill_ms;	/* when an interrupt becomes a kill */
	struct list interrupts; /* requests that wait for its exit */
	bool timed_out;

	/* after its exit */
	uint64_t finished_wall_ms, duration_ms;
	int exit_code;
	char error[COMMAND_ERROR_SIZE]; /* "": it succeeded */

	/* Told once, at the exit, before the last event, or when the command
	 * is freed before. May be NULL. */
	void (*exited)(struct command *c, void *ctx);
	void *ctx;
};

/* What to run. All is borrowed for the call, but exited and ctx. */
struct command_start {
	enum command_kind kind;
	struct span text; /* as the client wrote it */
	const char *const *argv;
	struct env *env;
	const char *cwd;
	uint64_t timeout_ms; /* 0: none */
	bool has_uid, has_gid;
	uid_t uid;
	gid_t gid;
	int channel, channel_as;	     /* as in struct child_spec */
	int (*enter)(void *ctx, int report); /* as there */
	void *enter_ctx;
	void (*exited)(struct command *c, void *ctx);
	void *ctx;
};

/* Answers the request with the stream of the execution, or with an error.
 * NULL: it did not start. */
struct command *command_run(struct execd *e, struct httpd_request *r,
			    const struct command_start *start);
/* The same without a client: nobody is told what it writes, unless it has a
 * log. NULL: it did not start, with a sentence in d. */
struct command *command_begin(struct execd *e,
			      const struct command_start *start,
			      struct diag *d);
/* POST /command, and whoever else runs texts as that does. */
void command_run_body(struct execd *e, struct httpd_request *r,
		      const struct command_body *body);
/* SIGTERM to its group, SIGKILL after 3 s. r (may be NULL) is answered when it
 * has exited. It must run. */
void command_interrupt(struct command *c, struct httpd_request *r);
/* SIGKILL to its group. */
void command_kill(struct command *c);
/* An answer for r: what GET /command/status/{id} tells. */
void command_status_send(const struct command *c, struct httpd_request *r);
/* Kills it if it runs; its client sees a cut stream, if any. */
void command_free(struct command *c);

/* Expands "~" and $NAME of env. 0; -EINVAL with a sentence in d. Free *ret. */
int command_cwd(const struct env *env, struct span text, char **ret,
		struct diag *d);
