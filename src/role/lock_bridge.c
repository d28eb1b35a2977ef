/* SPDX-License-Identifier: Apache-2.0 */
/* lock_bridge.c - TPROXY once more, where the kernel's bridge got in its way
 *
 * How it works: with bridge-nf-call-iptables (and -ip6tables) the kernel runs
 * prerouting when a packet enters the port of a bridge. Our table gives it the
 * mark and the socket there. Then the bridge hands it up, IP begins anew: the
 * socket is let go (ip_rcv), the mark stays, and the first hook of prerouting
 * skips all others, since they have run (ip_sabotage_in of br_netfilter). The
 * packet would end without a socket, refused.
 *
 * So a chain of the very first priority looks for what carries our mark
 * already, which is nothing but such a packet, and finds its socket again.
 * Among hooks of equal priority the youngest is first, and the kernel's hook is
 * registered with the first bridge of the network namespace. So the chain is
 * made anew whenever a sandbox bridge appears.
 */

#include "src/role/lock_bridge.h"

#include "src/role/config.h"
#include "src/role/listeners.h"
#include "src/role/lock_script.h"

#define CHAIN "inet " LOCK_TABLE " bridged"
#define HOOK                                                          \
	"{ type filter hook prerouting priority -2147483648; policy " \
	"accept; }"

static int put_family(struct buf *out, const struct config *config,
		      const char *pattern, const char *family,
		      const char *address)
{
	static const char *const ports[] = { "udp dport", "tcp dport" };
	size_t i;
	int r = 0;

	for (i = 0; !r && i < ARRAY_LEN(ports); i++)
		r = buf_putf(out,
			     "add rule " CHAIN " iifname \"%s\" meta mark 0x%x "
			     "%s %d tproxy %s to %s:%d accept\n",
			     pattern, config->fwmark, ports[i],
			     LISTENERS_DNS_PORT, family, address,
			     LISTENERS_DNS_PORT);
	if (!r)
		r = buf_putf(out,
			     "add rule " CHAIN " iifname \"%s\" meta mark 0x%x "
			     "meta l4proto tcp tproxy %s to %s:%u accept\n",
			     pattern, config->fwmark, family, address,
			     config->proxy_port);
	return r;
}

int lock_bridge_script(const struct config *config, bool ipv6, struct buf *out)
{
	size_t i;
	int r;

	r = buf_put_str(out, "add chain " CHAIN " " HOOK "\n"
			     "delete chain " CHAIN "\n"
			     "add chain " CHAIN " " HOOK "\n");
	for (i = 0; !r && i < config->interfaces.count; i++) {
		r = put_family(out, config, config->interfaces.items[i], "ip",
			       LISTENERS_ADDR_V4);
		if (!r && ipv6)
			r = put_family(out, config, config->interfaces.items[i],
				       "ip6", "[" LISTENERS_ADDR_V6 "]");
	}
	return r;
}
