/* SPDX-License-Identifier: Apache-2.0 */
/* sha_blocks.h - what SHA-1 and SHA-256 share: blocks, padding, the digest
 * (FIPS 180-4, sections 5.1.1, 6.1.2 and 6.2.2)
 *
 * Nobody but the two includes this.
 */
#pragma once

#include <stdint.h>

#include "src/base/span.h"

enum { SHA_BLOCK_BYTES = 64 };

typedef void sha_block_fn(uint32_t *h, const uint8_t *block);

/* Takes the bytes and their padding into h by whole blocks, then writes the
 * first size bytes of h to dst; size is a multiple of 4. */
void sha_blocks(struct span bytes, uint32_t *h, sha_block_fn *take,
		uint8_t *dst, size_t size);
