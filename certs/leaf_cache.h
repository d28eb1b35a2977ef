/* SPDX-License-Identifier: Apache-2.0 */
/* leaf_cache.h - signed leaves by name, shared by all loops of a gateway
 *
 * Thread-safe. A leaf is charged to the sandbox that made it necessary. A
 * sandbox that holds its share evicts only leaves of its own: nobody can flush
 * the cache for the others by asking for many names.
 */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct leaf_cache;
struct x509_st; /* X509 */

/* At most `capacity` leaves, at most `share` of them per sandbox (both at
 * least 1). A leaf is not given out in its last margin_ms. */
struct leaf_cache *leaf_cache_new(unsigned capacity, unsigned share,
				  uint64_t margin_ms);
/* NULL is fine; returns NULL. */
struct leaf_cache *leaf_cache_free(struct leaf_cache *cache);

/* A new reference (X509_free), or NULL. now_ms: wall clock. */
WUNRES struct x509_st *leaf_cache_get(struct leaf_cache *cache,
				      struct span name, uint64_t now_ms);
/* Keeps a reference of its own to leaf; replaces what was there. A leaf that
 * is already within its margin is not kept. */
void leaf_cache_put(struct leaf_cache *cache, struct span sandbox,
		    struct span name, struct x509_st *leaf, uint64_t now_ms);
unsigned leaf_cache_count(struct leaf_cache *cache);
/* Forgets everything: the CA changed. */
void leaf_cache_clear(struct leaf_cache *cache);
