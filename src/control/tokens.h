/* SPDX-License-Identifier: Apache-2.0 */
/* tokens.h - admin tokens: shown once, kept as hashes, compared in constant
 * time
 *
 * A token is "sallyport_" and 64 hex digits of random. The record is
 * {"sha256": hex, "created": ms}; 256 bits of random need no slow hash.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/map.h"
#include "src/base/span.h"

struct buf;
struct diag;
struct json_out;

enum { TOKEN_HASH_SIZE = 32, TOKEN_TEXT_SIZE = 80, TOKENS_MAX = 1024 };

struct token {
	char *name;
	unsigned char hash[TOKEN_HASH_SIZE];
	uint64_t created_ms;
};

struct tokens {
	struct map by_name;
};

void tokens_init(struct tokens *all);
void tokens_fini(struct tokens *all);
struct token *token_free(struct token *t);

/* A fresh one; its text (NUL-terminated) is written to text and is nowhere
 * else. */
struct token *token_new(struct span name, char text[TOKEN_TEXT_SIZE]);
WUNRES int token_emit_record(const struct token *t, struct buf *out);
WUNRES int token_parse_record(struct span name, struct span text,
			      struct token **ret);
/* {"name", "created"} */
void token_emit(struct json_out *o, const char *member, const struct token *t);

struct token *tokens_find(const struct tokens *all, struct span name);
void tokens_put(struct tokens *all, struct token *t); /* takes t */
void tokens_remove(struct tokens *all, struct span name);
/* SHA-256: what is kept of a token. */
void token_hash(struct span text, unsigned char hash[TOKEN_HASH_SIZE]);
/* Is this the text of one of them? Takes as long for every text. */
bool tokens_have(const struct tokens *all, struct span text);
