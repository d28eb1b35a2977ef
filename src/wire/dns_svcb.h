/* SPDX-License-Identifier: Apache-2.0 */
/* dns_svcb.h - service bindings: the data of SVCB and HTTPS records (RFC 9460)
 *
 * What we pass on of one is what leads a client to TCP at a name and a port
 * that policy sees: the protocols that run on TCP, the port, the target. Gone
 * are the keys of Encrypted ClientHello (RFC 9848), which would hide the name
 * from policy; HTTP/3, which policy has no streams of; hints of addresses,
 * which would go around the filter of A and AAAA answers; resolvers of others
 * (dohpath, RFC 9461), relays (RFC 9540), and every parameter that is not known
 * to be harmless.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"
#include "src/wire/dns_name.h"

/* Keys that we know (IANA, DNS SVCB service parameter keys). */
enum dns_svc_key {
	DNS_SVC_MANDATORY = 0,
	DNS_SVC_ALPN = 1,
	DNS_SVC_NO_DEFAULT_ALPN = 2,
	DNS_SVC_PORT = 3,
	DNS_SVC_IPV4HINT = 4,
	DNS_SVC_ECH = 5,
	DNS_SVC_IPV6HINT = 6,
};

/* All spans are borrowed from the data. */
struct dns_svcb {
	uint16_t priority;	/* 0: an alias, without parameters */
	struct dns_name target; /* the root: the owner of the record */
	struct span mandatory;	/* of two bytes a key, ascending */
	struct span alpn;	/* each behind a byte of its length */
	bool has_no_default_alpn;
	bool has_port;
	uint16_t port;
};

/* Reads all of the data and checks every parameter of a known key as RFC 9460
 * asks. False: malformed; a client must then reject the whole set of records,
 * and so do we. */
WUNRES bool dns_svcb_parse(struct span data, struct dns_svcb *ret);

/* Writes what may be passed on; never longer than what was parsed. Returns the
 * length, 0 when nothing of it is of use: it demands what is gone, or offers
 * only protocols that are. */
size_t dns_svcb_emit(const struct dns_svcb *s, uint8_t *dst, size_t size);
