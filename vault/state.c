/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - the rows that seal sets: manifests and the state
 *
 *   manifest: 0 count  8 sum                       (revision in the head)
 *   state:    0 epoch  8 seals  16 scopes  24 sum  56 keyring tag
 *            72 epoch key
 */

#include "vault/inside.h"

#include <errno.h>

#include "src/base/err.h"
#include "src/base/secret.h"
#include "vault/envelope.h"
#include "vault/epoch.h"
#include "vault/keyring.h"
#include "vault/row.h"
#include "vault/store.h"

enum {
	MANIFEST_SIZE = 8 + SET_SUM_SIZE,
	AT_SEALS = 8,
	AT_SCOPES = 16,
	AT_SUM = 24,
	AT_TAG = AT_SUM + SET_SUM_SIZE,
	AT_KEY = AT_TAG + STATE_KEYRING_TAG,
	STATE_SIZE = AT_KEY + STATE_EPOCH_KEY,
};

static void cleanup_secret(struct secret **s)
{
	*s = secret_free(*s);
}

int vault_state_write(struct store_txn *st, struct keyring *k,
		      struct secret *epoch_key, struct vault_state *state)
{
	struct record_head head = { .table = RECORD_TABLE_STATE };
	CLEANUP(row_fini) struct row row = { 0 };
	struct record_key key;
	char plain[STATE_SIZE];
	int r;

	state->seals++;
	memcpy(state->keyring_tag, k->row_tag, sizeof(state->keyring_tag));
	record_put_u64(plain, state->epoch);
	record_put_u64(plain + AT_SEALS, state->seals);
	record_put_u64(plain + AT_SCOPES, state->scope_count);
	set_emit(&state->scopes, plain + AT_SUM);
	memcpy(plain + AT_TAG, state->keyring_tag, STATE_KEYRING_TAG);
	memcpy(plain + AT_KEY, secret_open(epoch_key).ptr, STATE_EPOCH_KEY);

	head.revision = state->epoch;
	record_key_single(&key, RECORD_TABLE_STATE);
	r = row_seal(k, &head, record_key_span(&key),
		     span_of(plain, sizeof(plain)), &row);
	secret_wipe(plain, sizeof(plain));
	return r ? r : store_put(st, record_key_span(&key), row_span(&row));
}

int vault_state_parse(struct vault *v, struct span row)
{
	CLEANUP(cleanup_secret) struct secret *plain = NULL;
	struct vault_state *state = &v->state;
	struct record_key key;
	struct span bytes;
	int r;

	record_key_single(&key, RECORD_TABLE_STATE);
	r = row_open(v->keyring, record_key_span(&key), row, &plain);
	if (r)
		return r;
	bytes = secret_open(plain);
	if (bytes.len != STATE_SIZE)
		return ROW_E_CORRUPT;
	state->epoch = record_get_u64(bytes.ptr);
	state->seals = record_get_u64(bytes.ptr + AT_SEALS);
	state->scope_count = record_get_u64(bytes.ptr + AT_SCOPES);
	set_parse(&state->scopes, bytes.ptr + AT_SUM);
	memcpy(state->keyring_tag, bytes.ptr + AT_TAG, STATE_KEYRING_TAG);
	return secret_dup(span_of(bytes.ptr + AT_KEY, STATE_EPOCH_KEY),
			  &v->epoch_key);
}

int vault_manifest_write(struct store_txn *st, struct keyring *k,
			 struct span scope, const struct index_facts *old,
			 struct index_facts *facts, struct vault_state *state)
{
	CLEANUP(row_fini) struct row row = { 0 };
	char plain[MANIFEST_SIZE];
	struct record_key key;
	int r = 0;

	record_key_manifest(&key, scope);
	facts->head.table = RECORD_TABLE_MANIFEST;
	record_put_u64(plain, facts->count);
	set_emit(&facts->sum, plain + 8);
	if (old->head.revision)
		r = set_remove(&state->scopes, k->set, record_key_span(&key),
			       &old->head);
	else
		state->scope_count++;
	if (!r)
		r = row_seal(k, &facts->head, record_key_span(&key),
			     span_of(plain, sizeof(plain)), &row);
	if (!r)
		r = store_put(st, record_key_span(&key), row_span(&row));
	if (r)
		return r;
	facts->head = row.head;
	state->seals++;
	return set_add(&state->scopes, k->set, record_key_span(&key),
		       &row.head);
}

int vault_manifest_parse(struct vault *v, struct span key, struct span row,
			 struct index_facts *ret)
{
	CLEANUP(cleanup_secret) struct secret *plain = NULL;
	struct span bytes;
	int r = row_open(v->keyring, key, row, &plain);

	if (r)
		return r;
	bytes = secret_open(plain);
	if (bytes.len != MANIFEST_SIZE)
		return ROW_E_CORRUPT;
	ret->count = record_get_u64(bytes.ptr);
	set_parse(&ret->sum, bytes.ptr + 8);
	return 0;
}

int vault_epoch_write(struct vault *v, struct diag *d)
{
	int r = epoch_write(v->epoch, v->epoch_mac, v->keyring->store_id,
			    v->state.epoch);

	if (r)
		(void)diag_set(d, 0, 0,
			       "the change was stored, but the epoch file "
			       "beside the store could not be written: %s",
			       err_text(r));
	return r;
}
