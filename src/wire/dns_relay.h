/* SPDX-License-Identifier: Apache-2.0 */
/* dns_relay.h - pass an upstream answer on to the same question
 *
 * The answer is written anew: aliases are followed, and the records at their
 * end stand under the name that was asked for, without compression, their TTLs
 * clamped. Nothing of the authority and additional sections goes on, so no
 * address that nobody looked at. Service bindings lose what dns_svcb.h says.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/wire/dns.h"

enum { DNS_RELAY_LINKS_MAX = 16 /* aliases that are followed */ };

enum dns_relay_end {
	/* Zero: it answers something else, holds records of other types, its
	 * aliases go round, or one of its names is broken. */
	DNS_RELAY_UNUSABLE,
	DNS_RELAY_DONE,	     /* written, perhaps without any record */
	DNS_RELAY_MALFORMED, /* a service binding breaks RFC 9460 */
	DNS_RELAY_WITHHELD,  /* there are records, and none may go on */
};

struct dns_relay {
	uint32_t min_ttl_s, max_ttl_s;
	/* May a service binding lead to that name (the root: the name that was
	 * asked for) and port (0: that of the scheme)? */
	bool (*may_lead)(void *ctx, const struct dns_name *target,
			 uint16_t port);
	void *ctx;
	/* the result, once DONE */
	size_t len;
	unsigned withheld; /* records left out */
};

/* Writes into dst[0..size), which is at least DNS_UDP_MIN. TC and no records
 * when they do not fit. */
WUNRES enum dns_relay_end dns_emit_relay(const struct dns_message *query,
					 const struct dns_message *upstream,
					 struct dns_relay *how, uint8_t *dst,
					 size_t size);
