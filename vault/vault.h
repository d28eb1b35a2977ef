/* SPDX-License-Identifier: Apache-2.0 */
/* vault.h - sealed records by scope, kind and name; revisions; leases
 *
 * A record is (scope, kind, name) -> value. A scope is "" (the node) or a
 * sandbox id; each counts its commits in a revision. Values exist in clear
 * only in struct secret; names, kinds and sizes stand in clear in the store.
 *
 * Every function that returns int: 0; > 0 a VAULT_E_... with a sentence in d;
 * < 0 -errno. Sentences name records and never repeat a value. One vault
 * serves one thread, and one process at a time (it holds a lock file).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/diag.h"
#include "src/base/span.h"
#include "vault/kek.h"

struct secret;
struct vault;
struct vault_txn;

/* The first ones are enum record_kind of the roles' messages (the programs
 * assert that); the last ones never appear in a message. On disk. */
enum vault_kind {
	VAULT_NONE = 0,
	VAULT_CREDENTIAL = 1,
	VAULT_BINDING = 2, /* JSON; what it names may be leased */
	VAULT_SANDBOX = 3,
	VAULT_POLICY = 4,
	VAULT_TOKEN = 5,
	VAULT_BOX = 6,
	VAULT_SNAPSHOT = 7,
	VAULT_NET_POLICY = 8,
	VAULT_CA_KEY = 64, /* in scope VAULT_OWN_SCOPE */
	VAULT_CA_CERT = 65,
	VAULT_KIND_MAX = 255,
};

/* "credential", ...; "record" for a kind without a name. */
const char *vault_kind_name(uint8_t kind);

/* The vault's own records. Messages may not name a scope that begins with a
 * dot. */
#define VAULT_OWN_SCOPE SPAN(".vault")

enum {
	VAULT_VALUE_MAX = 96 * 1024,	  /* bytes of any value */
	VAULT_CREDENTIAL_MAX = 32 * 1024, /* of a credential's value */
	VAULT_TXN_RECORDS = 4096,	  /* changes in one transaction */
	VAULT_TXN_BYTES = 16 * 1024 * 1024,
};

enum vault_error {
	VAULT_OK,
	VAULT_E_ABSENT,	     /* no vault in that folder */
	VAULT_E_EXISTS,	     /* init: there is one already */
	VAULT_E_HELD,	     /* another process has it open */
	VAULT_E_WRONG_KEY,   /* the KEK is not the one it was sealed with */
	VAULT_E_CORRUPT,     /* torn or changed bytes */
	VAULT_E_ROLLED_BACK, /* older, moved, missing or added rows */
	VAULT_E_NOT_FOUND,   /* no such record */
	VAULT_E_CONFLICT,    /* the scope is at another revision */
	VAULT_E_REFUSED,     /* a name or a value breaks a rule */
	VAULT_E_NOT_NAMED,   /* lease: no binding of the scope names it */
	VAULT_E_WORN,	     /* rotate-dek is due */
	VAULT_ERROR_NUM,
};

/* "rolled back", ... for log lines. */
const char *vault_error_name(int error);

struct vault_options {
	const char *state_dir; /* the vault is <state_dir>/vault */
	struct kek_source kek;
	/* Open although the store as a whole was found damaged or rolled
	 * back; only verify and repair then do anything. */
	bool for_repair;
	/* 0 = default: LMDB's map to begin with; seals per DEK */
	size_t map_bytes;
	uint64_t seals_max;
};

/* -- open ---------------------------------------------------------------- */

/* Makes an empty vault, and the folders. VAULT_E_EXISTS, VAULT_E_HELD. */
WUNRES int vault_init(const struct vault_options *o, struct diag *d);
/* Reads and checks every head; values stay sealed. VAULT_E_ABSENT, _HELD,
 * _WRONG_KEY, _CORRUPT, _ROLLED_BACK. A single damaged scope or record does
 * not stop it: see vault_verify(). */
WUNRES int vault_open(const struct vault_options *o, struct vault **ret,
		      struct diag *d);
/* NULL is fine; returns NULL. */
struct vault *vault_close(struct vault *v);

/* -- read ---------------------------------------------------------------- */

/* Borrowed until the next commit or close. */
struct vault_item {
	struct span scope, name;
	uint8_t kind;
	uint64_t revision; /* at which it was last written */
};

