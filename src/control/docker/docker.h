/* SPDX-License-Identifier: Apache-2.0 */
/* docker.h - the Docker Engine API, asked without waiting
 *
 * How it works: libcurl's multi interface over the daemon's unix socket, driven
 * by our loop (its sockets are watches, its time-outs a timer). A call is a
 * method, a path and a body; its answer comes from the loop, once. Bodies that
 * stream (an archive up, events and logs down) come and go in pieces.
 *
 * Everything that a daemon says is foreign: sizes are bounded, JSON that is not
 * what the API promises is an error of the call.
 *
 * API: Docker Engine v1.41 (20.10) is asked for; newer daemons serve it.
 */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct docker;
struct docker_call;
struct json;
struct loop;

enum {
	DOCKER_REPLY_MAX = 16 * 1024 * 1024,
	DOCKER_ANSWER_MS = 180 * 1000, /* silence; a pull speaks all the time */
	DOCKER_CALLS_MAX = 256,	       /* at once; further ones wait */
};

/* socket_path: /var/run/docker.sock. 0; -errno. Nothing is asked yet. */
WUNRES int docker_new(struct loop *loop, const char *socket_path,
		      struct docker **ret);
/* Calls that run are answered with -ECANCELED first. */
struct docker *docker_free(struct docker *d);

/* How a call ended. status: of HTTP, or -errno (-ENOENT, -ECONNREFUSED: no
 * daemon; -ETIMEDOUT; -EPROTO; -ENOBUFS). json: of the reply, NULL when it has
 * none; borrowed. message: what the daemon says went wrong, one line; "" on
 * success. */
struct docker_answer {
	int status;
	const struct json *json;
	struct span body;
	const char *message;
};
typedef void docker_fn(void *ctx, const struct docker_answer *a);

/* path begins behind the version: "/containers/json?all=1". body: JSON, or
 * SPAN_NONE. The call is valid until fn was called. */
struct docker_call *docker_ask(struct docker *d, const char *method,
			       const char *path, struct span body,
			       docker_fn *fn, void *ctx);
/* As docker_ask(), with a body of another type (application/x-tar), and a
 * header X-Registry-Auth (SPAN_NONE: none), which is wiped. */
struct docker_call *docker_send(struct docker *d, const char *method,
				const char *path, const char *type,
				struct span body, struct span registry_auth,
				docker_fn *fn, void *ctx);
/* A reply without an end: each line of JSON (events), or each piece, goes to
 * piece; fn when it is over. false from piece ends it. No time limit. */
typedef bool docker_piece_fn(void *ctx, struct span piece);
struct docker_call *docker_follow(struct docker *d, const char *path,
				  docker_piece_fn *piece, docker_fn *fn,
				  void *ctx);
/* fn is called no more. */
void docker_cancel(struct docker_call *call);
