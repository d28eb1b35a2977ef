/* SPDX-License-Identifier: Apache-2.0 */
/* fence_script.c - the text of the table, as nft reads it
 *
 * How it works: sandboxes are known by their interfaces ("sp-*"). Whatever
 * enters by one is looked at in prerouting, before the node's own rules:
 *
 *	neighbour discovery	-> the kernel (IPv6 has no ARP)
 *	TCP, any port		-> TPROXY to the gateway; port 53 to its DNS
 *	UDP port 53		-> TPROXY to the gateway's DNS
 *	UDP, ICMP		-> a decision of the gateway, see below
 *	all else		-> dropped, counted and told of (drop.h)
 *
 * TPROXY leaves the packet as it is and gives it our listening socket and our
 * mark; the mark sends it to table `routeTable`, where every address is local
 * (route.c). Into the node comes only what carries the mark. When no listener
 * is there TPROXY does not match, and the packet is dropped.
 *
 * Most packets are of TCP, from a sandbox with a lock, and for a connection
 * that the gateway has accepted. One that finds such a connection is given the
 * mark at once, before anything else is asked of it, and each chain behind
 * takes the mark for an answer. One that begins a connection is none of these:
 * a socket of its addresses and ports may be one that has ended (TIME_WAIT),
 * which only TPROXY knows how to follow with a new one.
 *
 * A flow of UDP or ICMP is decided in three steps, each of which is closed by
 * the next when it is missing:
 *
 *	ask	packets of an entry that has our tag pass. A new flow gets
 *		the mark ASK, so many a second of each sandbox and no more.
 *	queue	what has the mark goes to the queue role, which asks the
 *		gateway and sets another mark. The statement is ours where nft
 *		has it (QUEUE_NATIVE), else a rule of iptables
 *		(fence_queue.c); without a reader the kernel drops.
 *	decided	TAG becomes the entry's mark; REJECT is answered by ICMP;
 *		whatever else, ASK above all, is dropped.
 *
 * Forwarded is only what has the tag: from a sandbox if no DNAT rule sent it
 * elsewhere than was decided, to a sandbox as answers. It leaves under the
 * node's address, as the gateway's connections do.
 *
 * What is only related to a flow has the tag of that flow, whoever sent it:
 * flows that a helper of connection tracking expects, and ICMP errors, which
 * need to know no more than a flow's ports and may carry anything, out or to a
 * neighbour. From a sandbox both are dropped; errors for sandboxes pass.
 *
 * Where there is an ingress (or a lifecycle API, which asks sandboxes too), the
 * node connects to sandboxes, and what they answer must get in. Such
 * connections alone are tracked, and an answer has to be one twice over:
 *
 *	raw	out: what is sent from an address of the node, but not with the
 *		mark of our sockets. in: what is sent there, begins nothing and
 *		finds a socket that is not transparent, as ours for caught
 *		connections are. So nothing of those is tracked.
 *	out	a connection begins with a SYN, or it is none
 *	in	an established connection's reply passes; whatever else is
 *		tracked by then was meant for a listener of the node, and is
 *		dropped before it is an entry.
 *
 * Handshakes of TCP that a source begins are limited before they reach a
 * listener: who opens connections faster than the gateway takes them would fill
 * the queue that all sandboxes wait in.
 *
 * What our sockets answer has the address that the sandbox dialled and, in a
 * denial or an answer of DNS, the sandbox's own words. Nobody else may have
 * them, though the sandbox is gone by then, with its route or without:
 *
 *	by any other interface than a sandbox's nothing leaves that has the
 *	mark of those sockets
 *	an error of ICMP that the node's own kernel writes about what it could
 *	not deliver goes to whose address it had, and quotes it. It belongs to
 *	no tracked connection, since the answer did not. All such errors stay
 *	in the node, but for the one that finds a path's MTU.
 *
 * Both hold while the daemon is stopped: connections outlive who closed them.
 *
 * Three guards around it. notrack: TCP and DNS cannot fill the node's
 * connection table, and no DNAT rule (a published port of a container) catches
 * them. Source check: a source address that is not routed out of the same
 * interface is forged. Fragments: the kernel has them reassembled at priority
 * -400; any that arrive here all the same have no ports to look at.
 *
 * Other tables of the node still see these packets: a firewall that drops
 * unknown TCP in its input chain, or forwards nothing, must let the marks pass
 * (man page).
 *
 * The script begins by creating and deleting the table, so that it works
 * whatever was there; nft makes one kernel transaction of it.
 */

