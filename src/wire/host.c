/* SPDX-License-Identifier: Apache-2.0 */
/* host.c - canonical host names, and authorities as HTTP writes them
 *
 * How it works: one table gives every byte its canonical form, or zero when
 * the byte may not stand in a name. The walk counts labels as it copies; only
 * a name that passed as a whole reaches the caller. What looks like a number
 * at the end ("1.2.3.4.", "127.1", "0x7f.1") is no name: inet_aton() and
 * browsers read it as an address, and then two parties would disagree about
 * who is meant.
 */

#include "src/wire/host.h"

enum { LABEL_MAX = 63, PORT_DIGITS_MAX = 5 };

/* The canonical form of each byte that a label may hold. */
static const char label_bytes[256] = {
	['-'] = '-', ['_'] = '_', ['0'] = '0', ['1'] = '1', ['2'] = '2',
	['3'] = '3', ['4'] = '4', ['5'] = '5', ['6'] = '6', ['7'] = '7',
	['8'] = '8', ['9'] = '9', ['a'] = 'a', ['b'] = 'b', ['c'] = 'c',
	['d'] = 'd', ['e'] = 'e', ['f'] = 'f', ['g'] = 'g', ['h'] = 'h',
	['i'] = 'i', ['j'] = 'j', ['k'] = 'k', ['l'] = 'l', ['m'] = 'm',
	['n'] = 'n', ['o'] = 'o', ['p'] = 'p', ['q'] = 'q', ['r'] = 'r',
	['s'] = 's', ['t'] = 't', ['u'] = 'u', ['v'] = 'v', ['w'] = 'w',
	['x'] = 'x', ['y'] = 'y', ['z'] = 'z', ['A'] = 'a', ['B'] = 'b',
	['C'] = 'c', ['D'] = 'd', ['E'] = 'e', ['F'] = 'f', ['G'] = 'g',
	['H'] = 'h', ['I'] = 'i', ['J'] = 'j', ['K'] = 'k', ['L'] = 'l',
	['M'] = 'm', ['N'] = 'n', ['O'] = 'o', ['P'] = 'p', ['Q'] = 'q',
	['R'] = 'r', ['S'] = 's', ['T'] = 't', ['U'] = 'u', ['V'] = 'v',
	['W'] = 'w', ['X'] = 'x', ['Y'] = 'y', ['Z'] = 'z',
};

static bool all_of(struct span s, const char *set)
{
	size_t i;

	for (i = 0; i < s.len; i++)
		if (!s.ptr[i] || !strchr(set, s.ptr[i]))
			return false;
	return true;
}

/* Would some resolver take a name that ends in this label for an address? */
static bool label_is_number(struct span label)
{
	if (span_starts(label, SPAN("0x")))
		return all_of(span_from(label, 2), "0123456789abcdef");
	return all_of(label, "0123456789");
}

/* RFC 5890 LDH: 1..63 bytes, no hyphen at either end. */
static bool label_is_valid(struct span label)
{
	return label.len >= 1 && label.len <= LABEL_MAX &&
	       label.ptr[0] != '-' && label.ptr[label.len - 1] != '-';
}

bool host_canon(struct span text, struct host *ret)
{
	struct span label;
	char name[HOST_MAX + 1];
	size_t i, start = 0;

	if (text.len && text.ptr[text.len - 1] == '.')
		text.len--;
	if (!text.len || text.len > HOST_MAX)
		return false;

	for (i = 0; i < text.len; i++) {
		if (text.ptr[i] == '.') {
			name[i] = '.';
			label = span_of(name + start, i - start);
			if (!label_is_valid(label))
				return false;
			start = i + 1;
			continue;
		}
		name[i] = label_bytes[(unsigned char)text.ptr[i]];
		if (!name[i])
			return false;
	}
	label = span_of(name + start, text.len - start);
	if (!label_is_valid(label) || label_is_number(label))
		return false;

	memcpy(ret->text, name, text.len);
	ret->text[text.len] = '\0';
	ret->len = (uint8_t)text.len;
	return true;
}

/* 1..65535 in plain digits. "", "0", "0443" and "+443" are refused: RFC 3986
 * would let an empty port and leading zeros pass, and parsers differ. */
static bool port_parse(struct span text, uint16_t *ret)
{
	uint64_t port;

	if (text.len > PORT_DIGITS_MAX || !span_parse_u64(text, &port) ||
	    text.ptr[0] == '0' || port > UINT16_MAX)
		return false;
	*ret = (uint16_t)port;
	return true;
}

/* Cuts ":port" off an authority: *ret_host is what stands before it, brackets
 * included; *ret_port is SPAN_NONE when there was no colon. */
static bool authority_split(struct span text, struct span *ret_host,
			    struct span *ret_port)
{
	size_t end = span_find(text, ':');

	if (text.len && text.ptr[0] == '[') {
		end = span_find(text, ']') + 1;
		if (end > text.len || (end < text.len && text.ptr[end] != ':'))
			return false;
	}
	*ret_host = span_of(text.ptr, end);
	*ret_port = end < text.len ? span_from(text, end + 1) : SPAN_NONE;
	return true;
}

bool authority_parse(struct span text, uint16_t default_port,
		     struct authority *ret)
{
	struct authority a = { .port = default_port };
	struct span host, port;

	if (!authority_split(text, &host, &port))
		return false;
	if (port.ptr) {
		if (!port_parse(port, &a.port))
			return false;
		a.port_given = true;
	}
	a.is_address = addr_parse(host, &a.address);
	if (a.is_address)
		a.address.port = a.port;
	else if (!host_canon(host, &a.host))
		return false;
	*ret = a;
	return true;
}

bool host_is_below(struct span name, struct span suffix)
{
	return suffix.len && name.len > suffix.len + 1 &&
	       span_ends(name, suffix) &&
	       name.ptr[name.len - suffix.len - 1] == '.';
}
