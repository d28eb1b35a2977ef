/* SPDX-License-Identifier: Apache-2.0 */
/* row.h - a row sealed by the keyring, and opened again */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"
#include "vault/record.h"

struct keyring;
struct secret;

enum { ROW_E_CORRUPT = 1 };

struct row {
	struct record_head head;
	char *bytes; /* head, ciphertext, tag */
	size_t len;
};

/* With a fresh nonce. 0 or -errno; then row_fini(). */
WUNRES int row_seal(struct keyring *k, const struct record_head *like,
		    struct span key, struct span plain, struct row *ret);
void row_fini(struct row *row);

/* 0 and a secret the caller frees; ROW_E_CORRUPT: no row of this key under
 * this keyring; -errno. */
WUNRES int row_open(struct keyring *k, struct span key, struct span bytes,
		    struct secret **ret);

static inline struct span row_span(const struct row *row)
{
	return span_of(row->bytes, row->len);
}
