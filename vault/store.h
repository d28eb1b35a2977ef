/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - durable bytes by key: the only file that meets LMDB
 *
 * One process, one thread: the caller holds the vault's lock file. A write
 * that returned 0 is on the disk (fdatasync, no lazy modes).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct diag;
struct store;
struct store_txn;

enum {
	/* apart from the conditions of those who pass through store_write() */
	STORE_E_ABSENT = 0x101, /* no such key */
	STORE_E_FULL = 0x102,	/* inside a write: the map must grow */
	STORE_MAP_MIN = 1024 * 1024,
};

/* The environment in folder (which exists). create: make it when missing;
 * else -ENOENT. map_bytes: to begin with; it doubles as needed, up to 64 GiB.
 * 0, or -errno with d. */
WUNRES int store_open(const char *folder, bool create, size_t map_bytes,
		      struct store **ret, struct diag *d);
/* NULL is fine; returns NULL. */
struct store *store_free(struct store *s);

/* Nobody asks for a while: gives back what is mapped of the file. Neither while
 * reading nor from a writing function. */
void store_rest(struct store *s);

/* Reading: what find and each give is borrowed until store_read_end(). */
WUNRES int store_read_begin(struct store *s);
void store_read_end(struct store *s);
/* 0, STORE_E_ABSENT, -errno. */
WUNRES int store_find(struct store *s, struct span key, struct span *ret);

/* Every row in key order until fn returns other than 0, which is returned.
 * fn may not write. */
typedef int store_each_fn(void *ctx, struct span key, struct span value);
WUNRES int store_each(struct store *s, store_each_fn *fn, void *ctx);

/* One write transaction: fn puts and deletes, 0 from it commits, anything else
 * aborts and is returned. When the map is full it grows and fn runs again from
 * the beginning, over the unchanged store; so fn must forward STORE_E_FULL and
 * be repeatable. No read may be open. -EFBIG: too much for one transaction. */
typedef int store_write_fn(void *ctx, struct store_txn *t);
WUNRES int store_write(struct store *s, store_write_fn *fn, void *ctx);
/* Both copy. 0, STORE_E_FULL, -errno. */
WUNRES int store_put(struct store_txn *t, struct span key, struct span value);
/* A key that is not there is fine. */
WUNRES int store_delete(struct store_txn *t, struct span key);
/* Borrowed until the next put or delete. 0, STORE_E_ABSENT, -errno. */
WUNRES int store_txn_find(struct store_txn *t, struct span key,
			  struct span *ret);
