/* fuzz: wire */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_dns.c - any bytes as query and as reply; what parses is answered */

#include "src/base/err.h"
#include "src/wire/dns_emit.h"
#include "src/wire/dns_relay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool may_lead(void *ctx, const struct dns_name *target, uint16_t port)
{
	(void)ctx;
	return target->len == 1 || port % 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t out[DNS_MESSAGE_MAX];
	static const struct addr addrs[40];
	const struct dns_reply reply = { .ede = DNS_EDE_FILTERED,
					 .ede_text = span_of(data, size),
					 .addrs = addrs,
					 .addr_count = ARRAY_LEN(addrs) };
	struct dns_message m, again;
	struct dns_relay how = { .min_ttl_s = 5,
				 .max_ttl_s = 9,
				 .may_lead = may_lead };
	struct dns_record record;
	struct dns_name name;
	struct span before;
	struct host host;
	char text[64];
	size_t len;

	if (!dns_parse_query(span_of(data, size), &m)) {
		(void)!dns_name_to_host(&m.name, &host);
		(void)dns_name_text(&m.name, text, sizeof(text));
		len = dns_emit_reply(&m, &reply, out, DNS_UDP_MIN);
		must(!dns_parse_reply(span_of(out, len), &again));
	}
	if (!dns_parse_reply(span_of(data, size), &m)) {
		struct dns_walk w = DNS_WALK(&m);

		while (dns_walk_next(&w, &m, &record))
			(void)!dns_record_target(&m, &record, &before, &name);
		if (dns_emit_relay(&m, &m, &how, out, sizeof(out)) ==
		    DNS_RELAY_DONE)
			must(!dns_parse_reply(span_of(out, how.len), &again));
	}
	return 0;
}
