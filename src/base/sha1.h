/* SPDX-License-Identifier: Apache-2.0 */
/* sha1.h - SHA-1 (FIPS 180-4) of short texts, for protocols that demand it
 *
 * WebSocket's handshake (RFC 6455 4.2.2) hashes a nonce with it to prove that
 * both sides speak the protocol. It protects nothing, here or anywhere: never
 * use it for a secret.
 */
#pragma once

#include "src/base/span.h"

enum { SHA1_SIZE = 20 };

void sha1(struct span bytes, uint8_t dst[SHA1_SIZE]);
