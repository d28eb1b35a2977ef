/* SPDX-License-Identifier: Apache-2.0 */
/* stash.c - packed by zstd, found by a hash of what was packed
 *
 * The hash is SipHash under a key of this process, so nobody can make two
 * policies meet; should two that differ meet anyway, the second is kept for
 * itself, because what was found is compared byte by byte.
 */

#include "src/control/stash.h"

#include <stdint.h>
#include <stdlib.h>
#include <zstd.h>

#include "src/base/buf.h"
#include "src/base/err.h"

enum { LEVEL = 1 }; /* higher ones gain little here */

struct stash {
	unsigned refs;
	bool found; /* by its hash */
	uint64_t hash;
	size_t size, packed;
	char bytes[];
};

static struct span hash_key(const uint64_t *hash)
{
	return span_of(hash, sizeof(*hash));
}

static bool stash_has(const struct stash *s, struct span bytes)
{
	struct buf own = BUF_INIT(s->size);
	bool same;

	if (s->size != bytes.len)
		return false;
	stash_open(s, &own);
	same = span_eq(buf_peek(&own), bytes);
	buf_fini(&own);
	return same;
}

/* Packed elsewhere first: what is kept stands without holes between. */
static struct stash *stash_new(struct span bytes)
{
	size_t room = ZSTD_compressBound(bytes.len), packed;
	char *scratch CLEANUP_FREE = must_realloc(NULL, room);
	struct stash *s;

	packed = ZSTD_compress(scratch, room, bytes.ptr, bytes.len, LEVEL);
	must(!ZSTD_isError(packed)); /* there is room */
	s = must_alloc(sizeof(*s) + packed);
	*s = (struct stash){ .refs = 1, .size = bytes.len, .packed = packed };
	memcpy(s->bytes, scratch, packed);
	return s;
}

struct stash *stash_keep(struct stashes *all, struct span bytes)
{
	uint64_t hash = map_hash(bytes);
	struct stash *s = map_find(&all->by_hash, hash_key(&hash));

	if (s && stash_has(s, bytes)) {
		s->refs++;
		return s;
	}
	/* another one of the same hash stays the one that is found */
	hash = s ? 0 : hash;
	s = stash_new(bytes);
	s->hash = hash;
	s->found = hash != 0;
	if (s->found)
		(void)map_set(&all->by_hash, hash_key(&hash), s);
	return s;
}

struct stash *stash_drop(struct stashes *all, struct stash *s)
{
	if (!s || --s->refs)
		return NULL;
	if (s->found)
		(void)map_take(&all->by_hash, hash_key(&s->hash));
	free(s);
	return NULL;
}

size_t stash_size(const struct stash *s)
{
	return s->size;
}

void stash_open(const struct stash *s, struct buf *out)
{
	char *room;

	must(!buf_len(out) && !buf_reserve(out, s->size, &room));
	must(ZSTD_decompress(room, s->size, s->bytes, s->packed) == s->size);
	buf_commit(out, s->size);
}

void stashes_init(struct stashes *all)
{
	map_init(&all->by_hash);
}

void stashes_fini(struct stashes *all)
{
	must(!map_count(&all->by_hash));
	map_fini(&all->by_hash);
}
