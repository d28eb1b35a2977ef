/* SPDX-License-Identifier: Apache-2.0 */
/* quota.h - what one sandbox has used of its limits, over all workers
 *
 * How it works: every sandbox id has one struct quota, shared by all threads
 * of the gateway. It is found when the sandbox is registered and lives as long
 * as anybody refers to it, so neither a new registration of the id nor another
 * policy gives a fresh allowance.
 *
 * Connections are a plain count of what is open. Everything else is a rate,
 * kept by the generic cell rate algorithm (ITU-T I.371, the "virtual
 * scheduling" form), which is a token bucket in one number: the theoretical
 * arrival time (TAT), at which the bucket is full again. Taking n tokens moves
 * it n/rate seconds into the future, from now at the earliest; it may not get
 * further ahead of now than the bucket is deep. That is one compare-and-swap
 * on 64 bits: no lock, no timer that refills, nothing to do for a sandbox that
 * rests, and a new rate needs no conversion.
 *
 * A bucket is one second deep (bytes: a quarter), so a sandbox that rested may
 * use that much at once. All atomics are relaxed: the numbers guard nothing but
 * themselves. Each bucket has a cache line to itself, which is written only
 * where there is a limit; the limits stand on another one that is only read.
 * Bytes are taken by the chunk, not by the read.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

enum quota_kind {
	QUOTA_CONNECTIONS, /* open TCP connections: quota_open(), _close() */
	QUOTA_CONNECTS,	   /* new TCP connections and UDP flows, per second */
	QUOTA_BYTES_OUT,   /* from the sandbox, per second */
	QUOTA_BYTES_IN,	   /* to the sandbox, per second */
	QUOTA_DNS,	   /* DNS questions, per second */
	QUOTA_MINTS,	   /* leaf certificates signed, per second */
	QUOTA_NUM,
};

const char *quota_kind_name(enum quota_kind kind); /* as the admin API says */

enum {
	QUOTA_CHUNK_MAX = 64 * 1024,
	QUOTA_RATE_MAX = 1000 * 1000 * 1000, /* but of bytes: */
};
#define QUOTA_BYTES_MAX (UINT64_C(1) << 40)

struct quota;
struct quotas; /* those of all ids; its own lock */

struct quotas *quotas_new(void);
/* NULL is fine; returns NULL. Ends when the last quota is let go. */
struct quotas *quotas_free(struct quotas *all);
/* The quota of an id, made without limits where there was none; a reference.
 * Any thread; takes the lock. */
struct quota *quotas_at(struct quotas *all, struct span id);
/* The same, but NULL where there is none. */
struct quota *quotas_find(struct quotas *all, struct span id);
struct quota *quota_ref(struct quota *q);   /* takes the lock */
struct quota *quota_unref(struct quota *q); /* takes the lock; returns NULL */

/* Any thread, in force at once. 0: no limit. */
void quota_set_limit(struct quota *q, enum quota_kind kind, uint64_t limit);
uint64_t quota_limit(const struct quota *q, enum quota_kind kind);

/* One token of a rate. False: refused, and counted so. now_us: clock_us(). */
WUNRES bool quota_take(struct quota *q, enum quota_kind kind, uint64_t now_us);

/* A place for one more open connection, until quota_close(). False: refused,
 * and counted so. */
WUNRES bool quota_open(struct quota *q);
void quota_close(struct quota *q);

/* Bytes that may pass now: a chunk of the rate, UINT64_MAX where there is no
 * limit, 0 when the bucket is empty (counted as refused: a read waits). */
uint64_t quota_draw(struct quota *q, enum quota_kind kind, uint64_t now_us);

/* For people. used: open connections; of a rate what is missing from its bucket
 * now (nothing where there is no limit). */
struct quota_state {
	uint64_t used, limit, refused;
};
void quota_state(const struct quota *q, enum quota_kind kind, uint64_t now_us,
		 struct quota_state *ret);
/* Of all kinds together. */
uint64_t quota_refused(const struct quota *q);
const char *quota_id(const struct quota *q);
/* The (at most) max that were refused most, most first; references. How many.
 * Takes the lock, looks at all. */
unsigned quotas_most_refused(struct quotas *all, struct quota **ret,
			     unsigned max);
