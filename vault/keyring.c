/* SPDX-License-Identifier: Apache-2.0 */
/* keyring.c - make, wrap and unwrap the DEK
 *
 * How it works: the KEK is never used itself. Two keys are derived from it:
 * one wraps the DEK, one makes a check value, which tells a wrong key from a
 * damaged row. The DEK likewise: one key seals rows, one authenticates the set
 * of rows. The head of the row, with the scrypt parameters, is associated data
 * of the wrapping: nobody can weaken them unnoticed.
 *
 *   0 "SPVAULT1"   8 method, log2 N, r, p   12 dek id   16 store id
 *  32 salt        64 check   80 nonce   92 wrapped DEK   124 tag
 */

#include "vault/keyring.h"

#include <assert.h>
#include <errno.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/secret.h"
#include "vault/record.h"

enum {
	AT_METHOD = 8,
	AT_DEK_ID = 12,
	AT_STORE_ID = 16,
	AT_SALT = 32,
	AT_CHECK = 64,
	AT_NONCE = 80,
	AT_WRAPPED = 92,
	AT_TAG = 124,
	CHECK_SIZE = AT_NONCE - AT_CHECK,
};

static_assert(AT_TAG + ENVELOPE_TAG_SIZE == KEYRING_ROW_SIZE, "row is drawn");
static_assert(AT_WRAPPED + ENVELOPE_KEY_SIZE == AT_TAG, "the DEK fits");

static const struct span magic = SPAN_INIT("SPVAULT1");

static void cleanup_secret(struct secret **s)
{
	*s = secret_free(*s);
}

static void cleanup_envelope(struct envelope **e)
{
	*e = envelope_free(*e);
}

static void cleanup_keyring(struct keyring **k)
{
	*k = keyring_free(*k);
}

struct keyring *keyring_free(struct keyring *k)
{
	if (!k)
		return NULL;
	secret_free(k->kek);
	secret_free(k->dek);
	envelope_free(k->rows);
	envelope_mac_free(k->set);
	free(k);
	return NULL;
}

/* What the DEK is used for. */
static int dek_derive(struct keyring *k)
{
	CLEANUP(cleanup_secret) struct secret *rows = NULL;
	CLEANUP(cleanup_secret) struct secret *set = NULL;
	int r;

	r = envelope_derive(k->dek, SPAN("sallyport rows 1"), &rows);
	if (!r)
		r = envelope_derive(k->dek, SPAN("sallyport set 1"), &set);
	if (!r)
		r = envelope_new(rows, &k->rows);
	if (!r)
		r = envelope_mac_new(set, &k->set);
	return r;
}

static int dek_draw(struct keyring *k)
{
	int r = secret_new(ENVELOPE_KEY_SIZE, &k->dek);

	if (r)
		return r;
	envelope_random(secret_fill(k->dek), ENVELOPE_KEY_SIZE);
	return dek_derive(k);
}

static int wrapper_new(const struct secret *kek, struct envelope **ret)
{
	CLEANUP(cleanup_secret) struct secret *key = NULL;
	int r = envelope_derive(kek, SPAN("sallyport wrap 1"), &key);

	return r ? r : envelope_new(key, ret);
}

static int check_make(const struct secret *kek, struct secret **ret)
{
	int r = envelope_derive(kek, SPAN("sallyport check 1"), ret);

	if (!r)
		secret_truncate(*ret, CHECK_SIZE);
	return r;
}

int keyring_new(const struct kek_source *source, struct keyring **ret,
		struct diag *d)
{
	CLEANUP(cleanup_keyring) struct keyring *k = must_alloc(sizeof(*k));
	int r;

	kek_params_new(source, &k->params);
	envelope_random(k->store_id, sizeof(k->store_id));
	k->dek_id = 1;
	r = kek_read(source, &k->params, &k->kek, d);
	if (!r)
		r = dek_draw(k);
	if (!r)
		*ret = take_ptr(k);
	return r;
}

/* All but the keys. */
static struct keyring *keyring_like(const struct keyring *old)
{
	struct keyring *k = must_alloc(sizeof(*k));

	memcpy(k->store_id, old->store_id, sizeof(k->store_id));
	k->params = old->params;
	k->dek_id = old->dek_id;
	return k;
}

int keyring_next(const struct keyring *old, struct keyring **ret)
{
	CLEANUP(cleanup_keyring) struct keyring *k = keyring_like(old);
	int r;

	k->dek_id++;
	r = secret_dup(secret_open(old->kek), &k->kek);
	if (!r)
		r = dek_draw(k);
	if (!r)
		*ret = take_ptr(k);
	return r;
}

int keyring_rewrap(const struct keyring *old, const struct kek_source *source,
		   struct keyring **ret, struct diag *d)
{
	CLEANUP(cleanup_keyring) struct keyring *k = keyring_like(old);
	int r;

