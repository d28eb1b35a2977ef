/* SPDX-License-Identifier: Apache-2.0 */
/* record.h - the bytes of a key and of a sealed row, as docs/formats.md draws
 *
 * Pure: bytes in, views out. Nothing here knows a key or a value.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

enum {
	RECORD_FORMAT = 1,
	RECORD_KEY_MAX = 511, /* LMDB's own limit */
	RECORD_NONCE_SIZE = 12,
	RECORD_TAG_SIZE = 16,
	RECORD_HEAD_SIZE = 28,
	RECORD_BOUND_SIZE = 16, /* the part of the head that is bound */
	RECORD_OVERHEAD = RECORD_HEAD_SIZE + RECORD_TAG_SIZE,
	RECORD_SCOPE_MAX = 250,
	RECORD_NAME_MAX = 255,
	RECORD_PLAIN_MAX = 96 * 1024, /* of a value */
	RECORD_AAD_MAX = 24 + RECORD_BOUND_SIZE + RECORD_KEY_MAX,
};

/* First byte of every key. In key order. */
enum record_table {
	RECORD_TABLE_NONE = 0,
	RECORD_TABLE_KEYRING = 'k',  /* one row, not sealed by the DEK */
	RECORD_TABLE_MANIFEST = 'm', /* one per scope */
	RECORD_TABLE_VALUE = 'r',
	RECORD_TABLE_STATE = 's', /* one row */
};

/* A key, built or parsed. */
struct record_key {
	size_t len;
	char bytes[RECORD_KEY_MAX];
};

static inline struct span record_key_span(const struct record_key *k)
{
	return span_of(k->bytes, k->len);
}

/* What a key says; spans point into it. */
struct record_place {
	enum record_table table;
	uint8_t kind; /* of a value, else 0 */
	struct span scope;
	struct span name;
};

/* UTF-8 or not, but no control bytes; at most RECORD_SCOPE_MAX, may be empty.
 * The control bytes are what separates the parts of a key. */
bool record_scope_is_valid(struct span scope);
/* The same, 1..RECORD_NAME_MAX. */
bool record_name_is_valid(struct span name);

/* Valid parts only (must). An empty name makes the key just before the first
 * of its kind, for seeking. */
void record_key_value(struct record_key *k, struct span scope, uint8_t kind,
		      struct span name);
/* Just behind every key of the scope, for seeking. */
void record_key_scope_end(struct record_key *k, struct span scope);
void record_key_manifest(struct record_key *k, struct span scope);
/* KEYRING or STATE. */
void record_key_single(struct record_key *k, enum record_table table);
/* False: no key of ours. */
WUNRES bool record_key_parse(struct span key, struct record_place *ret);

/* The head of a sealed row. */
struct record_head {
	enum record_table table;
	uint32_t dek; /* id of the key that sealed it */
	uint64_t revision;
	uint8_t nonce[RECORD_NONCE_SIZE];
};

void record_head_emit(const struct record_head *h, char dst[RECORD_HEAD_SIZE]);
/* False: too short, too long, an unknown format, or padding that is not zero.
 * *ret_sealed: ciphertext and tag. */
WUNRES bool record_parse(struct span row, struct record_head *ret,
			 struct span *ret_sealed);

/* The associated data of a row: what it is, where it stands, its revision.
 * Returns the length written. */
size_t record_aad(const struct record_head *h, struct span key,
		  char dst[RECORD_AAD_MAX]);

/* Little-endian integers in rows. */
void record_put_u32(char *dst, uint32_t v);
void record_put_u64(char *dst, uint64_t v);
uint32_t record_get_u32(const char *src);
uint64_t record_get_u64(const char *src);
