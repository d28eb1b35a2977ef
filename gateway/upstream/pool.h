/* SPDX-License-Identifier: Apache-2.0 */
/* pool.h - groups of origin connections and their TLS sessions (origin.c's) */
#pragma once

#include "gateway/upstream/origin.h"

struct ssl_st;

/* Finds or creates the group of a sandbox and destination. */
struct origin_group *pool_at(struct origin_pool *pool, const struct sandbox *s,
			     const struct destination *d);
/* A connection that may be used now, or NULL: with h2 a shared one that has
 * room, else the most recently used idle one. */
struct origin *pool_take(struct origin_pool *pool, const struct sandbox *s,
			 const struct destination *d, bool h2);
void pool_put_idle(struct origin *o);
/* HTTP/2: no new exchange may join it. */
void pool_retire(struct origin *o);
/* HTTP/2: true: another connection of the group is being opened, and o waits to
 * share it. False: o itself is to be opened. So a crowd that finds no room does
 * not make a connection each. */
bool pool_wait(struct origin *o);
/* o was opened, or will not be: gives those that waited for it. */
void pool_wait_over(struct origin *o, struct list *ret_waiting);
/* Remembers what the handshake chose. True: HTTP/2. */
bool pool_note_alpn(struct origin *o);
/* The origin would not do without HTTP/2: remembered too, so that who asks
 * without it next is spared the refusal. */
void pool_note_h2_only(struct origin *o);
bool pool_is_h2_only(struct origin_pool *pool, const struct sandbox *s,
		     const struct destination *d);
/* Unlinks o and lets go of its group. */
void pool_forget(struct origin *o);

/* A client-side SSL for a connection to d: SNI, name or address to verify,
 * ALPN. NULL on failure. */
struct ssl_st *origin_ssl_new(struct worker *w, const struct destination *d,
			      bool h2);
/* A client-side SSL for o: SNI, name to verify, ALPN, session to resume.
 * NULL on failure. */
struct ssl_st *group_new_ssl(struct origin *o);
