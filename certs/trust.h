/* SPDX-License-Identifier: Apache-2.0 */
/* trust.h - the roots that origins are verified against, and what sandboxes
 * are told to trust
 *
 * Reads files: call it before the role is confined.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;
struct diag;
struct trust;
struct x509_store_st; /* X509_STORE */

enum {
	TRUST_FILE_MAX = 4 * 1024 * 1024, /* bytes of one file */
	TRUST_CERTS_MAX = 4096,
};

/* The system's roots (when `system`) and every certificate of `files`. A file
 * that cannot be read, holds no certificate or holds a damaged one is an
 * error. 0, or -EINVAL with d (file set). */
WUNRES int trust_new(bool system, char *const *files, unsigned file_count,
		     struct trust **ret, struct diag *d);
/* NULL is fine; returns NULL. */
struct trust *trust_free(struct trust *t);

/* Borrowed. */
struct x509_store_st *trust_store(const struct trust *t);
unsigned trust_count(const struct trust *t);

/* Appends PEM text: our CA (ca_der, may be empty) first, then every root. */
WUNRES int trust_bundle(const struct trust *t, struct span ca_der,
			struct buf *dst);
/* The same without the system's: our CA, and those of the files. */
WUNRES int trust_bundle_own(const struct trust *t, struct span ca_der,
			    struct buf *dst);
