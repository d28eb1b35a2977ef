/* SPDX-License-Identifier: Apache-2.0 */
/* stash.h - compiled policies, packed and kept once
 *
 * Control needs the bytes of a snapshot rarely: for a new gateway, for somebody
 * who asks why. So they are compressed, to about a sixth; and however many
 * policies say the same, it is there once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/attrib.h"
#include "src/base/map.h"
#include "src/base/span.h"

struct buf;
struct stash;

/* All of them, by what they hold. */
struct stashes {
	struct map by_hash;
};

void stashes_init(struct stashes *all);
/* After the last stash was let go. */
void stashes_fini(struct stashes *all);

/* Those that hold the bytes, made or shared; the caller's to let go. */
struct stash *stash_keep(struct stashes *all, struct span bytes);
/* NULL is fine; returns NULL. */
struct stash *stash_drop(struct stashes *all, struct stash *s);

size_t stash_size(const struct stash *s); /* of the bytes */
/* Puts the bytes into out, which is empty and has room for them. */
void stash_open(const struct stash *s, struct buf *out);
