/* SPDX-License-Identifier: Apache-2.0 */
/* sha256.h - SHA-256 (FIPS 180-4) of short texts, where there is no OpenSSL
 *
 * For the daemon inside a sandbox, which knows of its token nothing but this.
 * Roles that have OpenSSL use OpenSSL's (src/control/tokens.c).
 */
#pragma once

#include "src/base/span.h"

enum { SHA256_SIZE = 32 };

void sha256(struct span bytes, uint8_t dst[SHA256_SIZE]);
