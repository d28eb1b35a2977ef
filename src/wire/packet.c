/* SPDX-License-Identifier: Apache-2.0 */
/* packet.c - IPv4, IPv6 and its extension headers, UDP, ICMP */

#include "src/wire/packet.h"

#include <netinet/in.h>
#include <string.h>

enum {
	IPV4_HEADER = 20,
	IPV6_HEADER = 40,
	UDP_HEADER = 8,
	ICMP_HEADER = 8, /* of both; the smallest message has as much */
	EXTENSION_UNIT = 8,
	FRAGMENT_BITS = 0x3fff, /* more fragments, and the offset */
	FRAGMENT_OFFSET = 0x1fff,
	FRAGMENT_OFFSET_V6 = 0xfff8,
	ARP_SENDER = 14, /* RFC 826, of Ethernet and IPv4 */
	ARP_TARGET = 24,
	ARP_BYTES = 28,
	ETHER_IP4 = 0x0800,
	ETHER_ARP = 0x0806,
	ETHER_IP6 = 0x86dd,
};

static unsigned u16_at(struct span s, size_t at)
{
	return (unsigned)(uint8_t)s.ptr[at] << 8 | (uint8_t)s.ptr[at + 1];
}

static unsigned u8_at(struct span s, size_t at)
{
	return (uint8_t)s.ptr[at];
}

static void addr_v4(struct span s, size_t at, struct addr *ret)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	*ret = (struct addr){ 0 };
	memcpy(ret->ip, mapped, sizeof(mapped));
	memcpy(ret->ip + 12, s.ptr + at, 4);
}

static void addr_v6(struct span s, size_t at, struct addr *ret)
{
	*ret = (struct addr){ 0 };
	memcpy(ret->ip, s.ptr + at, 16);
}

/* The header behind IP. */
static bool parse_content(struct span s, unsigned protocol,
			  struct packet_flow *flow)
{
	flow->protocol = (uint8_t)protocol;
	switch (protocol) {
	case IPPROTO_UDP:
		if (s.len < UDP_HEADER || u16_at(s, 4) < UDP_HEADER)
			return false;
		flow->source.port = (uint16_t)u16_at(s, 0);
		flow->destination.port = (uint16_t)u16_at(s, 2);
		return flow->source.port && flow->destination.port;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		if (s.len < ICMP_HEADER)
			return false;
		flow->icmp_type = (uint8_t)u8_at(s, 0);
		flow->icmp_code = (uint8_t)u8_at(s, 1);
		return true;
	default:
		return false;
	}
}

static bool parse_v4(struct span s, struct packet_flow *flow)
{
	unsigned total;

	if (s.len < IPV4_HEADER || u8_at(s, 0) != (4 << 4 | IPV4_HEADER / 4))
		return false;
	total = u16_at(s, 2);
	if (total < IPV4_HEADER || u16_at(s, 6) & FRAGMENT_BITS ||
	    u8_at(s, 9) == IPPROTO_ICMPV6)
		return false;
	addr_v4(s, 12, &flow->source);
	addr_v4(s, 16, &flow->destination);
	s.len = MIN(s.len, total); /* what follows is padding */
	return parse_content(span_from(s, IPV4_HEADER), u8_at(s, 9), flow);
}

/* Hop-by-hop options may come first and only there; destination options
 * anywhere. Everything else that may stand here is refused. */
static bool skip_extensions(struct span *s, unsigned *next)
{
	size_t len;
	unsigned i;

	for (i = 0; i <= PACKET_EXTENSIONS_MAX; i++) {
		if (*next != IPPROTO_DSTOPTS &&
		    (*next != IPPROTO_HOPOPTS || i > 0))
			return true;
		if (s->len < EXTENSION_UNIT)
			return false;
		len = (u8_at(*s, 1) + 1) * (size_t)EXTENSION_UNIT;
		if (s->len < len)
			return false;
		*next = u8_at(*s, 0);
		*s = span_from(*s, len);
	}
	return false;
}

