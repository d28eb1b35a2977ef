/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - what a shell remembers between its runs, and the runs
 *
 * The session alone, without a table of them: sessions.h has those of clients,
 * isolated/ those that have a world of their own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct command;
struct diag;
struct env;
struct execd;
struct httpd_request;
struct json;
struct session;

/* Takes env and cwd (NULL: the daemon's). */
struct session *session_new(struct env *made, char *cwd);
/* Its programs are started by way of enter (process/child.h). `ended` is called
 * at the end of each run. Any may be NULL. */
void session_set_place(struct session *s, int (*enter)(void *ctx, int report),
		       void (*ended)(void *ctx), void *ctx);
/* The variables it began with. */
const struct env *session_env(const struct session *s);
/* Kills its runs; it is gone with the last of them, and nobody is told of
 * their end. */
void session_end(struct session *s);

struct session_run {
	struct span text;
	struct span cwd;	 /* for this run; SPAN_NONE: the session's */
	const struct json *envs; /* for this run, of which then nothing is
				    remembered; NULL: none */
	uint64_t timeout_ms;	 /* 0: none */
};

/* Answers the request with the stream of the run, or with an error: then false.
 */
bool session_start(struct execd *e, struct httpd_request *r, struct session *s,
		   const struct session_run *what);
/* The same in the background, with a log. NULL: it did not start, with a
 * sentence in d. */
struct command *session_begin(struct execd *e, struct session *s,
			      const struct session_run *what, struct diag *d);
