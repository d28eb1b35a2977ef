/* SPDX-License-Identifier: Apache-2.0 */
/* socks5.c - SOCKS version 5 greetings, requests and replies (RFC 1928)
 *
 *	greeting	VER NMETHODS METHODS...
 *	request		VER CMD RSV ATYP DST.ADDR DST.PORT
 *	reply		VER REP RSV ATYP BND.ADDR BND.PORT
 *
 * An address is 4 or 16 bytes, or a length and that many bytes of a name.
 */

#include "src/wire/socks5.h"

#include "src/base/err.h"

enum {
	HEAD_BYTES = 4, /* of a request, up to ATYP */
	PORT_BYTES = 2,
	COMMAND_CONNECT = 1,
	TYPE_V4 = 1,
	TYPE_NAME = 3,
	TYPE_V6 = 4,
	V4_BYTES = 4,
	V6_BYTES = 16,
};

static uint8_t byte_at(struct span bytes, size_t at)
{
	return (uint8_t)bytes.ptr[at];
}

int socks5_parse_greeting(struct span bytes, enum socks5_method *ret)
{
	size_t len, i;

	if (bytes.len && byte_at(bytes, 0) != SOCKS5_VERSION)
		return -1;
	if (bytes.len < 2)
		return 0;
	len = 2 + (size_t)byte_at(bytes, 1);
	if (bytes.len < len)
		return 0;
	*ret = SOCKS5_NO_METHOD;
	for (i = 2; i < len; i++)
		if (byte_at(bytes, i) == SOCKS5_NO_AUTH)
			*ret = SOCKS5_NO_AUTH;
	return (int)len;
}

/* Where DST.ADDR lies in a request whose head is there: its span may end
 * behind bytes. 0, or -(enum socks5_reply). */
static int address_find(struct span bytes, struct span *ret)
{
	switch (byte_at(bytes, 3)) {
	case TYPE_V4:
		*ret = span_of(bytes.ptr + HEAD_BYTES, V4_BYTES);
		return 0;
	case TYPE_V6:
		*ret = span_of(bytes.ptr + HEAD_BYTES, V6_BYTES);
		return 0;
	case TYPE_NAME:
		*ret = span_of(bytes.ptr + HEAD_BYTES + 1,
			       byte_at(bytes, HEAD_BYTES));
		return 0;
	default:
		return -SOCKS5_ADDRESS;
	}
}

static void address_of(struct span raw, struct addr *ret)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	*ret = (struct addr){ 0 };
	if (raw.len == V4_BYTES)
		memcpy(ret->ip, mapped, sizeof(mapped));
	memcpy(ret->ip + sizeof(ret->ip) - raw.len, raw.ptr, raw.len);
}

static bool destination_parse(uint8_t type, struct span raw, uint16_t port,
			      struct authority *ret)
{
	struct authority a = { .port = port, .port_given = true };

	if (type == TYPE_NAME) {
		a.is_address = addr_parse(raw, &a.address);
		if (!a.is_address && !host_canon(raw, &a.host))
			return false;
	} else {
		a.is_address = true;
		address_of(raw, &a.address);
	}
	if (a.is_address)
		a.address.port = port;
	*ret = a;
	return port != 0;
}

int socks5_parse_request(struct span bytes, struct authority *ret)
{
	struct authority a;
	struct span raw;
	size_t end;
	int r;

	if (bytes.len && byte_at(bytes, 0) != SOCKS5_VERSION)
		return -SOCKS5_FAILURE;
	if (bytes.len < HEAD_BYTES + 1)
		return 0;
	if (byte_at(bytes, 1) != COMMAND_CONNECT)
		return -SOCKS5_COMMAND;
	if (byte_at(bytes, 2) != 0)
		return -SOCKS5_FAILURE;
	r = address_find(bytes, &raw);
	if (r)
		return r;
	end = (size_t)(raw.ptr - bytes.ptr) + raw.len;
	if (bytes.len < end + PORT_BYTES)
		return 0;
	if (!destination_parse(byte_at(bytes, 3), raw,
			       (uint16_t)(byte_at(bytes, end) << 8 |
					  byte_at(bytes, end + 1)),
			       &a))
		return -SOCKS5_FAILURE;
	*ret = a;
	return (int)(end + PORT_BYTES);
}

void socks5_emit_reply(enum socks5_reply reply, char dst[SOCKS5_REPLY_SIZE])
{
	memset(dst, 0, SOCKS5_REPLY_SIZE);
	dst[0] = SOCKS5_VERSION;
	dst[1] = (char)reply;
	dst[3] = TYPE_V4;
}
