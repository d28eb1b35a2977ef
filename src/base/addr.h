/* SPDX-License-Identifier: Apache-2.0 */
/* addr.h - one address type for IPv4 and IPv6, and what kind an address is
 *
 * IPv4 is kept as IPv4-mapped bytes (::ffff:a.b.c.d), so that comparing and
 * hashing are one memcmp; addr_is_v4() tells. IPv4-mapped input becomes IPv4.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct addr {
	uint8_t ip[16];	   /* network order, IPv4 mapped */
	uint16_t port;	   /* host order, 0 = none */
	uint32_t scope_id; /* interface of a link-local IPv6 address */
};

struct cidr {
	uint8_t ip[16]; /* bits beyond prefix are zero */
	uint8_t prefix; /* of 128: an IPv4 /8 is 104 */
};

/* What an address is good for; the guard refuses all but GLOBAL. RFC 6890 and
 * its registry, RFC 6598 (CGNAT), RFC 4193 (ULA), cloud metadata by vendor. */
enum addr_kind {
	ADDR_UNSPECIFIED, /* zero: the safe value is refused */
	ADDR_LOOPBACK,
	ADDR_PRIVATE, /* RFC 1918, ULA, site-local */
	ADDR_CGNAT,   /* 100.64.0.0/10 */
	ADDR_LINK_LOCAL,
	ADDR_METADATA, /* 169.254.169.254, fd00:ec2::254, 100.100.100.200,
			  168.63.129.16 ... */
	ADDR_MULTICAST,
	ADDR_RESERVED, /* documentation, benchmarking, 240/4, broadcast */
	ADDR_GLOBAL,

	ADDR_KIND_NUM,
};

enum { ADDR_TEXT_SIZE = 72 }; /* "[...%4294967295]:65535" */

/* Classifies; an IPv6 address that embeds an IPv4 one (mapped, compatible,
 * translated, NAT64 64:ff9b::/96 and 64:ff9b:1::/48, 6to4, Teredo, ISATAP)
 * takes the less global of the two kinds. Of these only mapped, 64:ff9b::/96
 * and ISATAP can be global: 6to4 and Teredo are tunnels to somebody's IPv4
 * address, through relays that are gone. tests/unit/base/addr_kinds.def has
 * the registries row by row. */
enum addr_kind addr_kind(const struct addr *a);
const char *addr_kind_name(enum addr_kind kind);

bool addr_is_v4(const struct addr *a);
bool addr_eq_ip(const struct addr *a, const struct addr *b);

/* IP literal only: "1.2.3.4", "::1", with brackets too. No port, no zone, no
 * shorthand such as "127.1" or octal. */
WUNRES bool addr_parse(struct span text, struct addr *ret);
/* "1.2.3.4:53", "[::1]:53"; without a port `port` is used. */
WUNRES bool addr_parse_port(struct span text, uint16_t port, struct addr *ret);
WUNRES bool cidr_parse(struct span text, struct cidr *ret);
/* Bits only: "::/0" also holds every IPv4 address, since those are mapped. Who
 * means IPv6 alone must ask addr_is_v4() too. */
bool cidr_has(const struct cidr *c, const struct addr *a);

WUNRES bool addr_from_sockaddr(const struct sockaddr *sa, struct addr *ret);
/* Fills *ret for connect/bind; IPv4 addresses become AF_INET. Returns length.
 */
socklen_t addr_to_sockaddr(const struct addr *a, struct sockaddr_storage *ret);

/* Without port. Returns dst. */
const char *addr_text(const struct addr *a, char *dst, size_t size);
const char *addr_text_port(const struct addr *a, char *dst, size_t size);
const char *cidr_text(const struct cidr *c, char *dst, size_t size);
/* "02:42:0a:00:00:07". Returns dst. */
enum { MAC_TEXT_SIZE = 18 };
const char *mac_text(const uint8_t mac[6], char dst[MAC_TEXT_SIZE]);
