/* SPDX-License-Identifier: Apache-2.0 */
/* inside.h - the open vault, as the files of this folder see it
 *
 * How it works: four layers of proof, each sealed by the one above it.
 *
 *   epoch file	    the store has seen at least this many commits
 *   state row	    epoch; which keyring row; the set of manifests
 *   manifest row   per scope: its revision; the set of its records
 *   value row	    sealed to its place and revision
 *
 * Every commit writes its values, one manifest and the state in one LMDB
 * transaction, then the epoch file. So an older value, manifest or keyring put
 * back among newer ones does not fit the layer above, and an older whole store
 * does not fit the epoch file.
 */
#pragma once

#include "src/base/diag.h"
#include "vault/index.h"
#include "vault/refs.h"
#include "vault/set.h"
#include "vault/vault.h"

struct envelope_mac;
struct epoch;
struct keyring;
struct store;
struct store_txn;

enum {
	STATE_KEYRING_TAG = 16,
	STATE_EPOCH_KEY = 32,
	FOREIGN_MAX = 4096, /* rows of unknown keys that repair removes */
};

/* NIST SP 800-38D allows 2^32 random nonces per key. Half of it leaves room
 * for the ones that were drawn and never committed. */
#define SEALS_MAX (1ULL << 31)

struct vault_state {
	uint64_t epoch; /* commits of the store since init */
	uint64_t seals; /* rows sealed by this DEK */
	uint64_t scope_count;
	struct set_sum scopes; /* over the manifests */
	uint8_t keyring_tag[STATE_KEYRING_TAG];
};

struct vault {
	int lock_fd;
	struct store *store;
	struct epoch *epoch;
	struct keyring *keyring;
	struct vault_state state;
	struct secret *epoch_key; /* drawn at init */
	struct envelope_mac *epoch_mac;
	uint64_t seals_max;
	struct index index;
	struct refs refs;
	/* opened for repair: what is wrong with the whole */
	enum vault_error damage;
	struct diag damage_text;
	struct record_key *foreign;
	unsigned foreign_count;
};

/* Sets d and returns error. */
#define vault_refuse(d, error, ...) \
	((void)diag_set((d), 0, 0, __VA_ARGS__), (int)(error))

/* "credential "x" of sandbox "y"", for sentences. */
enum { VAULT_TEXT_SIZE = 640 };
const char *vault_describe(struct span scope, uint8_t kind, struct span name,
			   char dst[VAULT_TEXT_SIZE]);
/* "the node", "sandbox "y"". */
const char *vault_scope_text(struct span scope, char dst[VAULT_TEXT_SIZE]);

/* load.c: fills a vault whose store, epoch and lock are open. */
WUNRES int vault_load(struct vault *v, const struct vault_options *o,
		      struct diag *d);
/* 0, or why nothing in this scope is served. scope may be NULL. */
WUNRES int vault_scope_check(const struct index_scope *scope, struct diag *d);
/* Opens the row of an entry. VAULT_E_CORRUPT, _ROLLED_BACK. */
WUNRES int vault_entry_open(struct vault *v, const struct index_entry *e,
			    struct secret **ret, struct diag *d);
/* The same inside store_read_begin/end or a write; row: what was found. */
WUNRES int vault_row_open(struct vault *v, const struct index_entry *e,
			  struct span row, struct secret **ret, struct diag *d);

/* state.c: the rows above the values. Inside a store_write(). */
WUNRES int vault_state_write(struct store_txn *st, struct keyring *k,
			     struct secret *epoch_key,
			     struct vault_state *state);
/* Replaces old by new (head filled in) in the state's set. */
WUNRES int vault_manifest_write(struct store_txn *st, struct keyring *k,
				struct span scope,
				const struct index_facts *old,
				struct index_facts *facts,
				struct vault_state *state);
WUNRES int vault_manifest_parse(struct vault *v, struct span key,
				struct span row, struct index_facts *ret);
/* 0, ROW_E_CORRUPT, -errno. */
WUNRES int vault_state_parse(struct vault *v, struct span row);
/* After the commit of v->state: the number outside. */
WUNRES int vault_epoch_write(struct vault *v, struct diag *d);
