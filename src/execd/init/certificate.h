/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.h - certificates in texts: found, decoded, named; pure
 *
 * PEM as of RFC 7468, laxly: whatever stands between blocks is skipped, line
 * ends may be CR LF, lines of any length. Only CERTIFICATE blocks are seen;
 * a private key in the same file is never copied anywhere.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;

enum { CERTIFICATE_MAX = 64 * 1024 }; /* bytes of one, as DER */

/* Takes the next block off *text: its base64, line ends and all. False when
 * there is none; *text is then at its end. */
bool certificate_next(struct span *text, struct span *base64);
/* Appends the DER of a block. 0; -EINVAL: not base64, or not one whole DER
 * element of a certificate's shape (RFC 5280 4.1); -ENOBUFS. */
WUNRES int certificate_decode(struct span base64, struct buf *der);
/* Is it a certificate by its outer shape? */
bool certificate_is(struct span der);
/* Appends a block with lines of 64 characters. 0 or -ENOBUFS. */
WUNRES int certificate_put(struct buf *to, struct span der);
/* The number by which OpenSSL looks for an issuer in a folder: SHA-1 over the
 * subject in its canonical form (strings as UTF-8, in lower case, blanks
 * folded), the first four bytes with the lowest first. */
WUNRES int certificate_subject_hash(struct span der, uint32_t *ret);