/* The value; the caller frees it. ret_revision may be NULL. VAULT_E_NOT_FOUND,
 * _CORRUPT, _ROLLED_BACK. */
WUNRES int vault_get(struct vault *v, struct span scope, uint8_t kind,
		     struct span name, struct secret **ret,
		     uint64_t *ret_revision, struct diag *d);
/* The same without opening the value. */
WUNRES int vault_stat(struct vault *v, struct span scope, uint8_t kind,
		      struct span name, struct vault_item *ret, struct diag *d);
/* The record behind `after` ("" = the first) in key order. 0 or
 * VAULT_E_NOT_FOUND: no more. Damaged scopes take part; their records then do
 * not open. */
WUNRES int vault_next(struct vault *v, struct span scope, uint8_t kind,
		      struct span after, struct vault_item *ret);
/* The same through all scopes in order, from behind (scope, after). */
WUNRES int vault_next_any(struct vault *v, struct span scope, uint8_t kind,
			  struct span after, struct vault_item *ret);
/* Nobody asks for a while: memory that can be read again is given back. */
void vault_rest(struct vault *v);
/* 0 for a scope that never was written. */
uint64_t vault_revision(struct vault *v, struct span scope);
/* Does a binding of the scope name the credential? */
bool vault_is_named(struct vault *v, struct span scope, struct span credential);
/* A credential's value, for the gateway: only when a binding in the same scope
 * names it. VAULT_E_NOT_NAMED, and all of vault_get(). */
WUNRES int vault_lease(struct vault *v, struct span scope, struct span name,
		       struct secret **ret, uint64_t *ret_revision,
		       struct diag *d);

/* -- write --------------------------------------------------------------- */

/* A transaction is staged in locked memory and touches the store only in
 * vault_commit(). expected: the scope's revision, or -1. VAULT_E_REFUSED. */
WUNRES int vault_begin(struct vault *v, struct span scope, int64_t expected,
		       struct vault_txn **ret, struct diag *d);
/* value is copied; the last word on a record wins. VAULT_E_REFUSED. */
WUNRES int vault_put(struct vault_txn *t, uint8_t kind, struct span name,
		     struct span value, struct diag *d);
WUNRES int vault_remove(struct vault_txn *t, uint8_t kind, struct span name,
			struct diag *d);
/* Everything in the scope goes, and its revision counter; nothing else may be
 * in the transaction. */
WUNRES int vault_remove_scope(struct vault_txn *t, struct diag *d);
/* Takes t. All of it or nothing, durable when it returns 0; one revision more,
 * also when nothing was staged. VAULT_E_CONFLICT; _NOT_FOUND: a record to
 * remove is not there; _CORRUPT, _ROLLED_BACK: the scope is damaged; _WORN. */
WUNRES int vault_commit(struct vault_txn *t, uint64_t *ret_revision,
			struct diag *d);
/* NULL is fine; returns NULL. Wipes what was staged. */
struct vault_txn *vault_abort(struct vault_txn *t);

/* -- maintain ------------------------------------------------------------ */

struct vault_finding {
	enum vault_error error;
	struct span scope, name; /* name empty: the scope as a whole */
	uint8_t kind;
	const char *text; /* a sentence */
};

typedef void vault_report_fn(void *ctx, const struct vault_finding *f);

struct vault_counts {
	uint64_t scopes, records, findings;
};

/* Opens every record. 0 even when there are findings. report may be NULL. */
WUNRES int vault_verify(struct vault *v, vault_report_fn *report, void *ctx,
			struct vault_counts *ret);
/* Accepts what is there as the truth: seals afresh all that opens, drops the
 * rest (reported). For an operator who knows why. */
WUNRES int vault_repair(struct vault *v, vault_report_fn *report, void *ctx,
			struct vault_counts *ret, struct diag *d);
/* Wraps the DEK with the key of another source. */
WUNRES int vault_rotate_kek(struct vault *v, const struct kek_source *kek,
			    struct diag *d);
/* A fresh DEK; everything is sealed again, in one transaction. Refused
 * (VAULT_E_CORRUPT, _ROLLED_BACK) when anything is damaged. */
WUNRES int vault_rotate_dek(struct vault *v, struct diag *d);
