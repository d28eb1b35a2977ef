/* SPDX-License-Identifier: Apache-2.0 */
/* sha256.c - SHA-256 over one piece of memory */

#include "src/base/sha256.h"

#include "src/base/secret.h"
#include "src/base/sha_blocks.h"

enum { ROUNDS = 64, WORDS = 8 };

/* FIPS 180-4, 4.2.2: of the cube roots of the first 64 primes. */
static const uint32_t constants[ROUNDS] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
	0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
	0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
	0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
	0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
	0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
	0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t v, unsigned bits)
{
	return v >> bits | v << (32 - bits);
}

static uint32_t word_at(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	       (uint32_t)p[2] << 8 | p[3];
}

/* The message schedule: 16 words of the block, 48 made of those before. */
static void schedule(uint32_t w[ROUNDS], const uint8_t *block)
{
	uint32_t far, near;
	unsigned i;

	for (i = 0; i < 16; i++)
		w[i] = word_at(block + (size_t)4 * i);
	for (; i < ROUNDS; i++) {
		far = w[i - 15];
		near = w[i - 2];
		w[i] = w[i - 16] + w[i - 7] +
		       (rotate(far, 7) ^ rotate(far, 18) ^ far >> 3) +
		       (rotate(near, 17) ^ rotate(near, 19) ^ near >> 10);
	}
}

static void block_take(uint32_t h[WORDS], const uint8_t *block)
{
	uint32_t w[ROUNDS], v[WORDS], sum, choice, majority;
	unsigned i;

	schedule(w, block);
	memcpy(v, h, sizeof(v));
	for (i = 0; i < ROUNDS; i++) {
		choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
		majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
		sum = v[7] + choice + constants[i] + w[i] +
		      (rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25));
		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += sum; /* what was v[3] */
		v[0] = sum + majority +
		       (rotate(v[1], 2) ^ rotate(v[1], 13) ^ rotate(v[1], 22));
	}
	for (i = 0; i < WORDS; i++)
		h[i] += v[i];
	secret_wipe(w, sizeof(w)); /* the block itself */
}

void sha256(struct span bytes, uint8_t dst[SHA256_SIZE])
{
	uint32_t h[WORDS] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
			      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	sha_blocks(bytes, h, block_take, dst, SHA256_SIZE);
}
