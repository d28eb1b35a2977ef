/* SPDX-License-Identifier: Apache-2.0 */
/* lookup.h - how names and addresses become numbers that a snapshot is searched
 * for: the same for the compiler and the matcher
 */
#pragma once

#include <endian.h>

#include "policy/layout.h"

/* A name's hash is made from its last byte to its first, so that one walk
 * gives the hash of every suffix. Bytes gather in a word below a marking 1 and
 * are folded in when it is full and at each dot. The seed is mixed in behind
 * all that: a snapshot chooses the seed that gives its table short chains. */
struct snap_hash {
	uint64_t folded, word;
};

#define SNAP_HASH_START ((struct snap_hash){ 0, 1 })

static inline void snap_hash_fold(struct snap_hash *h)
{
	h->folded = (h->folded ^ h->word) * 0x9e3779b97f4a7c15u;
	h->folded ^= h->folded >> 32;
	h->word = 1;
}

static inline void snap_hash_byte(struct snap_hash *h, char c)
{
	h->word = h->word << 8 | (uint8_t)c;
	if (h->word >> 56)
		snap_hash_fold(h);
}

static inline uint64_t snap_hash_end(uint64_t hash, uint64_t seed)
{
	hash ^= seed;
	hash ^= hash >> 32;
	hash *= 0xd6e8feb86659fd93u;
	hash ^= hash >> 29;
	return hash;
}

/* Where a search of the table begins: the low half of the hash as a fraction,
 * so that any number of slots will do. */
static inline uint32_t snap_hash_slot(uint64_t hash, uint32_t slot_count)
{
	return (uint32_t)((hash & UINT32_MAX) * slot_count >> 32);
}

static inline uint8_t snap_hash_tag(uint64_t hash)
{
	return (uint8_t)(hash >> 56);
}

static inline uint32_t snap_slot_next(uint32_t at, uint32_t slot_count)
{
	return at + 1 == slot_count ? 0 : at + 1;
}

static inline struct snap_key snap_key_of(const uint8_t ip[16])
{
	uint64_t high, low;

	memcpy(&high, ip, sizeof(high));
	memcpy(&low, ip + sizeof(high), sizeof(low));
	return (struct snap_key){ (unsigned __int128)be64toh(high) << 64 |
				  be64toh(low) };
}

/* Are the first length bits those of the prefix? */
static inline bool snap_key_in_prefix(struct snap_key key,
				      struct snap_key prefix, uint32_t length)
{
	return !length || !((key.ip ^ prefix.ip) >> (128 - length));
}
