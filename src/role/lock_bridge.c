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

#include <stdio.h>

#include "src/base/err.h"
#include "src/role/config.h"
#include "src/role/lock_script.h"
#include "src/role/tproxy.h"

#define CHAIN "inet " LOCK_TABLE " bridged"
#define HOOK                                                          \
	"{ type filter hook prerouting priority -2147483648; policy " \
	"accept; }"

static int put_family(struct buf *out, const struct config *config,
		      const char *pattern, bool ipv6)
{
	char before[160];
	int n;

	n = snprintf(before, sizeof(before),
		     "add rule " CHAIN " iifname \"%s\" meta mark 0x%x ",
		     pattern, config->fwmark);
	must(n > 0 && (size_t)n < sizeof(before)); /* interfaces' names */
	return tproxy_put(out, config, ipv6, before, "");
}

int lock_bridge_script(const struct config *config, bool ipv6, struct buf *out)
{
	const struct config_strings *interfaces = &config->interfaces;
	size_t i;
	int r;

	r = buf_put_str(out, "add chain " CHAIN " " HOOK "\n"
			     "delete chain " CHAIN "\n"
			     "add chain " CHAIN " " HOOK "\n");
	for (i = 0; !r && i < interfaces->count; i++) {
		r = put_family(out, config, interfaces->items[i], false);
		if (!r && ipv6)
			r = put_family(out, config, interfaces->items[i], true);
	}
	return r;
}
