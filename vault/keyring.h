/* SPDX-License-Identifier: Apache-2.0 */
/* keyring.h - the data-encryption key, wrapped by the key-encryption key
 *
 * The DEK seals every row; the KEK seals the DEK, in one row. Changing the KEK
 * rewrites that row, changing the DEK rewrites all others.
 */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"
#include "vault/envelope.h"
#include "vault/kek.h"

struct diag;
struct secret;

enum {
	KEYRING_ROW_SIZE = 140,
	KEYRING_ID_SIZE = 16,
	KEYRING_E_WRONG_KEY = 1, /* the KEK is another one */
	KEYRING_E_CORRUPT = 2,	 /* the row was changed */
};

struct keyring {
	uint8_t store_id[KEYRING_ID_SIZE]; /* drawn at init, for ever */
	struct kek_params params;
	uint32_t dek_id;
	struct secret *kek, *dek;
	/* derived from the DEK */
	struct envelope *rows;
	struct envelope_mac *set;
	/* of the row as it was read or written last: pins it in the state */
	uint8_t row_tag[ENVELOPE_TAG_SIZE];
};

/* A new store's: fresh id and DEK, the KEK of this source. 0, or -errno with
 * d. */
WUNRES int keyring_new(const struct kek_source *source, struct keyring **ret,
		       struct diag *d);
/* The same store and KEK with a fresh DEK. */
WUNRES int keyring_next(const struct keyring *old, struct keyring **ret);
/* The same store and DEK with the KEK of this source. */
WUNRES int keyring_rewrap(const struct keyring *old,
			  const struct kek_source *source, struct keyring **ret,
			  struct diag *d);
/* From its row. 0, KEYRING_E_..., or -errno; all with d. */
WUNRES int keyring_open(struct span row, const struct kek_source *source,
			struct keyring **ret, struct diag *d);
/* NULL is fine; returns NULL. */
struct keyring *keyring_free(struct keyring *k);

/* Writes the row, sealed afresh, and notes its tag. */
WUNRES int keyring_emit(struct keyring *k, char row[KEYRING_ROW_SIZE]);
