/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.h - the Docker daemon as the place where sandboxes live
 *
 * How it works: the runtime is connected once the daemon's version is known,
 * the bridge is there, its events are followed and what it has was compared
 * with the records (reconcile.c). Until then, and while the daemon is away,
 * nothing is made; it is tried again every two seconds.
 *
 * Jobs (a creation, a removal) hold the sandbox's id and look its box up at
 * each step, since boxes are exchanged as a whole by each change.
 */
#pragma once

#include "src/base/list.h"
#include "src/control/lifecycle/kit.h"
#include "src/control/lifecycle/lifecycle.h"
#include "src/io/loop.h"

struct docker_answer;
struct docker_call;
struct json;

enum {
	RUNTIME_RETRY_MS = 2000,
	EXECD_BYTES_MAX = 32 * 1024 * 1024,
	CREATES_WAITING_MAX = 1024,
	CREATES_ASIDE_MAX = 64, /* far below DOCKER_CALLS_MAX */
};

struct runtime {
	struct lifecycle *lifecycle;
	struct docker_call *events; /* NULL: not followed */
	struct timer retry;
	struct timer expiry;
	uint64_t expiry_ms; /* when it looks next, clock_ms() */
	bool is_ready;
	bool is_connecting;
	bool is_stirred; /* .retry runs, since a container has changed */
	char why[512];	 /* it is not ready */
	struct kit kit;
	struct list creations; /* that run */
	struct list waiting;   /* creations whose turn has not come */
	struct list undoing;   /* creations that have failed */
	struct list returning; /* those that run, but stepped aside before */
	unsigned creating;     /* how many run, or are undone; but for */
	unsigned aside;	       /* how many have stepped aside */
	unsigned waiting_count;
	struct list removals;
};

/* What a client is answered after a failure of Docker's: 503 when it could not
 * be asked, else 500. */
unsigned runtime_status_of(const struct docker_answer *a);
/* 0; -errno, said in the log. */
WUNRES int runtime_new(struct lifecycle *l, struct runtime **ret);
/* After the Docker client is gone. */
struct runtime *runtime_free(struct runtime *r);
/* Records were read: connects, or compares once more. */
void runtime_start(struct lifecycle *l);
/* Something about boxes has changed: is one due? (expiry.c) */
void runtime_look(struct lifecycle *l);
/* A removal has failed: it is tried again soon. */
void runtime_look_again(struct lifecycle *l);
void expiry_init(struct runtime *r);

/* reconcile.c: what the daemon has and what the records say. fn: why is NULL
 * when all is on its way. */
void reconcile(struct lifecycle *l, void (*fn)(void *ctx, const char *why),
	       void *ctx);
/* A container of ours came to be: is it of a sandbox? */
void reconcile_appeared(struct lifecycle *l, struct span id,
			struct span container);
/* A container's end, from an event or from looking: exit status, or -1. */
void reconcile_ended(struct lifecycle *l, struct span id, int exit_status);

/* create.c: is it being made? Its container has ended: it never will be. */
bool creation_is_on(const struct lifecycle *l, struct span id);
void creation_died(struct lifecycle *l, struct span id, int exit_status);
/* Ends it; on the way it is removed. */
void creation_abandon(struct lifecycle *l, struct span id);
void creations_free(struct runtime *r);
/* remove.c */
bool removal_is_on(const struct lifecycle *l, struct span id);
void removals_free(struct runtime *r);
