/* SPDX-License-Identifier: Apache-2.0 */
/* dns_name.c - DNS names: from the wire, to and from host names, for people
 *
 * How it works: a name on the wire is a run of labels that ends in the root or
 * in a pointer to an earlier run. A pointer must lie strictly before the first
 * byte of the run it was met in and behind the message's header, so each jump
 * goes backwards and no loop is possible; NAME_JUMPS_MAX keeps even a staircase
 * of pointers short.
 */

#include "src/wire/dns_name.h"

#include <stdio.h>

#include "src/base/err.h"

enum {
	LABEL_MAX = 63,
	NAME_JUMPS_MAX = 64,
	POINTER_BITS = 0xc0,
};

bool dns_name_from_host(struct span host, struct dns_name *ret)
{
	struct dns_name name = { 0 };
	struct span label;

	if (!host.len || host.len > HOST_MAX)
		return false;
	if (host.ptr[host.len - 1] == '.')
		return false; /* not canonical */

	while (host.len) {
		label = span_cut(&host, '.');
		if (!label.len || label.len > LABEL_MAX)
			return false;
		name.wire[name.len++] = (uint8_t)label.len;
		memcpy(name.wire + name.len, label.ptr, label.len);
		name.len = (uint8_t)(name.len + label.len);
	}
	name.wire[name.len++] = 0;
	*ret = name;
	return true;
}

bool dns_name_to_host(const struct dns_name *name, struct host *ret)
{
	char text[DNS_NAME_MAX];
	size_t at = 0, len = 0;
	unsigned label;

	while ((label = name->wire[at++])) {
		/* a dot inside a label must not become a label's end */
		if (memchr(name->wire + at, '.', label))
			return false;
		if (len)
			text[len++] = '.';
		memcpy(text + len, name->wire + at, label);
		len += label;
		at += label;
	}
	return host_canon(span_of(text, len), ret);
}

bool dns_name_eq(const struct dns_name *a, const struct dns_name *b)
{
	/* length bytes are below 'A': folding case leaves them alone */
	return span_eq_nocase(span_of(a->wire, a->len),
			      span_of(b->wire, b->len));
}

/* One byte of a label as text; returns its length, at most 4. */
static size_t label_byte_text(uint8_t c, char dst[5])
{
	bool plain = c > ' ' && c < 0x7f && c != '.' && c != '\\';

	return (size_t)snprintf(dst, 5, plain ? "%c" : "\\%03u", c);
}

const char *dns_name_text(const struct dns_name *name, char *dst, size_t size)
{
	size_t at = 0, len = 0, piece_len;
	unsigned label;
	char piece[5];

	must(size >= 8);
	while ((label = name->wire[at++])) {
		for (; label; label--, at++) {
			piece_len = label_byte_text(name->wire[at], piece);
			if (len + piece_len + 5 > size) {
				memcpy(dst + len, "...", 4);
				return dst;
			}
			memcpy(dst + len, piece, piece_len);
			len += piece_len;
		}
		if (name->wire[at])
			dst[len++] = '.';
	}
	if (!len)
		dst[len++] = '.';
	dst[len] = '\0';
	return dst;
}

/* Appends the label at `at` to name; false when it does not fit anywhere. */
static bool name_take_label(struct span message, size_t at,
			    struct dns_name *name)
{
	unsigned len = (uint8_t)message.ptr[at];

	if (len > LABEL_MAX || at + 1 + len > message.len)
		return false;
	/* room for the root label must stay */
	if (name->len + 1 + len + 1 > DNS_NAME_MAX)
		return false;
	memcpy(name->wire + name->len, message.ptr + at, 1 + len);
	name->len = (uint8_t)(name->len + 1 + len);
	return true;
}

bool dns_name_read(struct span message, size_t *at, struct dns_name *ret)
{
	size_t here = *at, run = here, after = 0, target;
	struct dns_name name = { 0 };
	unsigned jumps = 0;
	uint8_t first;

	for (;;) {
		if (here >= message.len)
			return false;
		first = (uint8_t)message.ptr[here];
		if (!first)
			break;
		if ((first & POINTER_BITS) != POINTER_BITS) {
			if (!name_take_label(message, here, &name))
				return false;
			here += 1u + first;
			continue;
		}
		if (here + 2 > message.len || ++jumps > NAME_JUMPS_MAX)
			return false;
		target = (size_t)(first & 0x3f) << 8 |
			 (uint8_t)message.ptr[here + 1];
		if (target >= run || target < DNS_HEAD_SIZE)
			return false;
		if (!after)
			after = here + 2;
		here = run = target;
	}

	name.wire[name.len++] = 0;
	*at = after ? after : here + 1;
	*ret = name;
	return true;
}
