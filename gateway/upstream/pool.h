/* SPDX-License-Identifier: Apache-2.0 */
/* pool.h - groups of origin connections and their TLS sessions (origin.c's) */
#pragma once

#include "gateway/upstream/origin.h"

struct ssl_st;

/* Finds or creates the group of a sandbox and destination. */
struct origin_group *pool_at(struct origin_pool *pool, const struct sandbox *s,
			     const struct destination *d);
/* The most recently used idle connection, or NULL. */
struct origin *pool_take_idle(struct origin_pool *pool, const struct sandbox *s,
			      const struct destination *d);
void pool_put_idle(struct origin *o);
/* Unlinks o and lets go of its group. */
void pool_forget(struct origin *o);

/* A client-side SSL for o: SNI, name to verify, ALPN, session to resume.
 * NULL on failure. */
struct ssl_st *group_new_ssl(struct origin *o);
