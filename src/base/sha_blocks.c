/* SPDX-License-Identifier: Apache-2.0 */
/* sha_blocks.c - a message in blocks of 64 bytes, the last ones padded */

#include "src/base/sha_blocks.h"

#include <string.h>

#include "src/base/secret.h"

enum { LENGTH_BYTES = 8 };

void sha_blocks(struct span bytes, uint32_t *h, sha_block_fn *take,
		uint8_t *dst, size_t size)
{
	const uint64_t bits = (uint64_t)bytes.len * 8;
	uint8_t tail[2 * SHA_BLOCK_BYTES] = { 0 };
	size_t tail_len, i;

	for (; bytes.len >= SHA_BLOCK_BYTES;
	     bytes = span_from(bytes, SHA_BLOCK_BYTES))
		take(h, (const uint8_t *)bytes.ptr);

	/* what is left, a one bit, zeros, and the length in bits */
	if (bytes.len)
		memcpy(tail, bytes.ptr, bytes.len);
	tail[bytes.len] = 0x80;
	tail_len = bytes.len + 1 + LENGTH_BYTES <= SHA_BLOCK_BYTES
			   ? SHA_BLOCK_BYTES
			   : 2 * SHA_BLOCK_BYTES;
	for (i = 0; i < LENGTH_BYTES; i++)
		tail[tail_len - 1 - i] = (uint8_t)(bits >> 8 * i);
	for (i = 0; i < tail_len; i += SHA_BLOCK_BYTES)
		take(h, tail + i);
	secret_wipe(tail, sizeof(tail));

	for (i = 0; i < size; i++)
		dst[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}
