/* SPDX-License-Identifier: Apache-2.0 */
/* sha1.c - SHA-1 over one piece of memory */

#include "src/base/sha1.h"

#include "src/base/sha_blocks.h"

enum { ROUNDS = 80, WORDS = 5 };

static uint32_t sha1_rotate(uint32_t v, unsigned bits)
{
	return v << bits | v >> (32 - bits);
}

/* The round's function of b, c, d, with its constant added. */
static uint32_t sha1_mix(unsigned round, uint32_t b, uint32_t c, uint32_t d)
{
	if (round < 20)
		return ((b & c) | (~b & d)) + 0x5a827999;
	if (round < 40)
		return (b ^ c ^ d) + 0x6ed9eba1;
	if (round < 60)
		return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
	return (b ^ c ^ d) + 0xca62c1d6;
}

static void sha1_block(uint32_t h[WORDS], const uint8_t *p)
{
	uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], next;
	uint32_t w[ROUNDS];
	unsigned i;

	for (i = 0; i < 16; i++, p += 4)
		w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
		       (uint32_t)p[2] << 8 | p[3];
	for (; i < ROUNDS; i++)
		w[i] = sha1_rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16],
				   1);

	for (i = 0; i < ROUNDS; i++) {
		next = sha1_rotate(a, 5) + sha1_mix(i, b, c, d) + e + w[i];
		e = d;
		d = c;
		c = sha1_rotate(b, 30);
		b = a;
		a = next;
	}
	h[0] += a;
	h[1] += b;
	h[2] += c;
	h[3] += d;
	h[4] += e;
}

void sha1(struct span bytes, uint8_t dst[SHA1_SIZE])
{
	uint32_t h[WORDS] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
			      0xc3d2e1f0 };

	sha_blocks(bytes, h, sha1_block, dst, SHA1_SIZE);
}
