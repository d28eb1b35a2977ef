/* SPDX-License-Identifier: Apache-2.0 */
/* dns_emit.h - write DNS queries and replies of our own (RFC 8914 too)
 *
 * Emitters write into dst[0..size) and return the length, or 0 when even the
 * smallest form does not fit. A reply needs at least DNS_UDP_MIN.
 */
#pragma once

#include "src/base/addr.h"
#include "src/base/span.h"
#include "src/wire/dns.h"

enum { DNS_EDE_TEXT_MAX = 200 /* of our own extra text */ };

/* A query with RD set; udp_size 0 = without OPT. */
size_t dns_emit_query(uint16_t id, const struct dns_name *name, uint16_t type,
		      uint16_t udp_size, uint8_t *dst, size_t size);

struct dns_reply {
	uint16_t rcode;
	enum dns_ede ede;
	struct span ede_text;	  /* cut at DNS_EDE_TEXT_MAX and to ASCII */
	const struct addr *addrs; /* those of the asked family are answered */
	unsigned addr_count;
	uint32_t ttl_s;
};

/* The reply to query, which must be what dns_parse_query() filled. OPT and EDE
 * only when the query had an OPT. TC and no records when they do not fit. AA
 * and AD are never set. */
size_t dns_emit_reply(const struct dns_message *query,
		      const struct dns_reply *reply, uint8_t *dst, size_t size);
