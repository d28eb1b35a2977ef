/* SPDX-License-Identifier: Apache-2.0 */
/* epoch.h - how many commits the store must have seen, kept beside it
 *
 * The store counts its commits; this file repeats the number outside of it. A
 * store that has seen fewer than the file says is an older copy. The file is
 * opened once (a confined role opens nothing) and written in place.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "vault/envelope.h"
#include "vault/keyring.h"

struct diag;
struct epoch;

enum { EPOCH_E_ABSENT = 1, EPOCH_E_CORRUPT = 2 };

/* The file `epoch` in folder. create: make it when missing, else
 * EPOCH_E_ABSENT. Does not read it. 0 or -errno with d. */
WUNRES int epoch_open(const char *folder, bool create, struct epoch **ret,
		      struct diag *d);
struct epoch *epoch_free(struct epoch *e);

/* Was any commit ever noted here? Asked when there is no store to ask about
 * MACs. */
bool epoch_is_used(struct epoch *e);
/* store_id: KEYRING_ID_SIZE bytes. 0; EPOCH_E_CORRUPT: no part of the file is
 * ours; -errno. */
WUNRES int epoch_read(struct epoch *e, struct envelope_mac *mac,
		      const uint8_t *store_id, uint64_t *ret);
/* Durable when it returns 0. */
WUNRES int epoch_write(struct epoch *e, struct envelope_mac *mac,
		       const uint8_t *store_id, uint64_t value);
