/* SPDX-License-Identifier: Apache-2.0 */
/* der.c - reading and writing elements of DER (X.690): tag, length, value */

#include "src/execd/init/der.h"

#include "src/base/buf.h"

bool der_next(struct span *in, struct der *ret)
{
	const uint8_t *p = (const uint8_t *)in->ptr;
	size_t head = 2, len, count, i;

	if (in->len < 2 || (p[0] & 0x1f) == 0x1f)
		return false;
	len = p[1];
	if (len & 0x80) {
		count = len & 0x7f;
		if (!count || count > 4 || in->len < 2 + count)
			return false;
		for (len = 0, i = 0; i < count; i++)
			len = len << 8 | p[2 + i];
		if (len < 0x80 || len >> (8 * (count - 1)) == 0)
			return false;
		head += count;
	}
	if (len > in->len - head)
		return false;
	ret->tag = p[0];
	ret->value = span_of(in->ptr + head, len);
	ret->whole = span_of(in->ptr, head + len);
	*in = span_from(*in, head + len);
	return true;
}

bool der_take(struct span *in, uint8_t tag, struct span *value)
{
	struct span rest = *in;
	struct der d;

	if (!der_next(&rest, &d) || d.tag != tag)
		return false;
	*value = d.value;
	*in = rest;
	return true;
}

int der_put(struct buf *to, uint8_t tag, struct span value)
{
	uint8_t head[6] = { tag };
	size_t count = 0, at = 2;
	int r;

	if (value.len < 0x80) {
		head[1] = (uint8_t)value.len;
	} else {
		while (value.len >> (8 * count))
			count++;
		head[1] = (uint8_t)(0x80 | count);
		while (count)
			head[at++] = (uint8_t)(value.len >> (8 * --count));
	}
	r = buf_put(to, span_of(head, at));
	return r ? r : buf_put(to, value);
}
