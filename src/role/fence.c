/* SPDX-License-Identifier: Apache-2.0 */
/* fence.c - writes the nftables script and gives it to nft
 *
 * How it works: sandboxes are known by their interfaces ("sp-*"). Whatever
 * enters by one is looked at once, in prerouting, before the node's own rules:
 *
 *	neighbour discovery	-> the kernel (IPv6 has no ARP)
 *	TCP, any port		-> TPROXY to the gateway; port 53 to its DNS
 *	UDP port 53		-> TPROXY to the gateway's DNS
 *	all else		-> dropped and counted
 *
 * TPROXY leaves the packet as it is and gives it our listening socket and our
 * mark; the mark sends it to table `routeTable`, where every address is local
 * (route.c). So the chains behind are simple: into the node comes only what
 * carries the mark, and nothing is ever forwarded from or to a sandbox. When
 * no listener is there TPROXY does not match, and the packet is dropped.
 *
 * Three guards around it. notrack: sandboxes cannot fill the node's connection
 * table, and no DNAT rule (a published port of a container) catches their
 * packets. Source check: a source address that is not routed out of the same
 * interface is forged. Fragments: the tproxy module has them reassembled at
 * priority -400; any that arrive here all the same have no ports to look at.
 *
 * Other tables of the node still see these packets: a firewall that drops
 * unknown TCP in its input chain must let the mark pass (man page).
 *
 * The script begins by creating and deleting the table, so that it works
 * whatever was there; nft makes one kernel transaction of it.
 */

#include "src/role/fence.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/log.h"
#include "src/role/config.h"
#include "src/role/listeners.h"
#include "src/role/route.h"
#include "src/role/tool.h"

enum {
	SCRIPT_BYTES_MAX = 128 * 1024,
	OUTPUT_BYTES_MAX = 1024 * 1024,
	SAID_BYTES_MAX = 400,
	NFT_TIMEOUT_MS = 20 * 1000,
};

#define TABLE "inet sallyport"

#define NEIGHBOURS                                           \
	"ip6 hoplimit 255 icmpv6 type { nd-router-solicit, " \
	"nd-neighbor-solicit, nd-neighbor-advert } accept"

/* A chain with one line per interface pattern: "<by> "sp-*" <what>". */
struct hook {
	const char *name, *hook;
	const char *by, *what;
};

static const struct hook hooks_open[] = {
	{ "untracked", "prerouting priority raw", "iifname", "notrack" },
	{ "untracked_out", "output priority raw", "oifname", "notrack" },
	{ "prerouting", "prerouting priority mangle", "iifname",
	  "goto from_sandbox" },
	{ "input", "input priority filter", "iifname", "goto to_node" },
	{ "forward_from", "forward priority filter", "iifname",
	  "counter drop" },
	{ "forward_to", "forward priority filter", "oifname", "counter drop" },
};

static const struct hook hooks_closed[] = {
	{ "prerouting", "prerouting priority mangle", "iifname",
	  "counter drop" },
	{ "forward_to", "forward priority filter", "oifname", "counter drop" },
};

static int put_hooks(struct buf *out, const struct config *config,
		     const struct hook *hooks, size_t count)
{
	size_t i, j;
	int r = 0;

	for (i = 0; !r && i < count; i++) {
		r = buf_putf(out,
			     "\n\tchain %s {\n"
			     "\t\ttype filter hook %s; policy accept;\n",
			     hooks[i].name, hooks[i].hook);
		for (j = 0; !r && j < config->interfaces.count; j++)
			r = buf_putf(out, "\t\t%s \"%s\" %s\n", hooks[i].by,
				     config->interfaces.items[j],
				     hooks[i].what);
		if (!r)
			r = buf_put_str(out, "\t}\n");
	}
	return r;
}

/* Port 53 before the rest; a mark only for what found its socket. */
static int put_tproxy(struct buf *out, const struct config *config,
		      const char *family, const char *nfproto, const char *addr)
{
	return buf_putf(
		out,
		"\t\tmeta nfproto %s udp dport %d tproxy %s to %s:%d "
		"meta mark set 0x%x accept\n"
		"\t\tmeta nfproto %s tcp dport %d tproxy %s to %s:%d "
		"meta mark set 0x%x accept\n"
		"\t\tmeta nfproto %s meta l4proto tcp tproxy %s to %s:%u "
		"meta mark set 0x%x accept\n",
		nfproto, LISTENERS_DNS_PORT, family, addr, LISTENERS_DNS_PORT,
		config->fwmark, nfproto, LISTENERS_DNS_PORT, family, addr,
		LISTENERS_DNS_PORT, config->fwmark, nfproto, family, addr,
		config->proxy_port, config->fwmark);
}