#include "src/role/fence.h"

#include <stdio.h>

#include "src/role/config.h"
#include "src/role/drop.h"
#include "src/role/flow_mark.h"
#include "src/role/listeners.h"
#include "src/role/lock_script.h"
#include "src/role/tproxy.h"

enum {
	/* New flows of one sandbox: more than a second's worth of any honest
	 * program, less than keeps the queue role from others. */
	ASK_PER_SECOND = 256,
	ASK_BURST = 512,
	FLOWS_MAX = 4096, /* of one sandbox, in the node's connection table */
	SOURCES_MAX = 65536,
};

#define TABLE FENCE_TABLE

#define NEIGHBOUR_TYPES                              \
	"{ nd-router-solicit, nd-neighbor-solicit, " \
	"nd-neighbor-advert }"
#define NEIGHBOURS "ip6 hoplimit 255 icmpv6 type " NEIGHBOUR_TYPES

static const enum drop_reason reasons[] = {
	DROP_PROTOCOL, DROP_FRAGMENT,  DROP_SOURCE, DROP_GROUP, DROP_NO_FLOW,
	DROP_LIMIT,    DROP_UNDECIDED, DROP_NODE,   DROP_NUM,
};

/* A chain with one line per interface pattern: "<by> "sp-*" <what>". */
struct hook {
	const char *name, *hook;
	const char *by, *what;
	bool marked; /* what carries our mark passes, without another look */
};

static const struct hook hooks_open[] = {
	{ "prerouting", "prerouting priority mangle - 1", "iifname",
	  "goto from_sandbox", true },
	{ "after_queue", "prerouting priority mangle + 1", "iifname",
	  "goto decided", true },
	{ "input", "input priority filter", "iifname", "goto to_node", true },
	{ "forward_from", "forward priority filter", "iifname",
	  "goto forward_out" },
	{ "forward_to", "forward priority filter", "oifname",
	  "goto forward_back" },
};

static const struct hook hooks_closed[] = {
	{ "prerouting", "prerouting priority mangle", "iifname",
	  "counter drop" },
	{ "forward_to", "forward priority filter", "oifname", "counter drop" },
};

static int put_each(struct buf *out, const struct config *config,
		    const char *by, const char *what)
{
	unsigned i;
	int r = 0;

	for (i = 0; !r && i < config->interfaces.count; i++)
		r = buf_putf(out, "\t\t%s \"%s\" %s\n", by,
			     config->interfaces.items[i], what);
	return r;
}

static int put_hooks(struct buf *out, const struct config *config,
		     const struct hook *hooks, size_t count)
{
	size_t i;
	int r = 0;

	for (i = 0; !r && i < count; i++) {
		r = buf_putf(out,
			     "\n\tchain %s {\n"
			     "\t\ttype filter hook %s; policy accept;\n",
			     hooks[i].name, hooks[i].hook);
		if (!r && hooks[i].marked)
			r = buf_putf(out, "\t\tmeta mark 0x%x accept\n",
				     config->fwmark);
		if (!r)
			r = put_each(out, config, hooks[i].by, hooks[i].what);
		if (!r)
			r = buf_put_str(out, "\t}\n");
	}
	return r;
}

/* A mark only for what found its socket. */
static int put_tproxy(struct buf *out, const struct config *config, bool ipv6)
{
	char marking[32];

	(void)snprintf(marking, sizeof(marking), "meta mark set 0x%x",
		       config->fwmark);
	return tproxy_put(out, config, ipv6, "\t\t", marking);
}

static bool node_connects(const struct config *config)
{
	return config->ingress_listen.port || config->lifecycle_listen.port;
}

/* What is not asked about is not tracked, and what is not tracked is not asked
 * about. TCP is most of all packets: its rule ends the chain, so that none of
 * them is compared with the rest, nor with the other patterns of interfaces. */
static int put_untracked(struct buf *out, const struct config *config)
{
	const bool connects = node_connects(config);

	return buf_putf(
		out,
		"\n\tchain untrack_from {\n"
		"%s"
		"\t\tmeta l4proto tcp notrack accept\n"
		"\t\tudp dport %d notrack\n"
		"\t\t" NEIGHBOURS " notrack\n"
		"\t}\n"
		"\n\tchain untrack_to {\n"
		"%s"
		"\t\tudp sport %d notrack\n"
		"\t\ticmpv6 type " NEIGHBOUR_TYPES " notrack\n"
		"\t}\n",
		connects ? "\t\ttcp flags & (syn | ack) != syn fib daddr "
			   "type local socket transparent 0 return\n"
			 : "",
		LISTENERS_DNS_PORT,
		connects ? "\t\tmeta l4proto tcp fib saddr type != local "
			   "notrack\n"
			 : "\t\tmeta l4proto tcp notrack accept\n",
		LISTENERS_DNS_PORT);
}

