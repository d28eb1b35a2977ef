/* SPDX-License-Identifier: Apache-2.0 */
/* hello.c - read a ClientHello strictly, from records to names
 *
 * How it works: hello_parse() is called again with more bytes until the
 * message is whole, and keeps nothing between calls. It first walks the record
 * headers, which costs little, and finds how long the message is and where it
 * ends; only then is the message itself read: in place when one record holds
 * it, else joined. Nothing may follow it in its last record.
 *
 * Every length must come out exactly: a vector that is shorter or longer than
 * its prefix says, a second extension of a kind we read, a server name list
 * with anything but one host name: all of them are refused, because a TLS
 * stack further on might read them in another way than we decided by.
 *
 * The number of records is bounded, so that a client that sends them one byte
 * at a time, in segments of one byte, cannot make the walk expensive.
 */

#include "src/wire/hello.h"

#include <errno.h>

enum {
	RECORD_HEAD = 5,
	RECORD_HANDSHAKE = 22,
	RECORD_MAX = 1 << 14,
	RECORDS_MAX = 2048,
	MESSAGE_HEAD = 4,
	MESSAGE_CLIENT_HELLO = 1,
	RANDOM_BYTES = 32,
	SESSION_ID_MAX = 32,
	TLS10 = 0x0301,
	TLS12 = 0x0303,
	TLS13 = 0x0304,
};

/* Cuts len bytes off *in. */
static bool take_bytes(struct span *in, size_t len, struct span *ret)
{
	if (in->len < len)
		return false;
	*ret = span_of(in->ptr, len);
	*in = span_from(*in, len);
	return true;
}

/* A number of 1 to 3 bytes, in network order. */
static bool take_number(struct span *in, size_t width, unsigned *ret)
{
	struct span bytes;
	unsigned value = 0;
	size_t i;

	if (!take_bytes(in, width, &bytes))
		return false;
	for (i = 0; i < width; i++)
		value = value << 8 | (unsigned char)bytes.ptr[i];
	*ret = value;
	return true;
}

/* A vector whose length is a number of `width` bytes. */
static bool take_vector(struct span *in, size_t width, struct span *ret)
{
	unsigned len;

	return take_number(in, width, &len) && take_bytes(in, len, ret);
}

/* RFC 6066 3: exactly one entry, of type host_name. */
static bool on_server_name(struct span body, struct hello *h)
{
	struct span list, name;
	struct addr address;
	unsigned type;

	if (!take_vector(&body, 2, &list) || body.len ||
	    !take_number(&list, 1, &type) || type != 0 ||
	    !take_vector(&list, 2, &name) || list.len)
		return false;
	h->has_sni = host_canon(name, &h->sni);
	h->sni_is_address = !h->has_sni && addr_parse(name, &address);
	return h->has_sni || h->sni_is_address;
}

static bool on_alpn(struct span body, struct hello *h)
{
	struct span list, name;

	if (!take_vector(&body, 2, &list) || body.len || !list.len)
		return false;
	while (list.len) {
		if (!take_vector(&list, 1, &name) || !name.len)
			return false;
		h->offers_h2 |= span_eq(name, SPAN("h2"));
		h->offers_h1 |= span_eq(name, SPAN("http/1.1"));
	}
	h->has_alpn = true;
	return true;
}

/* The list replaces the version in the message. Unknown ones (GREASE) do not
 * count. */
static bool on_supported_versions(struct span body, struct hello *h)
{
	struct span list;
	unsigned version, max = 0;

	if (!take_vector(&body, 1, &list) || body.len || !list.len)
		return false;
	while (list.len) {
		if (!take_number(&list, 2, &version))
			return false;
		if (version >= TLS10 && version <= TLS13 && version > max)
			max = version;
	}
	h->max_version = (uint16_t)max;
	return true;
}

/* An empty ticket asks for one. */
static bool on_session_ticket(struct span body, struct hello *h)
{
	h->is_resumption |= body.len > 0;
	return true;
}

static bool on_pre_shared_key(struct span body, struct hello *h)
{
	h->is_resumption = true;
	return body.len > 0;
}

static bool on_ech(struct span body, struct hello *h)
{
	h->has_ech = true;
	return body.len > 0;
}

enum { EXTENSION_PRE_SHARED_KEY = 41 };

static const struct extension {
	uint16_t type;
	bool (*on_body)(struct span body, struct hello *h);
} extensions[] = {
	{ 0, on_server_name },
	{ 16, on_alpn },
	{ 35, on_session_ticket },
	{ EXTENSION_PRE_SHARED_KEY, on_pre_shared_key },
	{ 43, on_supported_versions },
	{ 0xfe0d, on_ech },
};

static bool parse_extension(unsigned type, struct span body, unsigned *seen,
			    struct hello *h)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(extensions); i++) {
		if (extensions[i].type != type)
			continue;
		if (*seen & 1u << i)
			return false;
		*seen |= 1u << i;
		return extensions[i].on_body(body, h);
	}
	return true;
}

