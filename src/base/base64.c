/* SPDX-License-Identifier: Apache-2.0 */
/* base64.c - base64 of spans */

#include "src/base/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			       "abcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(struct span bytes, char *dst)
{
	const uint8_t *p = (const uint8_t *)bytes.ptr;
	uint32_t v;
	size_t n;

	for (; bytes.len; bytes.len -= n, p += n, dst += 4) {
		n = MIN(bytes.len, (size_t)3);
		v = (uint32_t)p[0] << 16;
		v |= n > 1 ? (uint32_t)p[1] << 8 : 0;
		v |= n > 2 ? p[2] : 0;
		dst[0] = alphabet[v >> 18];
		dst[1] = alphabet[v >> 12 & 63];
		dst[2] = alphabet[v >> 6 & 63];
		dst[3] = alphabet[v & 63];
		if (n < 3)
			dst[3] = '=';
		if (n < 2)
			dst[2] = '=';
	}
}

/* 0..63, or -1. */
static int base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

/* Four characters of which the last `pad` are padding; -1: they are not. */
static int base64_group(const char *p, unsigned pad)
{
	unsigned i;
	int v = 0, one;

	for (i = 0; i < 4; i++) {
		one = i < 4 - pad ? base64_value(p[i]) : 0;
		if (one < 0)
			return -1;
		v = v << 6 | one;
	}
	return v & ((1 << 8 * pad) - 1) ? -1 : v;
}

bool base64_decode(struct span text, uint8_t *dst, size_t size, size_t *ret_len)
{
	size_t len = 0, i;
	unsigned pad = 0, n;
	int v;

	if (text.len % 4)
		return false;
	for (i = 0; i < text.len; i += 4) {
		if (i + 4 == text.len && text.ptr[i + 3] == '=')
			pad = text.ptr[i + 2] == '=' ? 2 : 1;
		v = base64_group(text.ptr + i, pad);
		if (v < 0)
			return false;
		for (n = 0; n < 3 - pad; n++) {
			if (len == size)
				return false;
			dst[len++] = (uint8_t)(v >> (16 - 8 * n));
		}
	}
	*ret_len = len;
	return true;
}
