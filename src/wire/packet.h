/* SPDX-License-Identifier: Apache-2.0 */
/* packet.h - which flow an IP packet of UDP or ICMP belongs to
 *
 * Reads the headers of IPv4 and IPv6 and of what they carry, and no content.
 * Meant for deciding about a packet: what could be read in two ways, or leads
 * elsewhere than its destination says, is no flow. For packets that are refused
 * already there is packet_sketch(), which tells what it can.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/addr.h"
#include "src/base/attrib.h"
#include "src/base/span.h"

enum {
	PACKET_EXTENSIONS_MAX = 4, /* headers between IPv6 and its content */
	PACKET_HEADERS_MAX = 128,  /* bytes that are enough for all of them */
};

struct packet_flow {
	struct addr source, destination; /* with the ports of UDP */
	uint8_t protocol;		 /* IPPROTO_UDP, _ICMP or _ICMPV6 */
	uint8_t icmp_type, icmp_code;	 /* else 0 */
};

/* bytes begin at the network header; the content may be cut off. False, and
 * *ret untouched, for: other protocols; truncated or inconsistent headers;
 * fragments; options of IPv4 and routing headers of IPv6 (both can name a
 * further destination); encrypted content; IPv4-mapped addresses in IPv6; port
 * 0. RFC 791, RFC 768, RFC 792, RFC 8200, RFC 4443. */
WUNRES bool packet_parse(struct span bytes, struct packet_flow *ret);

/* For records alone. bytes begin at the network header of what ethertype says
 * (IPv4, IPv6, ARP: then the addresses it is about). *ret has what could be
 * read, and zeroes: the addresses, the protocol behind IP, ports of TCP, UDP
 * and its kin, type and code of ICMP. */
void packet_sketch(struct span bytes, uint16_t ethertype,
		   struct packet_flow *ret);