static bool parse_v6(struct span s, struct packet_flow *flow)
{
	unsigned next;

	if (s.len < IPV6_HEADER || !u16_at(s, 4)) /* no content, or jumbo */
		return false;
	next = u8_at(s, 6);
	addr_v6(s, 8, &flow->source);
	addr_v6(s, 24, &flow->destination);
	if (addr_is_v4(&flow->source) || addr_is_v4(&flow->destination))
		return false;
	s.len = MIN(s.len, IPV6_HEADER + u16_at(s, 4));
	s = span_from(s, IPV6_HEADER);
	return skip_extensions(&s, &next) && next != IPPROTO_ICMP &&
	       parse_content(s, next, flow);
}

bool packet_parse(struct span bytes, struct packet_flow *ret)
{
	struct packet_flow flow = { 0 };
	bool fine = false;

	if (bytes.len && u8_at(bytes, 0) >> 4 == 4)
		fine = parse_v4(bytes, &flow);
	else if (bytes.len && u8_at(bytes, 0) >> 4 == 6)
		fine = parse_v6(bytes, &flow);
	if (fine)
		*ret = flow;
	return fine;
}

/* --- what a record tells --- */

static void sketch_content(struct span s, struct packet_flow *flow)
{
	switch (flow->protocol) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_DCCP:
	case IPPROTO_SCTP:
	case IPPROTO_UDPLITE:
		if (s.len < 4)
			return;
		flow->source.port = (uint16_t)u16_at(s, 0);
		flow->destination.port = (uint16_t)u16_at(s, 2);
		return;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		if (s.len < 2)
			return;
		flow->icmp_type = (uint8_t)u8_at(s, 0);
		flow->icmp_code = (uint8_t)u8_at(s, 1);
		return;
	default:
		return;
	}
}

static void sketch_v4(struct span s, struct packet_flow *flow)
{
	size_t header;

	if (s.len < IPV4_HEADER)
		return;
	header = (u8_at(s, 0) & 0xf) * (size_t)4;
	addr_v4(s, 12, &flow->source);
	addr_v4(s, 16, &flow->destination);
	flow->protocol = (uint8_t)u8_at(s, 9);
	if (header >= IPV4_HEADER && header <= s.len &&
	    !(u16_at(s, 6) & FRAGMENT_OFFSET))
		sketch_content(span_from(s, header), flow);
}

static void sketch_v6(struct span s, struct packet_flow *flow)
{
	size_t len;
	unsigned i;

	if (s.len < IPV6_HEADER)
		return;
	addr_v6(s, 8, &flow->source);
	addr_v6(s, 24, &flow->destination);
	flow->protocol = (uint8_t)u8_at(s, 6);
	s = span_from(s, IPV6_HEADER);
	for (i = 0; i < PACKET_EXTENSIONS_MAX; i++) {
		if (flow->protocol != IPPROTO_HOPOPTS &&
		    flow->protocol != IPPROTO_DSTOPTS &&
		    flow->protocol != IPPROTO_ROUTING &&
		    flow->protocol != IPPROTO_FRAGMENT)
			break;
		if (s.len < EXTENSION_UNIT)
			return;
		len = (u8_at(s, 1) + 1) * (size_t)EXTENSION_UNIT;
		if (flow->protocol == IPPROTO_FRAGMENT)
			len = EXTENSION_UNIT;
		if (s.len < len)
			return;
		if (flow->protocol == IPPROTO_FRAGMENT &&
		    u16_at(s, 2) & FRAGMENT_OFFSET_V6) {
			flow->protocol = (uint8_t)u8_at(s, 0);
			return;
		}
		flow->protocol = (uint8_t)u8_at(s, 0);
		s = span_from(s, len);
	}
	sketch_content(s, flow);
}

void packet_sketch(struct span bytes, uint16_t ethertype,
		   struct packet_flow *ret)
{
	*ret = (struct packet_flow){ 0 };
	if (ethertype == ETHER_IP4)
		sketch_v4(bytes, ret);
	else if (ethertype == ETHER_IP6)
		sketch_v6(bytes, ret);
	else if (ethertype == ETHER_ARP && bytes.len >= ARP_BYTES) {
		addr_v4(bytes, ARP_SENDER, &ret->source);
		addr_v4(bytes, ARP_TARGET, &ret->destination);
	}
}