/* The short way of most packets, and what of the others is not tracked. */
static int put_in(struct buf *out, const struct config *config)
{
	int r = buf_putf(out,
			 "\n\tchain in {\n"
			 "\t\ttype filter hook prerouting priority raw; "
			 "policy accept;\n"
			 "\t\tmeta mark " LOCK_MARK " tcp flags & syn == 0 "
			 "socket transparent 1 meta mark set 0x%x notrack "
			 "accept\n",
			 config->fwmark);

	if (!r)
		r = put_each(out, config, "iifname", "jump untrack_from");
	return r ? r : buf_put_str(out, "\t}\n");
}

/* Behind connection tracking; see above. */
static int put_replies(struct buf *out, const struct config *config)
{
	if (!node_connects(config))
		return 0;
	return buf_putf(out,
			"\t\tmeta l4proto tcp ct state established ct "
			"direction reply meta mark set 0x%x accept\n"
			"\t\tmeta l4proto tcp ct state != untracked goto "
			"drop_no_flow\n",
			config->fwmark);
}

static int put_begins(struct buf *out, const struct config *config)
{
	int r;

	if (!node_connects(config))
		return 0;
	r = buf_put_str(out, "\n\tchain begins {\n"
			     "\t\ttype filter hook output priority mangle; "
			     "policy accept;\n");
	if (!r)
		r = put_each(out, config, "oifname",
			     "meta l4proto tcp ct state new tcp flags & (fin | "
			     "syn | rst | ack) != syn counter drop");
	return r ? r : buf_put_str(out, "\t}\n");
}

/* Every packet that the node sends comes by here, and by put_errors(). */
static int put_out(struct buf *out, const struct config *config, bool open)
{
	int r = buf_put_str(out, "\n\tchain only_inside {\n");

	if (!r)
		r = put_each(out, config, "oifname", "accept");
	if (!r)
		r = buf_putf(out,
			     "\t\toif \"lo\" accept\n"
			     "\t\tcounter drop\n\t}\n"
			     "\n\tchain out {\n"
			     "\t\ttype filter hook output priority raw; "
			     "policy accept;\n"
			     "\t\tmeta mark 0x%x notrack goto only_inside\n",
			     LISTENERS_MARK);
	if (!r && open)
		r = put_each(out, config, "oifname", "jump untrack_to");
	return r ? r : buf_put_str(out, "\t}\n");
}

static int put_errors(struct buf *out)
{
	return buf_put_str(out,
			   "\n\tchain undelivered {\n"
			   "\t\ticmp type destination-unreachable "
			   "icmp code != frag-needed goto only_inside\n"
			   "\t\ticmpv6 type destination-unreachable "
			   "goto only_inside\n"
			   "\t}\n"
			   "\n\tchain errors {\n"
			   "\t\ttype filter hook output priority mangle; "
			   "policy accept;\n"
			   "\t\tmeta l4proto tcp accept\n"
			   "\t\tmeta l4proto { icmp, icmpv6 } ct state "
			   "invalid,untracked jump undelivered\n"
			   "\t}\n");
}

static int put_opening_limit(struct buf *out, const struct config *config,
			     const char *version, const char *source)
{
	return buf_putf(out,
			"\t\tadd @opening_%s { iif . %s limit rate over "
			"%u/second burst %u packets } counter goto "
			"drop_limit\n",
			version, source, config->syns_per_s,
			config->syns_per_s);
}

/* What is over it is dropped, not reset: an honest client tries again. */
static int put_opening(struct buf *out, const struct config *config)
{
	int r;

	if (!config->syns_per_s)
		return 0;
	r = buf_put_str(out, "\n\tchain opening {\n");
	if (!r)
		r = put_opening_limit(out, config, "v4", "ip saddr");
	if (!r)
		r = put_opening_limit(out, config, "v6", "ip6 saddr");
	return r ? r : buf_put_str(out, "\t}\n");
}

