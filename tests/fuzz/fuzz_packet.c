/* fuzz: wire */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_packet.c - a flow does not depend on content, nor on what is cut off */

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "src/wire/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(const struct packet_flow *a, const struct packet_flow *b)
{
	return !memcmp(a->source.ip, b->source.ip, 16) &&
	       !memcmp(a->destination.ip, b->destination.ip, 16) &&
	       a->source.port == b->source.port &&
	       a->destination.port == b->destination.port &&
	       a->protocol == b->protocol && a->icmp_type == b->icmp_type &&
	       a->icmp_code == b->icmp_code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct packet_flow whole, part;
	bool fine = packet_parse(span_of(data, size), &whole);
	size_t len;

	packet_sketch(span_of(data, size), 0x0806, &part);
	packet_sketch(span_of(data, size),
		      size && data[0] >> 4 == 6 ? 0x86dd : 0x0800, &part);
	if (fine && !same(&whole, &part))
		abort(); /* a record tells of the packet that was decided */

	for (len = 0; len < size; len++)
		if (packet_parse(span_of(data, len), &part) &&
		    (!fine || !same(&whole, &part)))
			abort();
	if (!fine)
		return 0;
	if (whole.protocol == IPPROTO_UDP
		    ? !whole.destination.port || whole.icmp_type
		    : whole.protocol != IPPROTO_ICMP &&
			      whole.protocol != IPPROTO_ICMPV6)
		abort();
	if (addr_is_v4(&whole.source) != addr_is_v4(&whole.destination))
		abort();
	return 0;
}
