/* SPDX-License-Identifier: Apache-2.0 */
/* inside.h - what the files of this folder share: the daemon and its calls */
#pragma once

#include "src/base/buf.h"
#include "src/base/list.h"
#include "src/control/curl_loop.h"
#include "src/control/docker/docker.h"
#include "src/io/loop.h"

struct docker {
	struct loop *loop;
	char socket_path[108]; /* as long as one can be */
	char version[16];      /* that is asked for */
	uint64_t major, minor; /* the newest that it serves; 0: not known */
	uint64_t silence_ms;
	struct curl_loop curl;
	struct timer chores;
	struct list waiting; /* calls whose turn has not come */
	struct list running; /* calls that libcurl knows */
	struct list ended;   /* calls that are to be answered */
	struct list doubted; /* calls whose answer is not told yet */
	unsigned running_count;
	uint64_t losses; /* of connections, as docker_losses() */
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
	uint64_t silence_ms; /* 0: it may be silent */

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

	/* doubt.c */
	struct docker_call *knock; /* that asks whether the daemon is there */
	bool was_doubted;
	uint64_t losses; /* there were when it began */
};

/* docker.c: answers what has ended, begins what waits. */
void docker_go_on(struct docker *d);

/* doubt.c. True: the call that has ended is not to be answered yet. */
WUNRES bool doubt_begin(struct docker_call *call);

/* transfer.c: the easy handle of a call, made and thrown away. 0 or -ENOMEM. */
WUNRES int transfer_new(struct docker_call *call,
			const struct docker_request *q);
void transfer_free(struct docker_call *call);
/* What libcurl's result means: a status of HTTP, or -errno. */
int transfer_status(const struct docker_call *call, CURLcode result);
