/* SPDX-License-Identifier: Apache-2.0 */
/* tproxy.c - three rules for each version of IP
 *
 * Each packet of every connection walks them until one of them takes it, so
 * what most packets are comes first.
 */

#include "src/role/tproxy.h"

#include "src/role/config.h"
#include "src/role/listeners.h"

int tproxy_put(struct buf *out, const struct config *config, bool ipv6,
	       const char *before, const char *marking)
{
	const struct {
		const char *what;
		unsigned port;
	} rules[] = {
		{ "tcp dport != 53", config->proxy_port },
		{ "udp dport 53", LISTENERS_DNS_PORT },
		{ "tcp dport 53", LISTENERS_DNS_PORT },
	};
	const char *nfproto = ipv6 ? "ipv6" : "ipv4";
	const char *family = ipv6 ? "ip6" : "ip";
	const char *address =
		ipv6 ? "[" LISTENERS_ADDR_V6 "]" : LISTENERS_ADDR_V4;
	size_t i;
	int r = 0;

	for (i = 0; !r && i < ARRAY_LEN(rules); i++)
		r = buf_putf(out,
			     "%smeta nfproto %s %s tproxy %s to %s:%u "
			     "%s%saccept\n",
			     before, nfproto, rules[i].what, family, address,
			     rules[i].port, marking, *marking ? " " : "");
	return r;
}
