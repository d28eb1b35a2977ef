/* SPDX-License-Identifier: Apache-2.0 */
/* change.h - one change at a time: checked, stored, published, answered
 *
 * How it works: changes wait in a queue, also for a vault that is away for a
 * moment. When its turn comes, a change is
 * checked against the present (so two changes never race) and puts what it
 * stores into a transaction of the vault. When that is acknowledged, a sandbox
 * is locked to its interface (locks.h), then the state of this process is
 * changed and the gateway is told; the next change may then
 * begin. The request is answered when every loop of the gateway has applied
 * it: a change is in force when its call returns. When that cannot be said,
 * the answer is 503 and says what is known.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/diag.h"
#include "src/base/list.h"

struct change;
struct control;
struct httpd_request;

enum { CHANGES_WAITING_MAX = 1024, CHANGE_WAIT_MS = 10 * 1000 };

/* Why a change was refused. */
struct refusal {
	unsigned status;
	const char *code;
	struct diag diag;
};

enum change_step {
	CHANGE_REFUSE, /* zero; the refusal says why */
	CHANGE_STORE,  /* a transaction was begun and filled: commit it */
	CHANGE_APPLY,  /* nothing to store */
};

struct change_ops {
	enum change_step (*check)(struct control *c, void *data,
				  struct refusal *no);
	/* May be NULL. What must stand before apply; calls change_locked(ch)
	 * from the loop when it does, or cannot. */
	void (*lock)(struct control *c, void *data, struct change *ch);
	/* Cannot fail. revision: of the commit, 0 when nothing was stored. */
	void (*apply)(struct control *c, void *data, uint64_t revision);
	/* Answers; it is in force. Not called without a request. */
	void (*reply)(struct control *c, void *data, struct httpd_request *r);
	void (*free)(void *data);
	bool local; /* the gateway has no part in it */
};

struct change_queue {
	struct list waiting;
	unsigned count;		/* waiting */
	struct change *current; /* being checked or stored */
};

void change_queue_init(struct change_queue *q);
/* After the vault's link was freed. Changes that wait are refused. */
void change_queue_fini(struct change_queue *q);
/* The vault was read: changes that waited for that may begin. */
void change_queue_run(struct control *c);
/* What ops->lock began has ended. */
void change_locked(struct change *ch);
/* Takes data. r may be NULL: nobody waits for an answer. */
void change_submit(struct control *c, const struct change_ops *ops, void *data,
		   struct httpd_request *r);
