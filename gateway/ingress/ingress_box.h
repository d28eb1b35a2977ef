/* SPDX-License-Identifier: Apache-2.0 */
/* ingress_box.h - a sandbox as seen from outside, and the keys of signed routes
 *
 * Both are said by control, shared by all workers and counted; a box never
 * changes but for two clocks, which all workers move together: that of failed
 * signatures and that of accesses.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "certs/signed_keys.h"
#include "src/role/msg.h"

enum {
	/* Failed signatures of one sandbox: 32 bits must not be searched. */
	INGRESS_FAILURES_AT_ONCE = 10,
	INGRESS_FAILURE_MS = 6000, /* one more is allowed after each */
	INGRESS_TOLD_MS = 60 * 1000,
	/* What lasts is looked at this often: does it move? */
	INGRESS_LOOK_MS = INGRESS_TOLD_MS / 2,
	INGRESS_KEYS_TEXT_MAX = 128 * 1024,
};

struct ingress_box {
	_Atomic unsigned refs;
	struct msg_ingress msg;
	_Atomic uint64_t failures_ms; /* when all failures are forgiven */
	_Atomic uint64_t told_ms;     /* when an access was told last; 0: no */
};

struct ingress_box *ingress_box_new(const struct msg_ingress *msg);
struct ingress_box *ingress_box_ref(struct ingress_box *b);
struct ingress_box *ingress_box_unref(struct ingress_box *b); /* NULL is fine */

/* May a signature be looked at now? The wait otherwise, in ms. */
uint64_t ingress_box_wait_ms(const struct ingress_box *b, uint64_t now_ms);
void ingress_box_failed(struct ingress_box *b, uint64_t now_ms);
/* b takes the place of former, and its clocks: a record that changes forgives
 * nothing and tells nothing anew. */
void ingress_box_follow(struct ingress_box *b,
			const struct ingress_box *former);
/* Is this access to be told? Then it counts as told. */
bool ingress_box_accessed(struct ingress_box *b, uint64_t now_ms);

struct ingress_keys {
	_Atomic unsigned refs;
	struct signed_keys keys; /* the first is .keys[0]; it may have no id */
	struct arena arena;	 /* of the secrets */
};

struct diag;
/* 0; -EINVAL. */
WUNRES int ingress_keys_new(struct span text, struct ingress_keys **ret,
			    struct diag *d);
struct ingress_keys *ingress_keys_ref(struct ingress_keys *k);
struct ingress_keys *ingress_keys_unref(struct ingress_keys *k); /* wipes */
