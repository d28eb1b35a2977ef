/* SPDX-License-Identifier: Apache-2.0 */
/* inside.h - what the files of this folder share: the engine and its calls */
#pragma once

#include <curl/curl.h>

#include "src/base/buf.h"
#include "src/base/list.h"
#include "src/control/docker/docker.h"
#include "src/io/loop.h"

struct docker {
	struct loop *loop;
	char socket_path[108]; /* as long as one can be */
	char version[16];      /* that is asked for */
	uint64_t major, minor; /* the newest that it serves; 0: not known */
	uint64_t silence_ms;
	CURLM *multi;
	struct timer timer; /* what libcurl waits for */
	struct timer chores;
	struct list waiting; /* calls whose turn has not come */
	struct list running; /* calls that libcurl knows */
	struct list ended;   /* calls that are to be answered */
	struct list sockets;
	unsigned running_count;
	bool inside; /* libcurl is at work and may not be asked anything */
};

struct docker_call {
	struct docker *docker;
	struct list link;
	docker_fn *fn; /* NULL: cancelled */
	docker_piece_fn *piece;
	void *ctx;
	bool owns_ctx; /* free() it with the call */
	enum docker_shape shape;
	bool endless;
	struct timer silence;

	/* the request */
	CURL *easy;
	struct curl_slist *headers;
	char method[8], *url;
	struct buf body;

	/* the reply */
	struct buf reply; /* whole, or of a refusal, or a line that began */
	size_t head_bytes;
	struct buf path_stat;
	bool enough; /* piece has said so */
	int error;   /* -errno; 0: libcurl's result counts */
};

/* transfer.c: the easy handle of a call, made and thrown away. 0 or -ENOMEM. */
WUNRES int transfer_new(struct docker_call *call,
			const struct docker_request *q);
void transfer_free(struct docker_call *call);
/* What libcurl's result means: a status of HTTP, or -errno. */
int transfer_status(const struct docker_call *call, CURLcode result);

/* engine.c: libcurl on our loop. 0 or -errno. */
WUNRES int engine_new(struct docker *d);
void engine_free(struct docker *d);
/* The call runs from now on. 0 or -ENOMEM. */
WUNRES int engine_add(struct docker_call *call);
/* It runs no more; not while d->inside. */
void engine_remove(struct docker_call *call);

/* docker.c: libcurl is done with a call. */
void docker_call_end(struct docker_call *call, int status);
/* docker.c: answers those that ended, lets others begin. */
void docker_go_on(struct docker *d);
