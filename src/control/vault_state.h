/* SPDX-License-Identifier: Apache-2.0 */
/* vault_state.h - what control knows of one vault scope: names and bindings
 *
 * A copy of what the vault role stored, without values. It changes only after
 * a commit was acknowledged.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/binding.h"
#include "src/base/map.h"

struct buf;
struct json_out;

enum {
	VAULT_CREDENTIALS_MAX = 16384, /* of one scope */
	VAULT_BINDINGS_MAX = 16384,
	VAULT_BINDING_BYTES_MAX = 24 * 1024 * 1024, /* normalised, together */
};

struct vault_credential {
	struct span name;  /* owned */
	uint64_t revision; /* at which its value was last set */
};

struct vault_state {
	char *scope; /* "" = the node */
	uint64_t revision;
	struct map credentials; /* name -> struct vault_credential */
	struct map bindings;	/* name -> struct binding, which it owns */
	size_t binding_bytes;
	struct binding_set *set; /* made when asked for; NULL = stale */
};

struct vault_state *vault_state_new(const char *scope);
struct vault_state *vault_state_free(struct vault_state *s);

struct vault_credential *vault_state_credential(const struct vault_state *s,
						struct span name);
struct binding *vault_state_binding(const struct vault_state *s,
				    struct span name);

void vault_state_put_credential(struct vault_state *s, struct span name,
				uint64_t revision);
/* Takes the binding; its revision becomes `revision`. */
void vault_state_put_binding(struct vault_state *s, struct binding *b,
			     uint64_t revision);
void vault_state_remove_credential(struct vault_state *s, struct span name);
void vault_state_remove_binding(struct vault_state *s, struct span name);

/* All bindings in order of names; the caller frees the array. */
struct binding **vault_state_bindings(const struct vault_state *s,
				      unsigned *ret_count);
struct vault_credential **vault_state_credentials(const struct vault_state *s,
						  unsigned *ret_count);
/* Ready to be asked; borrowed until the next change. */
const struct binding_set *vault_state_set(struct vault_state *s);

/* {"revision", "bindings": [...]}: for the gateway and for the API. */
WUNRES int vault_state_emit_bindings(const struct vault_state *s,
				     struct buf *out);
WUNRES int vault_state_emit_credentials(const struct vault_state *s,
					struct buf *out);
/* Both in one object. */
WUNRES int vault_state_emit(const struct vault_state *s, struct buf *out);
/* {"name", "sourceType", "revision"} */
void vault_credential_emit(struct json_out *o, const char *member,
			   const struct vault_credential *credential);