static int put_opening_set(struct buf *out, const char *version,
			   const char *type)
{
	return buf_putf(out,
			"\n\tset opening_%s {\n"
			"\t\ttype iface_index . %s\n"
			"\t\tsize %d\n"
			"\t\tflags dynamic,timeout\n"
			"\t\ttimeout 10s\n"
			"\t}\n",
			version, type, SOURCES_MAX);
}

static int put_from_sandbox(struct buf *out, const struct config *config,
			    const struct fence_rules *rules)
{
	int r = put_opening_set(out, "v4", "ipv4_addr");

	if (!r)
		r = put_opening_set(out, "v6", "ipv6_addr");
	if (!r)
		r = put_opening(out, config);
	if (!r)
		r = buf_put_str(out,
				"\n\tchain from_sandbox {\n"
				"\t\t" NEIGHBOURS " accept\n"
				"\t\tip frag-off & 0x1fff != 0 goto "
				"drop_fragment\n"
				"\t\texthdr frag exists goto drop_fragment\n"
				"\t\tfib saddr . iif oif missing goto "
				"drop_source\n");
	if (!r)
		r = put_replies(out, config);
	if (!r && config->syns_per_s)
		r = buf_put_str(out, "\t\ttcp flags & (fin | syn | rst | ack) "
				     "== syn jump opening\n");
	if (!r)
		r = put_tproxy(out, config, false);
	if (!r && rules->ipv6)
		r = put_tproxy(out, config, true);
	if (!r)
		r = buf_put_str(
			out, rules->queue ? "\t\tgoto ask\n\t}\n"
					  : "\t\tgoto drop_undecided\n\t}\n");
	return r;
}

/* Sources that asked lately, each with its own limit, and those that have
 * flows, with the number of them. */
static int put_sources(struct buf *out, const char *version, const char *type)
{
	return buf_putf(out,
			"\n\tset asking_%s {\n"
			"\t\ttype iface_index . %s\n"
			"\t\tsize %d\n"
			"\t\tflags dynamic,timeout\n"
			"\t\ttimeout 10s\n"
			"\t}\n"
			"\n\tset having_%s {\n"
			"\t\ttype iface_index . %s\n"
			"\t\tsize %d\n"
			"\t\tflags dynamic\n"
			"\t}\n",
			version, type, SOURCES_MAX, version, type, SOURCES_MAX);
}

static int put_limits(struct buf *out, const char *version, const char *source)
{
	return buf_putf(out,
			"\t\tadd @asking_%s { iif . %s limit rate over "
			"%d/second burst %d packets } counter goto "
			"drop_limit\n",
			version, source, ASK_PER_SECOND, ASK_BURST);
}

/* Behind the verdict: the kernel forgets one that it has counted and that is in
 * no table of connections two jiffies later, as is a flow that waits for its
 * verdict. */
static int put_having(struct buf *out, const char *version, const char *source)
{
	return buf_putf(
		out,
		"\t\tmeta mark & 0x%x == 0x%x add @having_%s { iif . %s "
		"ct count over %d } counter goto drop_limit\n",
		FLOW_MARK_MASK, FLOW_MARK_TAG, version, source, FLOWS_MAX);
}

static int put_ask(struct buf *out, const struct fence_rules *rules)
{
	int r = put_sources(out, "v4", "ipv4_addr");

	if (!r)
		r = put_sources(out, "v6", "ipv6_addr");
	if (!r)
		r = buf_putf(out,
			     "\n\tchain ask {\n"
			     "\t\tmeta l4proto tcp goto drop_undecided\n"
			     "\t\tmeta l4proto != { icmp, udp, icmpv6 } goto "
			     "drop_protocol\n"
			     "%s"
			     "\t\tct state invalid,untracked,related goto "
			     "drop_no_flow\n"
			     "\t\tct status expected goto drop_no_flow\n"
			     "\t\tct mark & 0x%x == 0x%x meta mark set 0x0 "
			     "accept\n"
			     "\t\tct state != new goto drop_no_flow\n"
			     "\t\tfib daddr type != { unicast, local } goto "
			     "drop_group\n",
			     rules->ipv6 ? ""
					 : "\t\tmeta nfproto ipv6 goto "
					   "drop_undecided\n",
			     FLOW_MARK_MASK, FLOW_MARK_TAG);
	if (!r)
		r = put_limits(out, "v4", "ip saddr");
	if (!r)
		r = put_limits(out, "v6", "ip6 saddr");
	if (!r)
		r = buf_putf(out,
			     "\t\tcounter name \"" DROP_COUNTER_QUEUED
			     "\" meta mark set 0x%x\n\t}\n",
			     FLOW_MARK_ASK);
	return r;
}

