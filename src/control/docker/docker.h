/* SPDX-License-Identifier: Apache-2.0 */
/* docker.h - the Docker Engine API, asked without waiting
 *
 * How it works: libcurl's multi interface over the daemon's unix socket, driven
 * by our loop (its sockets are watches, its time-outs a timer). A call is a
 * method, a path and a body; its answer comes from the loop, once, never from
 * inside the function that asked. Bodies that stream (events, the progress of a
 * pull) come in pieces.
 *
 * Everything that a daemon says is foreign: sizes are bounded, JSON that is not
 * what the API promises is an error of the call.
 *
 * API: Docker Engine v1.41 (20.10) is asked for until docker_meet() has found
 * that the daemon does not serve it any more.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;
struct docker;
struct docker_call;
struct json;
struct loop;

enum {
	DOCKER_REPLY_MAX = 16 * 1024 * 1024,
	DOCKER_LINE_MAX = 1024 * 1024,
	DOCKER_HEAD_MAX = 64 * 1024,
	DOCKER_ANSWER_MS = 180 * 1000, /* silence */
	DOCKER_CALLS_MAX = 256,	       /* at once; further ones wait */
	DOCKER_MESSAGE_SIZE = 320,
};

/* socket_path: /var/run/docker.sock. 0; -errno. Nothing is asked yet. */
WUNRES int docker_new(struct loop *loop, const char *socket_path,
		      struct docker **ret);
/* Calls that run are answered with -ECANCELED first. Not from an answer. NULL
 * is fine; returns NULL. */
struct docker *docker_free(struct docker *d);
/* Another bound for the silence of a call than DOCKER_ANSWER_MS. */
void docker_set_silence(struct docker *d, uint64_t ms);
/* How many connections of calls have broken so far: another number than before
 * means that the daemon may be another one than before. */
uint64_t docker_losses(const struct docker *d);

/* How a call ended. A status of 500 and more is told of a daemon that is still
 * there alone (doubt.c). status: of HTTP, or -errno (-ENOENT, -ECONNREFUSED,
 * -EACCES: no daemon for us; -ECONNRESET; -ETIMEDOUT; -EPROTO: what came is no
 * answer; -ENOBUFS: it is too long; -ECANCELED). json: of the reply, NULL when
 * it has none; borrowed. message: what went wrong, one line of printable ASCII;
 * "" below status 400. */
struct docker_answer {
	int status;
	const struct json *json;
	struct span body;
	const char *message;
	struct span path_stat; /* of HEAD .../archive: base64 of JSON */
};
typedef void docker_fn(void *ctx, const struct docker_answer *a);
/* A piece of a body that is told as it comes; false ends the call, as if the
 * body had ended there. May begin and cancel calls. */
typedef bool docker_piece_fn(void *ctx, struct span piece);

static inline bool docker_is_ok(const struct docker_answer *a)
{
	return a->status >= 200 && a->status < 300;
}

enum docker_shape {
	DOCKER_WHOLE,  /* zero: up to DOCKER_REPLY_MAX, with the answer */
	DOCKER_LINES,  /* each line that is not empty, without its end */
	DOCKER_PIECES, /* as it comes */
};

struct docker_request {
	const char *method, *path; /* path begins behind the version */
	const char *type;	   /* of the body; NULL: application/json */
	struct span body;	   /* copied; SPAN_NONE: there is none */
	struct span registry_auth; /* X-Registry-Auth; SPAN_NONE: none. Our
				      copies are wiped */
	enum docker_shape shape;   /* of a reply below status 400 */
	docker_piece_fn *piece;	   /* of LINES and PIECES */
	bool endless;		   /* silence is no failure, its end is */
	bool patient;		   /* silence is no failure */
	bool unversioned;	   /* the path stands without a version */
	bool fresh;		   /* on a connection of its own */
	uint64_t silence_ms;	   /* 0: that of all calls */
	const char *version;	   /* one that docker_serves(); NULL: that of
				      all calls */
};
/* All but the body's bytes of q is read before it returns. The call is valid
 * until fn was called. */
struct docker_call *docker_begin(struct docker *d,
				 const struct docker_request *q, docker_fn *fn,
				 void *ctx);

/* The common kind: JSON, or SPAN_NONE; "/containers/json?all=1". */
struct docker_call *docker_ask(struct docker *d, const char *method,
			       const char *path, struct span body,
			       docker_fn *fn, void *ctx);
/* GET, a reply without an end, line by line (events). */
struct docker_call *docker_follow(struct docker *d, const char *path,
				  docker_piece_fn *line, docker_fn *fn,
				  void *ctx);
/* fn and piece are called no more. */
void docker_cancel(struct docker_call *call);

/* Does the daemon still take connections? fn gets some status above 0, or why
 * there is none. */
struct docker_call *docker_knock(struct docker *d, docker_fn *fn, void *ctx);

/* Asks which versions the daemon serves, and asks for one of them from then on.
 * fn gets the answer: status 200, or why there is none. */
void docker_meet(struct docker *d, docker_fn *fn, void *ctx);
/* Does the daemon that was met serve that version of its API? */
WUNRES bool docker_serves(const struct docker *d, unsigned major,
			  unsigned minor);

/* Pulls an image ("repo:tag", "repo@digest"). registry_auth as above. The
 * answer is of status 200 only if the image is there; what the daemon says amid
 * the progress went wrong is status 502 with its message. It may be silent for
 * as long as it likes, for the daemon pulls few layers at a time; who asks says
 * when it is too late. */
struct docker_call *docker_pull(struct docker *d, struct span image,
				struct span registry_auth, docker_fn *fn,
				void *ctx);
/* What the daemon told last of a pull that runs, such as "{id of a layer}:
 * Retrying in 2 seconds"; "" is nothing yet. Printable ASCII, borrowed until it
 * goes on. */
const char *docker_pull_said(const struct docker_call *pull);

/* Puts text into a path, percent-encoded but for letters, digits, "-._~/:@".
 * 0 or -ENOBUFS. */
WUNRES int docker_put_escaped(struct buf *path, struct span text);
