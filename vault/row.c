/* SPDX-License-Identifier: Apache-2.0 */
/* row.c - join layout (record.c) and cryptography (envelope.c) */

#include "vault/row.h"

#include <assert.h>
#include <errno.h>

#include "src/base/err.h"
#include "src/base/secret.h"
#include "vault/envelope.h"
#include "vault/keyring.h"

static_assert((int)RECORD_NONCE_SIZE == (int)ENVELOPE_NONCE_SIZE, "nonces");
static_assert((int)RECORD_TAG_SIZE == (int)ENVELOPE_TAG_SIZE, "tags");
static_assert((int)RECORD_PLAIN_MAX <= (int)SECRET_MAX_BYTES,
	      "an opened row fits into a secret");

int row_seal(struct keyring *k, const struct record_head *like, struct span key,
	     struct span plain, struct row *ret)
{
	struct row row = { .head = *like };
	char aad[RECORD_AAD_MAX];
	size_t aad_len;
	int r;

	must(plain.len <= RECORD_PLAIN_MAX);
	row.head.dek = k->dek_id;
	envelope_random(row.head.nonce, sizeof(row.head.nonce));
	row.len = RECORD_OVERHEAD + plain.len;
	row.bytes = must_alloc(row.len);
	record_head_emit(&row.head, row.bytes);
	aad_len = record_aad(&row.head, key, aad);
	r = envelope_seal(k->rows, row.head.nonce, span_of(aad, aad_len), plain,
			  row.bytes + RECORD_HEAD_SIZE);
	if (r) {
		row_fini(&row);
		return r;
	}
	*ret = row;
	return 0;
}

void row_fini(struct row *row)
{
	free(row->bytes); /* sealed: nothing to wipe */
	*row = (struct row){ 0 };
}

int row_open(struct keyring *k, struct span key, struct span bytes,
	     struct secret **ret)
{
	char aad[RECORD_AAD_MAX];
	struct record_head head;
	struct secret *plain;
	struct span sealed;
	int r;

	if (!record_parse(bytes, &head, &sealed) || head.dek != k->dek_id)
		return ROW_E_CORRUPT;
	r = secret_new(sealed.len - RECORD_TAG_SIZE, &plain);
	if (r)
		return r;
	r = envelope_open(k->rows, head.nonce,
			  span_of(aad, record_aad(&head, key, aad)), sealed,
			  secret_fill(plain));
	if (r) {
		secret_free(plain);
		return r == ENVELOPE_E_FORGED ? ROW_E_CORRUPT : r;
	}
	*ret = plain;
	return 0;
}