static int put_decided(struct buf *out, const struct fence_rules *rules)
{
	int r = buf_putf(out,
			 "\n\tchain decided {\n"
			 "\t\t" NEIGHBOURS " accept\n"
			 "\t\tct mark & 0x%x == 0x%x accept\n",
			 FLOW_MARK_MASK, FLOW_MARK_TAG);

	if (!r && rules->queue)
		r = put_having(out, "v4", "ip saddr");
	if (!r && rules->queue)
		r = put_having(out, "v6", "ip6 saddr");
	if (!r)
		r = buf_putf(out,
			     "\t\tmeta mark & 0x%x == 0x%x ct mark set meta "
			     "mark meta mark set 0x0 accept\n"
			     "\t\tmeta mark 0x%x counter reject with icmpx "
			     "admin-prohibited\n"
			     "\t\tcounter name \"" DROP_COUNTER_UNQUEUED
			     "\" goto drop_undecided\n\t}\n",
			     FLOW_MARK_MASK, FLOW_MARK_TAG, FLOW_MARK_REJECT);
	return r;
}

static int put_native_queue(struct buf *out, const struct config *config)
{
	return buf_putf(out,
			"\n\tchain queue {\n"
			"\t\ttype filter hook prerouting priority mangle; "
			"policy accept;\n"
			"\t\tmeta mark 0x%x queue num %u\n"
			"\t}\n",
			FLOW_MARK_ASK, config->queue_number);
}

static int put_to_node(struct buf *out)
{
	return buf_put_str(out, "\n\tchain to_node {\n"
				"\t\t" NEIGHBOURS " accept\n"
				"\t\tgoto drop_node\n\t}\n");
}

static int put_forward(struct buf *out)
{
	return buf_putf(out,
			"\n\tchain forward_out {\n"
			"\t\tct status expected,dnat goto drop_node\n"
			"\t\tct mark & 0x%x == 0x%x accept\n"
			"\t\tgoto drop_undecided\n\t}\n"
			"\n\tchain forward_back {\n"
			"\t\tct mark & 0x%x == 0x%x ct direction reply "
			"accept\n"
			"\t\tcounter drop\n\t}\n"
			"\n\tchain leave {\n"
			"\t\ttype nat hook postrouting priority srcnat; "
			"policy accept;\n"
			"\t\tct mark & 0x%x == 0x%x masquerade\n"
			"\t}\n",
			FLOW_MARK_MASK, FLOW_MARK_TAG, FLOW_MARK_MASK,
			FLOW_MARK_TAG, FLOW_MARK_MASK, FLOW_MARK_TAG);
}

static int put_open(struct buf *out, const struct config *config,
		    const struct fence_rules *rules)
{
	const enum drop_telling telling =
		rules->tells ? DROP_TELL_BY_STATION : DROP_TELL_NOTHING;
	int r = buf_put_str(out, "\n\tcounter " DROP_COUNTER_QUEUED " { }\n"
				 "\tcounter " DROP_COUNTER_UNQUEUED " { }\n");

	if (!r)
		r = drop_put_objects(out, reasons, telling);
	if (!r)
		r = drop_put_chains(out, config, reasons, telling);
	if (!r)
		r = put_untracked(out, config);
	if (!r)
		r = put_in(out, config);
	if (!r)
		r = put_begins(out, config);

	if (!r && rules->queue)
		r = put_ask(out, rules);
	if (!r)
		r = put_from_sandbox(out, config, rules);
	if (!r)
		r = put_decided(out, rules);
	if (!r && rules->queue == QUEUE_NATIVE)
		r = put_native_queue(out, config);
	if (!r)
		r = put_to_node(out);
	if (!r)
		r = put_forward(out);
	if (!r)
		r = put_hooks(out, config, hooks_open, ARRAY_LEN(hooks_open));
	return r;
}

int fence_script(const struct config *config, const struct fence_rules *rules,
		 struct buf *out)
{
	int r;

	r = buf_put_str(out, "table " TABLE "\ndelete table " TABLE "\n"
			     "table " TABLE " {");
	if (!r && rules)
		r = put_open(out, config, rules);
	if (!r)
		r = put_out(out, config, rules);
	if (!r)
		r = put_errors(out);
	if (!r && !rules)
		r = put_hooks(out, config, hooks_closed,
			      ARRAY_LEN(hooks_closed));
	if (!r)
		r = buf_put_str(out, "}\n");
	return r;
}
