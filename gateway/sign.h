/* SPDX-License-Identifier: Apache-2.0 */
/* sign.h - what workers ask of the main thread */
#pragma once

#include "src/base/span.h"

struct evp_pkey_st;
struct gateway;
struct leaf_cache;
struct worker;

/* Any thread. Asks the vault for a leaf; leaf_source_answer() follows in the
 * worker's loop. */
void gateway_sign(struct worker *w, struct span name, struct span sandbox);

/* Both are const after start, and safe to use from any thread. */
struct leaf_cache *gateway_leaf_cache(struct gateway *g);
struct evp_pkey_st *gateway_leaf_key(struct gateway *g);