static bool parse_extensions(struct span list, struct hello *h)
{
	unsigned type, seen = 0;
	struct span body;

	while (list.len) {
		if (!take_number(&list, 2, &type) ||
		    !take_vector(&list, 2, &body) ||
		    !parse_extension(type, body, &seen, h))
			return false;
		/* RFC 8446 4.2.11: nothing may follow it */
		if (type == EXTENSION_PRE_SHARED_KEY && list.len)
			return false;
	}
	return true;
}

/* The body of the message, RFC 8446 4.1.2. */
static bool parse_body(struct span in, struct hello *h)
{
	struct span random, session, suites, compression, list;
	unsigned version;

	if (!take_number(&in, 2, &version) || version >> 8 != 3 ||
	    !take_bytes(&in, RANDOM_BYTES, &random) ||
	    !take_vector(&in, 1, &session) || session.len > SESSION_ID_MAX ||
	    !take_vector(&in, 2, &suites) || !suites.len || suites.len % 2 ||
	    !take_vector(&in, 1, &compression) || !compression.len)
		return false;
	h->max_version = (uint16_t)MIN(version, (unsigned)TLS12);
	if (!in.len)
		return true; /* before TLS 1.2 there may be none */
	return take_vector(&in, 2, &list) && !in.len &&
	       parse_extensions(list, h);
}

/* Where the message lies in the input, found by walking record headers. */
struct layout {
	size_t message;	 /* bytes of the message, its head included; 0: not
			    known yet */
	size_t gathered; /* bytes of it seen so far */
	size_t end;	 /* of the last whole record */
	unsigned records;
	unsigned char head[MESSAGE_HEAD];
};

/* Notes the fragment of one record, or the part of it that is there. */
static int layout_add(struct layout *l, struct span part)
{
	size_t i;

	for (i = 0; i < part.len && l->gathered + i < MESSAGE_HEAD; i++)
		l->head[l->gathered + i] = (unsigned char)part.ptr[i];
	l->gathered += part.len;
	if (l->gathered && l->head[0] != MESSAGE_CLIENT_HELLO)
		return -EPROTO;
	if (l->gathered < MESSAGE_HEAD)
		return 0;
	l->message = MESSAGE_HEAD + ((size_t)l->head[1] << 16 |
				     (size_t)l->head[2] << 8 | l->head[3]);
	if (l->message > HELLO_MAX - RECORD_HEAD)
		return -E2BIG;
	return l->gathered > l->message ? -EPROTO : 0;
}

/* One record off *in. 1: it was whole; 0: need more; < 0 refused. */
static int layout_record(struct layout *l, struct span *in)
{
	struct span part;
	unsigned type, version = 0x0300, len;
	int r;

	if (!take_number(in, 1, &type))
		return 0;
	if (type != RECORD_HANDSHAKE || ++l->records > RECORDS_MAX)
		return type != RECORD_HANDSHAKE ? -EPROTO : -E2BIG;
	if (in->len && in->ptr[0] != 3)
		return -EPROTO;
	if (!take_number(in, 2, &version) || !take_number(in, 2, &len))
		return 0;
	if (!len || len > RECORD_MAX)
		return -EPROTO;
	part = span_of(in->ptr, MIN(in->len, (size_t)len));
	r = layout_add(l, part);
	if (r)
		return r;
	*in = span_from(*in, part.len);
	l->end += RECORD_HEAD + len;
	return part.len == len;
}

/* 1: the message is whole; 0: need more; < 0 refused. */
static int layout_find(struct span bytes, struct layout *ret)
{
	struct span in = span_of(bytes.ptr, MIN(bytes.len, (size_t)HELLO_MAX));
	int r;

	*ret = (struct layout){ 0 };
	do {
		r = layout_record(ret, &in);
		if (r < 0)
			return r;
		if (r && ret->message && ret->gathered == ret->message)
			return 1;
	} while (r);
	return bytes.len >= HELLO_MAX ? -E2BIG : 0;
}

/* The message in one piece: a view when one record holds it. */
static int message_join(struct span in, const struct layout *l,
			struct buf *joined, struct span *ret)
{
	struct span part;
	size_t len, left;

	if (l->records == 1) {
		*ret = span_from(in, RECORD_HEAD);
		return 0;
	}
	for (left = l->message; left; left -= len) {
		len = (size_t)(unsigned char)in.ptr[3] << 8 |
		      (unsigned char)in.ptr[4];
		part = span_of(in.ptr + RECORD_HEAD, len);
		if (buf_put(joined, part))
			return -E2BIG;
		in = span_from(in, RECORD_HEAD + len);
	}
	*ret = buf_peek(joined);
	return 0;
}

int hello_parse(struct span bytes, struct buf *joined, struct hello *ret)
{
	struct hello h = { 0 };
	struct layout layout;
	struct span message;
	int r;

	buf_clear(joined);
	r = layout_find(bytes, &layout);
	if (r <= 0)
		return r;
	r = message_join(span_of(bytes.ptr, layout.end), &layout, joined,
			 &message);
	if (r)
		return r;
	if (!parse_body(span_from(message, MESSAGE_HEAD), &h))
		return -EPROTO;
	*ret = h;
	return (int)layout.end;
}