static int put_from_sandbox(struct buf *out, const struct config *config,
			    bool ipv6)
{
	int r;

	r = buf_put_str(out, "\n\tchain from_sandbox {\n"
			     "\t\t" NEIGHBOURS "\n"
			     "\t\tip frag-off & 0x1fff != 0 counter drop\n"
			     "\t\texthdr frag exists counter drop\n"
			     "\t\tfib saddr . iif oif missing counter drop\n");
	if (!r)
		r = put_tproxy(out, config, "ip", "ipv4", LISTENERS_ADDR_V4);
	if (!r && ipv6)
		r = put_tproxy(out, config, "ip6", "ipv6",
			       "[" LISTENERS_ADDR_V6 "]");
	if (!r)
		r = buf_put_str(out, "\t\tcounter drop\n\t}\n");
	return r;
}

static int put_to_node(struct buf *out, const struct config *config)
{
	return buf_putf(out,
			"\n\tchain to_node {\n"
			"\t\tmeta mark 0x%x accept\n"
			"\t\t" NEIGHBOURS "\n"
			"\t\tcounter drop\n\t}\n",
			config->fwmark);
}

int fence_script(const struct config *config, enum fence_kind kind, bool ipv6,
		 struct buf *out)
{
	int r;

	r = buf_put_str(out, "table " TABLE "\ndelete table " TABLE "\n"
			     "table " TABLE " {");
	if (!r && kind == FENCE_OPEN)
		r = put_from_sandbox(out, config, ipv6);
	if (!r && kind == FENCE_OPEN)
		r = put_to_node(out, config);
	if (!r && kind == FENCE_OPEN)
		r = put_hooks(out, config, hooks_open, ARRAY_LEN(hooks_open));
	if (!r && kind == FENCE_CLOSED)
		r = put_hooks(out, config, hooks_closed,
			      ARRAY_LEN(hooks_closed));
	if (!r)
		r = buf_put_str(out, "}\n");
	return r;
}

static const char *nft_path(void)
{
	static const char *const paths[] = { "/usr/sbin/nft", "/sbin/nft",
					     "/usr/bin/nft" };
	unsigned i;

	for (i = 0; i < ARRAY_LEN(paths); i++)
		if (access(paths[i], X_OK) == 0)
			return paths[i];
	return paths[0];
}

/* Runs a script; what nft complains about goes to the log, on one line. */
static int nft_run(struct span script)
{
	const char *const argv[] = { nft_path(), "-f", "-", NULL };
	struct buf said = BUF_INIT(OUTPUT_BYTES_MAX);
	char line[SAID_BYTES_MAX];
	int r = tool_run(argv, script, &said, NFT_TIMEOUT_MS);

	if (r < 0)
		log_error("could not run %s: %s", argv[0], err_text(r));
	else if (r > 0)
		log_error("nft refused the rules: %s",
			  log_escape(buf_peek(&said), line, sizeof(line)));
	buf_fini(&said);
	return r > 0 ? -EINVAL : r;
}

static int table_replace(const struct config *config, enum fence_kind kind,
			 bool ipv6)
{
	struct buf script = BUF_INIT(SCRIPT_BYTES_MAX);
	int r = fence_script(config, kind, ipv6, &script);

	if (!r)
		r = nft_run(buf_peek(&script));
	buf_fini(&script);
	return r;
}

int fence_route(const struct config *config, bool ipv6)
{
	int r = route_install(AF_INET, config->fwmark, config->route_table);

	if (!r && ipv6)
		r = route_install(AF_INET6, config->fwmark,
				  config->route_table);
	return r;
}

int fence_install(const struct config *config, bool *ret_ipv6)
{
	bool ipv6 = true;
	int r = fence_route(config, true);

	if (r == -EAFNOSUPPORT) {
		log_info(
			"found no IPv6 on this node: sandboxes have IPv4 only");
		ipv6 = false;
		r = 0;
	}
	if (r) {
		log_error("could not route marked packets to ourselves: %s%s",
			  err_text(r),
			  r == -ENETDOWN ? " (is the interface lo up?)" : "");
		return r;
	}
	r = table_replace(config, FENCE_OPEN, ipv6);
	if (!r)
		*ret_ipv6 = ipv6;
	return r;
}

static int unroute(const struct config *config)
{
	int v4 = route_remove(AF_INET, config->fwmark, config->route_table);
	int v6 = route_remove(AF_INET6, config->fwmark, config->route_table);
	int r = v4 ? v4 : v6;

	if (r)
		log_error("could not remove the routing rule: %s", err_text(r));
	return r;
}

int fence_close(const struct config *config)
{
	int r = table_replace(config, FENCE_CLOSED, false);

	return r ? r : unroute(config);
}

int fence_remove(const struct config *config)
{
	int r = nft_run(SPAN("table " TABLE "\ndelete table " TABLE "\n"));

	return r ? r : unroute(config);
}

int fence_read(struct buf *out)
{
	const char *const argv[] = { nft_path(), "-s",	      "list", "table",
				     "inet",	 "sallyport", NULL };
	int r = tool_run(argv, SPAN_NONE, out, NFT_TIMEOUT_MS);

	if (r > 0) {
		buf_clear(out); /* the complaint: there is no such table */
		return 0;
	}
	return r;
}
