/* SPDX-License-Identifier: Apache-2.0 */
/* keystore.h - trust stores of Java, read and written; pure
 *
 * What is written is always JKS: a list of (alias, time, certificate) under a
 * SHA-1 keyed with the store's password, simple enough to need no Java and no
 * cryptography library. Java reads it wherever it expects its own cacerts,
 * whatever kind that one was: both of its loaders probe for both kinds. Read
 * are JKS, and PKCS #12 whose certificates are not encrypted (RFC 7292), as
 * the run times bring them since version 18.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;

#define KEYSTORE_PASSWORD "changeit" /* of every cacerts that is delivered */

enum {
	KEYSTORE_E_SAME = 1, /* it holds exactly these already */
	KEYSTORE_E_LOCKED,   /* encrypted, or under another password */
	KEYSTORE_E_FOREIGN,  /* none of the kinds that are read */
};

struct keystore_add {
	const struct span *certificates; /* DER */
	unsigned count;
	/* Of our entries: alias, alias-2, ...; what a store holds under a name
	 * that begins so is replaced. In lower case. */
	const char *alias;
	uint64_t when_ms; /* Unix time that the new entries bear */
};

/* Writes the store with the additions to `out`. 0; KEYSTORE_E_; -ENOBUFS. */
WUNRES int keystore_extend(struct span store, const struct keystore_add *add,
			   struct buf *out);
/* Writes a new store: every certificate of a PEM text, then the additions.
 * Blocks that are no certificates are left out. */
WUNRES int keystore_make(struct span pem, const struct keystore_add *add,
			 struct buf *out);
