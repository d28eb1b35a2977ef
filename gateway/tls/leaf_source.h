/* SPDX-License-Identifier: Apache-2.0 */
/* leaf_source.h - a worker's way to a leaf certificate: cache, else the vault
 *
 * Called only for destinations that policy allowed: no key operation happens
 * for a name that is not. Workers wait for the same name together.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/span.h"

struct leaf_source;
struct leaf_wait;
struct sandbox;
struct worker;
struct x509_st;

/* leaf: a reference for the callee (X509_free), or NULL: the vault could not.
 * From the loop. */
typedef void leaf_fn(void *ctx, struct x509_st *leaf);

struct leaf_source *leaf_source_new(struct worker *w);
struct leaf_source *leaf_source_free(struct leaf_source *source);

struct leaf_wish {
	const struct sandbox *sandbox; /* whose quota and share are charged */
	struct span name;	       /* canonical host or IP literal */
	leaf_fn *fn;
	void *ctx;
};

enum { LEAF_E_LIMIT = 1 };

/* 0: *ret_leaf is a reference, or *ret_wait is set and fn follows.
 * LEAF_E_LIMIT: the sandbox has too many signed, or this worker waits for too
 * many; nothing was asked of the vault. */
WUNRES int leaf_get(struct leaf_source *source, const struct leaf_wish *wish,
		    struct x509_st **ret_leaf, struct leaf_wait **ret_wait);
/* No callback any more. NULL is fine; returns NULL. */
struct leaf_wait *leaf_wait_cancel(struct leaf_wait *wait);

/* From the gateway's main thread by way of the loop: the answer for name.
 * Takes leaf (may be NULL). */
void leaf_source_answer(struct leaf_source *source, struct span name,
			struct x509_st *leaf);
