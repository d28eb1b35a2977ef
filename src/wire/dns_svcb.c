/* SPDX-License-Identifier: Apache-2.0 */
/* dns_svcb.c - service bindings: the data of SVCB and HTTPS records */

#include "src/wire/dns_svcb.h"

#include "src/base/err.h"
#include "src/wire/dns_out.h"

enum { KEY_NONE = -1, ADDR4_SIZE = 4, ADDR6_SIZE = 16 };

/* Protocols that run on TCP (IANA, TLS ALPN protocol IDs). What is not in here
 * may be one of QUIC, or one of resolvers, and goes. */
static const struct span tcp_alpns[] = {
	SPAN_INIT("h2"),
	SPAN_INIT("http/1.1"),
	SPAN_INIT("http/1.0"),
};

static uint16_t get16(struct span s)
{
	return (uint16_t)((uint8_t)s.ptr[0] << 8 | (uint8_t)s.ptr[1]);
}

/* Keys in ascending order, without the key of the list itself. */
static bool mandatory_is_sound(struct span keys)
{
	int last = DNS_SVC_MANDATORY;

	if (!keys.len || keys.len % 2)
		return false;
	for (; keys.len; keys = span_from(keys, 2)) {
		if (get16(keys) <= last)
			return false;
		last = get16(keys);
	}
	return true;
}

static bool keys_have(struct span keys, uint16_t key)
{
	for (; keys.len; keys = span_from(keys, 2))
		if (get16(keys) == key)
			return true;
	return false;
}

/* The next protocol of a list that is sound. */
static struct span alpn_cut(struct span *alpn)
{
	struct span id = span_of(alpn->ptr + 1, (uint8_t)alpn->ptr[0]);

	*alpn = span_from(*alpn, 1 + id.len);
	return id;
}

static bool alpn_is_sound(struct span alpn)
{
	uint8_t len;

	if (!alpn.len)
		return false;
	for (; alpn.len; alpn = span_from(alpn, 1u + len)) {
		len = (uint8_t)alpn.ptr[0];
		if (!len || len >= alpn.len)
			return false;
	}
	return true;
}

static bool is_addresses(struct span value, size_t size)
{
	return value.len && value.len % size == 0;
}

/* Takes one parameter; false when its value is not what its key asks for. */
static bool svcb_take(struct dns_svcb *s, uint16_t key, struct span value)
{
	switch (key) {
	case DNS_SVC_MANDATORY:
		s->mandatory = value;
		return mandatory_is_sound(value);
	case DNS_SVC_ALPN:
		s->alpn = value;
		return alpn_is_sound(value);
	case DNS_SVC_NO_DEFAULT_ALPN:
		s->has_no_default_alpn = true;
		return !value.len;
	case DNS_SVC_PORT:
		if (value.len != 2)
			return false;
		s->has_port = true;
		s->port = get16(value);
		return true;
	case DNS_SVC_IPV4HINT:
		return is_addresses(value, ADDR4_SIZE);
	case DNS_SVC_IPV6HINT:
		return is_addresses(value, ADDR6_SIZE);
	default: /* ECH among them: opaque here, and gone anyway */
		return true;
	}
}

/* Reads the parameters, whose keys ascend; every mandatory one is there. */
static bool params_parse(struct span params, struct dns_svcb *s)
{
	size_t missing = 0, len;
	int last = KEY_NONE;
	uint16_t key;

	while (params.len) {
		if (params.len < 4)
			return false;
		key = get16(params);
		len = get16(span_from(params, 2));
		if (key <= last || len > params.len - 4 ||
		    !svcb_take(s, key, span_of(params.ptr + 4, len)))
			return false;
		if (key == DNS_SVC_MANDATORY) /* always the first */
			missing = len / 2;
		missing -= keys_have(s->mandatory, key);
		last = key;
		params = span_from(params, 4 + len);
	}
	return !missing && (!s->has_no_default_alpn || s->alpn.len);
}

bool dns_svcb_parse(struct span data, struct dns_svcb *ret)
{
	struct dns_svcb s = { 0 };
	struct span rest;
	size_t at = 0;

	if (data.len < 3)
		return false;
	s.priority = get16(data);
	rest = span_from(data, 2);
	/* a pointer leads nowhere here, and shows in the length */
	if (!dns_name_read(rest, &at, &s.target) || at != s.target.len)
		return false;
	rest = span_from(rest, at);
	if (!params_parse(rest, &s))
		return false;
	if (!s.priority) /* RFC 9460 2.4.2: parameters are to be ignored */
		s = (struct dns_svcb){ .target = s.target };
	*ret = s;
	return true;
}

static bool is_tcp(struct span alpn)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(tcp_alpns); i++)
		if (span_eq(alpn, tcp_alpns[i]))
			return true;
	return false;
}

/* Of the protocols those that run on TCP, in their order. */
static void out_alpn(struct out *o, struct span alpn)
{
	size_t head = o->len;
	struct span id;

	if (!alpn.len)
		return;
	out_16(o, DNS_SVC_ALPN);
	out_16(o, 0);
	while (alpn.len) {
		id = alpn_cut(&alpn);
		if (!is_tcp(id))
			continue;
		out_8(o, (unsigned)id.len);
		out_bytes(o, id.ptr, id.len);
	}
	if (o->overflow)
		return;
	if (o->len == head + 4)
		o->len = head; /* none */
	else
		out_16_at(o, head + 2, (unsigned)(o->len - head - 4));
}

/* Does it demand a parameter that is not among those written? */
static bool demands_more(const struct dns_svcb *s, bool has_alpn)
{
	struct span keys = s->mandatory;

	for (; keys.len; keys = span_from(keys, 2)) {
		switch (get16(keys)) {
		case DNS_SVC_ALPN:
			if (!has_alpn)
				return true;
			break;
		case DNS_SVC_NO_DEFAULT_ALPN:
		case DNS_SVC_PORT:
			break; /* there, or it would not have parsed */
		default:
			return true;
		}
	}
	return false;
}

size_t dns_svcb_emit(const struct dns_svcb *s, uint8_t *dst, size_t size)
{
	struct out o = { .data = dst, .size = size };
	size_t before;
	bool has_alpn;

	out_16(&o, s->priority);
	out_bytes(&o, s->target.wire, s->target.len);
	if (s->mandatory.len) {
		out_16(&o, DNS_SVC_MANDATORY);
		out_16(&o, (unsigned)s->mandatory.len);
		out_bytes(&o, s->mandatory.ptr, s->mandatory.len);
	}
	before = o.len;
	out_alpn(&o, s->alpn);
	has_alpn = o.len > before;
	if (s->has_no_default_alpn) {
		out_16(&o, DNS_SVC_NO_DEFAULT_ALPN);
		out_16(&o, 0);
	}
	if (s->has_port) {
		out_16(&o, DNS_SVC_PORT);
		out_16(&o, 2);
		out_16(&o, s->port);
	}
	if (o.overflow || demands_more(s, has_alpn) ||
	    (s->has_no_default_alpn && !has_alpn))
		return 0;
	return o.len;
}
