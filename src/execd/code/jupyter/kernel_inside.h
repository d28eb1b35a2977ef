/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_inside.h - a context's kernel, as the kernel*.c files see it */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/span.h"
#include "src/execd/code/engine.h"
#include "src/execd/code/jupyter/message.h"
#include "src/execd/id.h"
#include "src/io/loop.h"

struct jupyter;
struct jupyter_call;
struct websocket;

enum {
	KERNEL_ID_MAX = 64,
	KERNEL_NAME_MAX = 128,
	KERNEL_PATH_MAX = 128, /* of the API, with an id in it */
	KERNEL_WHY_MAX = 512,
	KERNEL_PATIENCE_MS = 25 * 1000,
	/* The first check of a run, and of one that seems over; further ones.
	 */
	KERNEL_SETTLE_MS = 2000,
	KERNEL_CHECK_MS = 5000,
};

enum kernel_phase {
	KERNEL_NONE, /* zero: no kernel */
	KERNEL_SPECS,
	KERNEL_CREATE,
	KERNEL_CHECK,
	KERNEL_CONNECT,
	KERNEL_READY,
	KERNEL_APART, /* there is one, but no connection to it */
};

struct kernel {
	struct engine engine;
	struct jupyter *jupyter;
	struct span language; /* of the context */
	const char *cwd;
	enum kernel_phase phase;
	bool preparing; /* events->prepared is due */
	uint64_t deadline_ms;
	struct timer retry;
	struct jupyter_call *call;
	struct websocket *socket;
	char id[KERNEL_ID_MAX + 1];
	char name[KERNEL_NAME_MAX + 1];
	char session[ID_SIZE];

	uint64_t request; /* the number of the last one */
	char request_id[ID_SIZE + 24];
	bool replied, idle;
	struct message error; /* kept until the run is over */
	bool has_error;
	unsigned reconnects;
	/* Asks from time to time whether the kernel still works. */
	struct timer check;
	bool began;	      /* it said something about this run */
	unsigned idle_checks; /* it was idle, and nothing came in between */
};

/* -- kernel_steps.c: getting ready -- */

/* There is none any more: its state is lost. */
void kernel_forget(struct kernel *k);
/* Goes on from this phase until the kernel is READY, or can not be; then
 * engine.events->prepared, if that is due. It may free k. */
void kernel_step(struct kernel *k, enum kernel_phase phase);
/* From now on, for KERNEL_PATIENCE_MS, a step that fails is tried again. */
void kernel_be_patient(struct kernel *k);
void kernel_on_retry(struct timer *t);
/* Whether or not it is there yet: nobody wants it any more. */
void kernel_release(struct kernel *k);

/* -- kernel.c: what it says -- */

extern const struct websocket_ops kernel_socket_ops;
/* The run cannot be followed any more. */
void kernel_run_lost(struct kernel *k, const char *why);
/* Tells who waits for it, if anybody does. May free k. */
void kernel_prepared(struct kernel *k, int error, const char *why);
/* One more try of the step. May free k. */
void kernel_step_failed(struct kernel *k, const char *why);