	kek_params_new(source, &k->params);
	r = kek_read(source, &k->params, &k->kek, d);
	if (!r)
		r = secret_dup(secret_open(old->dek), &k->dek);
	if (!r)
		r = dek_derive(k);
	if (!r)
		*ret = take_ptr(k);
	return r;
}

static void head_emit(const struct keyring *k, const struct secret *check,
		      char *row)
{
	memcpy(row, magic.ptr, magic.len);
	row[AT_METHOD] = (char)k->params.method;
	row[AT_METHOD + 1] = (char)k->params.log2_n;
	row[AT_METHOD + 2] = (char)k->params.block;
	row[AT_METHOD + 3] = (char)k->params.parallel;
	record_put_u32(row + AT_DEK_ID, k->dek_id);
	memcpy(row + AT_STORE_ID, k->store_id, sizeof(k->store_id));
	memcpy(row + AT_SALT, k->params.salt, sizeof(k->params.salt));
	memcpy(row + AT_CHECK, secret_open(check).ptr, CHECK_SIZE);
}

int keyring_emit(struct keyring *k, char row[KEYRING_ROW_SIZE])
{
	CLEANUP(cleanup_envelope) struct envelope *wrapper = NULL;
	CLEANUP(cleanup_secret) struct secret *check = NULL;
	uint8_t *nonce = (uint8_t *)row + AT_NONCE;
	int r;

	r = wrapper_new(k->kek, &wrapper);
	if (!r)
		r = check_make(k->kek, &check);
	if (r)
		return r;
	head_emit(k, check, row);
	envelope_random(nonce, ENVELOPE_NONCE_SIZE);
	r = envelope_seal(wrapper, nonce, span_of(row, AT_NONCE),
			  secret_open(k->dek), row + AT_WRAPPED);
	if (!r)
		memcpy(k->row_tag, row + AT_TAG, sizeof(k->row_tag));
	return r;
}

static int row_is_damaged(struct diag *d)
{
	(void)diag_set(d, 0, 0,
		       "the keyring row is damaged; the vault cannot be opened "
		       "without it: restore a backup");
	return KEYRING_E_CORRUPT;
}

static bool head_parse(struct span row, struct keyring *k)
{
	const char *at = row.ptr;

	if (row.len != KEYRING_ROW_SIZE || !span_starts(row, magic))
		return false;
	k->params.method = (enum kek_method)at[AT_METHOD];
	k->params.log2_n = (uint8_t)at[AT_METHOD + 1];
	k->params.block = (uint8_t)at[AT_METHOD + 2];
	k->params.parallel = (uint8_t)at[AT_METHOD + 3];
	k->dek_id = record_get_u32(at + AT_DEK_ID);
	memcpy(k->store_id, at + AT_STORE_ID, sizeof(k->store_id));
	memcpy(k->params.salt, at + AT_SALT, sizeof(k->params.salt));
	memcpy(k->row_tag, at + AT_TAG, sizeof(k->row_tag));
	return kek_params_are_sane(&k->params);
}

/* The file, or the name of the credential. */
static const char *source_text(const struct kek_source *s)
{
	if (s->key_file)
		return s->key_file;
	return s->credential ? s->credential : s->passphrase_file;
}

static int dek_unwrap(struct keyring *k, struct span row,
		      const struct kek_source *source, struct diag *d)
{
	CLEANUP(cleanup_envelope) struct envelope *wrapper = NULL;
	CLEANUP(cleanup_secret) struct secret *check = NULL;
	int r;

	r = check_make(k->kek, &check);
	if (r)
		return r;
	if (!secret_eq(secret_open(check),
		       span_of(row.ptr + AT_CHECK, CHECK_SIZE))) {
		(void)diag_set(d, 0, 0,
			       "the %s given is not the one that this vault "
			       "was sealed with: %s",
			       k->params.method == KEK_SCRYPT ? "passphrase"
							      : "key",
			       source_text(source));
		return KEYRING_E_WRONG_KEY;
	}
	r = wrapper_new(k->kek, &wrapper);
	if (!r)
		r = secret_new(ENVELOPE_KEY_SIZE, &k->dek);
	if (!r)
		r = envelope_open(wrapper, (const uint8_t *)row.ptr + AT_NONCE,
				  span_of(row.ptr, AT_NONCE),
				  span_from(row, AT_WRAPPED),
				  secret_fill(k->dek));
	return r == ENVELOPE_E_FORGED ? row_is_damaged(d) : r;
}

int keyring_open(struct span row, const struct kek_source *source,
		 struct keyring **ret, struct diag *d)
{
	CLEANUP(cleanup_keyring) struct keyring *k = must_alloc(sizeof(*k));
	int r;

	if (!head_parse(row, k))
		return row_is_damaged(d);
	r = kek_read(source, &k->params, &k->kek, d);
	if (!r)
		r = dek_unwrap(k, row, source, d);
	if (!r)
		r = dek_derive(k);
	if (!r)
		*ret = take_ptr(k);
	return r;
}
