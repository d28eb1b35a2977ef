/* SPDX-License-Identifier: Apache-2.0 */
/* change.h - changes in order: checked, stored, published, answered
 *
 * How it works: changes wait in a queue, also for a vault that is away for a
 * moment. When its turn comes, a change is checked against the present and puts
 * what it stores into a transaction of the vault. When that is acknowledged, a
 * sandbox is locked to its interface (locks.h), then the state of this process
 * is changed and the gateway is told; the next change may then begin. The
 * request is answered when every loop of the gateway has applied it: a change
 * is in force when its call returns. When that cannot be said, the answer is
 * 503 and says what is known.
 *
 * A commit waits for the disk, a lock for the kernel's tables, a confirmation
 * for every loop. So changes that wait together go together: one transaction,
 * locks asked for at once, one confirmation. They must not meet: a change says
 * what it is about to touch, and one that touches what another of the group
 * touches begins the next group. So each is still checked against a present
 * that holds everything before it which could matter to it. What the vault does
 * not take of a group it gets once more one by one, so that nobody is refused
 * for somebody else's change.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/diag.h"
#include "src/base/list.h"
#include "src/base/map.h"

struct change;
struct control;
struct httpd_request;

enum {
	CHANGES_WAITING_MAX = 1024,
	CHANGE_WAIT_MS = 10 * 1000,
	CHANGES_TOGETHER_MAX = 64,
	/* Values of a transaction stay in the vault's locked memory until it
	 * ends, and that memory stays the vault's. */
	CHANGES_TOGETHER_BYTES = 256 * 1024,
};

/* Why a change was refused. */
struct refusal {
	unsigned status;
	const char *code;
	struct diag diag;
};

enum change_step {
	CHANGE_REFUSE, /* zero; the refusal says why */
	CHANGE_STORE,  /* a transaction was begun and filled: commit it */
	CHANGE_APPLY,  /* nothing to store; only of changes that go alone */
};

struct change_ops {
	/* May be NULL: it goes alone. Claims by change_claim() all that it
	 * will touch; false: something was claimed before, or it would rather
	 * begin a group. */
	bool (*claim)(struct control *c, const void *data, struct map *claims);
	/* May be called again after its transaction failed. */
	enum change_step (*check)(struct control *c, void *data,
				  struct refusal *no);
	/* May be NULL. What must stand before apply; calls change_locked(ch)
	 * from the loop when it does, or cannot. */
	void (*lock)(struct control *c, void *data, struct change *ch);
	/* Cannot fail. revision: of the commit, 0 when nothing was stored. */
	void (*apply)(struct control *c, void *data, uint64_t revision);
	/* Answers; it is in force. Not called without a request. */
	void (*reply)(struct control *c, void *data, struct httpd_request *r);
	/* May be NULL. Instead of any answer, when there is no request: how it
	 * ended. why: status 0 when it is in force; borrowed. */
	void (*done)(struct control *c, void *data, const struct refusal *why);
	void (*free)(void *data);
	bool local; /* the gateway has no part in it: answered when applied */
};

struct change_queue {
	struct list waiting;
	unsigned count;	   /* waiting */
	struct list group; /* being checked, stored, locked */
	unsigned group_count;
	unsigned locking;  /* of the group: not locked yet */
	uint64_t revision; /* of the group's commit */
	struct map claims; /* of the group */
	bool storing;	   /* the group's transaction was begun */
	bool busy;	   /* a group is on its way */
	bool publish;	   /* see change_publish_policies() */
};

void change_queue_init(struct change_queue *q);
/* After the vault's link was freed. Changes that wait are refused. */
void change_queue_fini(struct change_queue *q);
/* The vault was read: changes that waited for that may begin. */
void change_queue_run(struct control *c);

/* For ops->claim: kind tells apart what may have equal names. False: claimed
 * already. */
WUNRES bool change_claim(struct map *claims, char kind, struct span name);
/* For ops->check: begins the transaction in control's own scope that the group
 * shares. */
void change_store_begin(struct control *c);
/* What ops->lock began has ended. */
void change_locked(struct change *ch);
/* For ops->apply: policies are other ones now; the gateway is told when all of
 * the group was applied. */
void change_publish_policies(struct control *c);

/* Takes data. r may be NULL: nobody waits for an answer. */
void change_submit(struct control *c, const struct change_ops *ops, void *data,
		   struct httpd_request *r);
