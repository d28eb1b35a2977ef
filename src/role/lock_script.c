/* SPDX-License-Identifier: Apache-2.0 */
/* lock_script.c - what a locked device may send, as rules
 *
 * How it works: sets hold what belongs to each device, keyed by its name, so
 * one chain serves all of them and a packet costs the same with one sandbox
 * and with thousands:
 *
 *	own4, own6	device . address
 *	with_mac	devices whose hardware address is known
 *	own_mac		device . hardware address
 *	any_link_local	devices whose link-local address cannot be known
 *
 * A frame at the ingress of a locked device (netdev):
 *
 *	hardware address	its own, where known: Ethernet, ARP, and the
 *				options of neighbour discovery
 *	ARP	requests and replies with its own sender; a probe (RFC 5227)
 *		only for its own address
 *	IPv4	from its own addresses, without options (source routes, RFC
 *		7126); no IGMP; not as a DHCP server
 *	IPv6	from its own addresses, without a routing header (RFC 5095);
 *		not as a router, an MLD listener or a DHCPv6 server
 *	ND	straight behind the IPv6 header (RFC 6980) with hop limit 255,
 *		one option at most; advertisements for its own addresses, and
 *		from the unspecified address only duplicate detection of them
 *	all else	dropped, as whatever is not said here, and told of
 *		(drop.h): VLAN tags, 802.3, every other protocol. The
 *		kernel has taken a tag off by then, and nft reads the frame as
 *		it was on the wire, so its type is that of the tag.
 *
 * What passed carries LOCK_MARK as far as prerouting (inet) or ARP (arp). There
 * a packet of a locked sandbox without the mark is dropped: it came in before
 * the chain stood at the device, or through another port of the same bridge.
 * So an interface is under the lock from the moment the sets say so. The mark
 * is cleared, but of whole packets of TCP: the fence need not ask again where
 * those are from (fence_script.c), and gives them a mark of its own.
 *
 * What the kernel forwards for a sandbox (UDP, ICMP) has the pace of its policy:
 * each address is an element of a set with a rate of its own, in each direction,
 * and a packet that is over it is dropped.
 *
 * Pieces of packets wait for each other in memory that the kernel has once, 4 MB
 * for IPv4 and for IPv6, for half a minute or a whole one. So each source may
 * send so many that they fill no more than about half of it. What the lock has
 * not seen shares one limit for each interface.
 *
 * A port's frames may go to the bridge itself and nowhere else (bridge): by the
 * names of registered ports, and of every other port that a sandbox bridge was
 * seen to have. A hardware address that one of them owns is not learned
 * from another port.
 *
 * Offsets in raw matches: nft 1.0 has no words for the target of neighbour
 * discovery (th+8), nor for its first option (th+24; router solicitation:
 * th+8). One set may then be asked with differently placed fields.
 */

#include "src/role/lock_script.h"

#include "src/base/span.h"
#include "src/role/config.h"
#include "src/role/drop.h"

enum { REASONS_MAX = 8 };

#define A_RATE "limit rate over 1 bytes/second;"

/* Each piece takes 2.3 KB at the most. */
#define PIECES_V4  "limit rate over 32/second burst 128 packets"
#define PIECES_V6  "limit rate over 16/second burst 128 packets"
#define PIECES_SET "size 65536; flags dynamic,timeout; timeout 1m;"

static const struct {
	const char *family, *chains, *declare;
	enum drop_telling telling;
	enum drop_reason reasons[REASONS_MAX];
} tables[] = {
	{ "netdev",
	  "lock from_v4 from_v6 from_arp discovery unspecified solicit "
	  "advertise router_solicit",
	  "\tset own4 { type ifname . ipv4_addr; }\n"
	  "\tset own6 { typeof iifname . @nh,64,128; }\n"
	  "\tset own_mac { typeof iifname . @ll,48,48; }\n"
	  "\tset with_mac { type ifname; }\n"
	  "\tset any_link_local { type ifname; }\n",
	  DROP_TELL_BY_DEVICE,
	  { DROP_OPTIONS, DROP_SOURCE, DROP_ROUTER, DROP_NEIGHBOUR, DROP_MAC,
	    DROP_FRAME, DROP_NUM } },
	{ "inet", "prerouting check piece4 piece6 pace",
	  "\tset held { type ifname; }\n"
	  "\tset own4 { type ifname . ipv4_addr; }\n"
	  "\tset own6 { type ifname . ipv6_addr; }\n"
	  /* every element has a rate of its own (lock_pace.c) */
	  "\tset out4 { type ifname . ipv4_addr; " A_RATE " }\n"
	  "\tset out6 { type ifname . ipv6_addr; " A_RATE " }\n"
	  "\tset in4 { type ifname . ipv4_addr; " A_RATE " }\n"
	  "\tset in6 { type ifname . ipv6_addr; " A_RATE " }\n"
	  "\tset pieces4 { type iface_index . ipv4_addr; " PIECES_SET " }\n"
	  "\tset pieces6 { type iface_index . ipv6_addr; " PIECES_SET " }\n"
	  "\tset pieces { type iface_index; " PIECES_SET " }\n"
	  "\tchain prerouting { type filter hook prerouting priority -450; "
	  "policy accept; }\n"
	  "\tchain pace { type filter hook forward priority filter - 1; "
	  "policy accept; }\n",
	  DROP_TELL_BY_STATION,
	  { DROP_SOURCE, DROP_LIMIT, DROP_NUM } },
	{ "arp", "input check",
	  "\tset held { type ifname; }\n"
	  "\tset own4 { type ifname . ipv4_addr; }\n"
	  "\tchain input { type filter hook input priority -450; "
	  "policy accept; }\n",
	  DROP_TELL_BY_DEVICE,
	  { DROP_NEIGHBOUR, DROP_NUM } },
	{ "bridge", "prerouting forward",
	  "\tset ports { type ifname; }\n"
	  "\tset seen_ports { type ifname; }\n"
	  "\tset macs { type ether_addr; }\n"
	  "\tset port_macs { type ifname . ether_addr; }\n"
	  "\tchain prerouting { type filter hook prerouting priority -300; "
	  "policy accept; }\n"
	  "\tchain forward { type filter hook forward priority -300; "
	  "policy accept; }\n",
	  DROP_TELL_BY_DEVICE,
	  { DROP_MAC, DROP_ISOLATED, DROP_NUM } },
};

static const char rules_netdev[] =
	"table netdev " LOCK_TABLE " {\n"
	"\tchain from_v4 {\n"
	"\t\tip hdrlength != 5 goto drop_options\n"
	"\t\tiifname . ip saddr != @own4 goto drop_source\n"
	"\t\tip protocol igmp goto drop_router\n"
	"\t\tudp sport 67 goto drop_router\n"
	"\t\tmeta mark set " LOCK_MARK " accept\n"
	"\t}\n"
	"\tchain from_v6 {\n"
	"\t\ticmpv6 type { nd-router-solicit, nd-neighbor-solicit, "
	"nd-neighbor-advert } goto discovery\n"
	/* kernels say so of themselves: no attempt of anybody */
	"\t\ticmpv6 type { mld-listener-report, mld-listener-done, "
	"mld2-listener-report } counter drop\n"
	"\t\ticmpv6 type { nd-router-advert, nd-redirect, mld-listener-query, "
	"router-renumbering } goto drop_router\n"
	"\t\tip6 saddr fe80::/10 goto drop_source\n"
	"\t\tiifname . @nh,64,128 != @own6 goto drop_source\n"
	"\t\texthdr rt exists goto drop_options\n"
	"\t\tudp sport 547 goto drop_router\n"
	"\t\tmeta mark set " LOCK_MARK " accept\n"
	"\t}\n"
	/* protocols by words of nft's own grammar: others it looks up in
	 * /etc/protocols, which not every system has */
	"\tchain discovery {\n"
	"\t\tip6 nexthdr != icmpv6 goto drop_neighbour\n"
	"\t\tip6 hoplimit != 255 goto drop_neighbour\n"
	"\t\tip6 saddr :: goto unspecified\n"
	"\t\tiifname @any_link_local ip6 saddr fe80::/10 icmpv6 type vmap { "
	"nd-router-solicit : goto router_solicit, "
	"nd-neighbor-solicit : goto solicit, "
	"nd-neighbor-advert : goto advertise }\n"
	"\t\tiifname . @nh,64,128 != @own6 goto drop_neighbour\n"
	"\t\ticmpv6 type vmap { nd-router-solicit : goto router_solicit, "
	"nd-neighbor-solicit : goto solicit, "
	"nd-neighbor-advert : goto advertise }\n"
	"\t\tgoto drop_neighbour\n"
	"\t}\n"
	/* RFC 4862 5.4.2 and RFC 7527: a nonce may follow */
	"\tchain unspecified {\n"
	"\t\ticmpv6 type nd-router-solicit ip6 length 8 "
	"meta mark set " LOCK_MARK " accept\n"
	"\t\ticmpv6 type != nd-neighbor-solicit goto drop_neighbour\n"
	"\t\tiifname . @th,64,128 @own6 meta mark set " LOCK_MARK " accept\n"
	"\t\tiifname @any_link_local @th,64,10 0x3fa "
	"meta mark set " LOCK_MARK " accept\n"
	"\t\tgoto drop_neighbour\n"
	"\t}\n"
	"\tchain solicit {\n"
	"\t\tip6 length 24 meta mark set " LOCK_MARK " accept\n"
	"\t\tip6 length != 32 goto drop_neighbour\n"
	"\t\t@th,192,16 != 0x0101 goto drop_neighbour\n"
	"\t\tiifname @with_mac iifname . @th,208,48 != @own_mac goto drop_neighbour\n"
	"\t\tmeta mark set " LOCK_MARK " accept\n"
	"\t}\n"
	"\tchain advertise {\n"
	"\t\tiifname . @th,64,128 != @own6 iifname != @any_link_local "
	"goto drop_neighbour\n"
	"\t\tiifname . @th,64,128 != @own6 @th,64,10 != 0x3fa goto drop_neighbour\n"
	"\t\tip6 length 24 meta mark set " LOCK_MARK " accept\n"
	"\t\tip6 length != 32 goto drop_neighbour\n"
	"\t\t@th,192,16 != 0x0201 goto drop_neighbour\n"
	"\t\tiifname @with_mac iifname . @th,208,48 != @own_mac goto drop_neighbour\n"
	"\t\tmeta mark set " LOCK_MARK " accept\n"
	"\t}\n"
	"\tchain router_solicit {\n"
	"\t\tip6 length 8 meta mark set " LOCK_MARK " accept\n"
	"\t\tip6 length != 16 goto drop_neighbour\n"
	"\t\t@th,64,16 != 0x0101 goto drop_neighbour\n"
	"\t\tiifname @with_mac iifname . @th,80,48 != @own_mac goto drop_neighbour\n"
	"\t\tmeta mark set " LOCK_MARK " accept\n"
	"\t}\n"
	"\tchain from_arp {\n"
	"\t\tarp htype != 1 goto drop_neighbour\n"
	"\t\tarp ptype != ip goto drop_neighbour\n"
	"\t\tarp hlen != 6 goto drop_neighbour\n"
	"\t\tarp plen != 4 goto drop_neighbour\n"
	"\t\tarp operation != { request, reply } goto drop_neighbour\n"
	"\t\tiifname @with_mac iifname . @nh,64,48 != @own_mac goto drop_neighbour\n"
	"\t\tiifname . arp saddr ip @own4 meta mark set " LOCK_MARK " accept\n"
	"\t\tarp operation request arp saddr ip 0.0.0.0 "
	"iifname . arp daddr ip @own4 "
	"meta mark set " LOCK_MARK " accept\n"
	"\t\tgoto drop_neighbour\n"
	"\t}\n"
	"\tchain " LOCK_CHAIN " {\n"
	"\t\tmeta mark " LOCK_MARK " accept\n"
	"\t\tiifname @with_mac iifname . @ll,48,48 != @own_mac goto drop_mac\n"
	"\t\t@ll,96,16 vmap { 0x0800 : goto from_v4, 0x86dd : goto from_v6, "
	"0x0806 : goto from_arp }\n"
	"\t\tgoto drop_frame\n"
	"\t}\n"
	"}\n";

static const char rules_behind[] =
	"table inet " LOCK_TABLE " {\n"
	"\tchain piece4 {\n"
	"\t\tmeta mark " LOCK_MARK " add @pieces4 { iif . ip saddr " PIECES_V4
	" } goto drop_limit\n"
	"\t\tmeta mark != " LOCK_MARK " add @pieces { iif " PIECES_V6
	" } goto drop_source\n"
	"\t}\n"
	"\tchain piece6 {\n"
	"\t\tmeta mark " LOCK_MARK " add @pieces6 { iif . ip6 saddr " PIECES_V6
	" } goto drop_limit\n"
	"\t\tmeta mark != " LOCK_MARK " add @pieces { iif " PIECES_V6
	" } goto drop_source\n"
	"\t}\n"
	"\tchain check {\n"
	"\t\tip frag-off & 0x3fff != 0 jump piece4\n"
	"\t\texthdr frag exists jump piece6\n"
	"\t\tmeta mark " LOCK_MARK " meta mark set 0 accept\n"
	/* so kernels begin at a device, which may be before its chain */
	"\t\tiifname @held ip6 saddr :: counter drop\n"
	"\t\tiifname @held icmpv6 type { nd-router-solicit, "
	"mld-listener-report, mld-listener-done, mld2-listener-report } "
	"counter drop\n"
	"\t\tiifname @held goto drop_source\n"
	"\t\tiifname . ip saddr @own4 goto drop_source\n"
	"\t\tiifname . ip6 saddr @own6 goto drop_source\n"
	"\t}\n"
	"\tchain pace {\n"
	"\t\tiifname . ip saddr @out4 goto drop_limit\n"
	"\t\tiifname . ip6 saddr @out6 goto drop_limit\n"
	"\t\toifname . ip daddr @in4 counter drop\n"
	"\t\toifname . ip6 daddr @in6 counter drop\n"
	"\t}\n"
	"}\n"
	"table arp " LOCK_TABLE " {\n"
	"\tchain check {\n"
	"\t\tmeta mark " LOCK_MARK " accept\n"
	"\t\tiifname @held goto drop_neighbour\n"
	"\t\tiifname . arp saddr ip @own4 goto drop_neighbour\n"
	"\t}\n"
	"}\n"
	"table bridge " LOCK_TABLE " {\n"
	"\tchain prerouting {\n"
	"\t\tiifname @ports ether saddr @macs "
	"iifname . ether saddr != @port_macs goto drop_mac\n"
	"\t\tiifname @seen_ports ether saddr @macs "
	"iifname . ether saddr != @port_macs goto drop_mac\n"
	"\t}\n"
	"\tchain forward {\n"
	/* broadcasts go to every port: that is no attempt */
	"\t\tiifname @ports ether daddr & 01:00:00:00:00:00 == "
	"00:00:00:00:00:00 goto drop_isolated\n"
	"\t\tiifname @seen_ports ether daddr & 01:00:00:00:00:00 == "
	"00:00:00:00:00:00 goto drop_isolated\n"
	"\t\tiifname @ports counter drop\n"
	"\t\toifname @ports counter drop\n"
	"\t\tiifname @seen_ports counter drop\n"
	"\t\toifname @seen_ports counter drop\n"
	"\t}\n"
	"}\n";

/* Before the hook of the same chain. */
static const char rules_whole_tcp[] =
	"table inet " LOCK_TABLE " {\n"
	"\tchain prerouting {\n"
	"\t\tmeta mark " LOCK_MARK " ip frag-off & 0x3fff == 0 "
	"ip protocol tcp accept\n"
	"\t\tmeta mark " LOCK_MARK " ip6 nexthdr tcp accept\n"
	"\t}\n"
	"}\n";

static int put_emptied_chains(struct buf *out, const char *family,
			      const char *chains)
{
	struct span rest = span_str(chains), name;
	int r = 0;

	while (!r && rest.len) {
		name = span_cut(&rest, ' ');
		r = buf_putf(out,
			     "add chain %s " LOCK_TABLE " %.*s\n"
			     "flush chain %s " LOCK_TABLE " %.*s\n",
			     family, SPAN_FMT(name), family, SPAN_FMT(name));
	}
	return r;
}

/* Only what comes from a sandbox interface is looked at. */
static int put_hook(struct buf *out, const struct config *config,
		    const char *family, const char *chain)
{
	size_t i;
	int r = 0;

	for (i = 0; !r && i < config->interfaces.count; i++)
		r = buf_putf(out,
			     "add rule %s " LOCK_TABLE
			     " %s iifname \"%s\" goto check\n",
			     family, chain, config->interfaces.items[i]);
	return r;
}

/* The chains that count, tell and drop: declared empty like the others, so that
 * what stands is written anew. */
static int put_drops(struct buf *out, const struct config *config, bool tells)
{
	const enum drop_reason *reason;
	enum drop_telling telling;
	size_t i;
	int r = 0;

	for (i = 0; !r && i < ARRAY_LEN(tables); i++) {
		telling = tells ? tables[i].telling : DROP_TELL_NOTHING;
		for (reason = tables[i].reasons; !r && *reason != DROP_NUM;
		     reason++)
			r = buf_putf(out,
				     "add chain %s " LOCK_TABLE " " DROP_PREFIX
				     "%s\n"
				     "flush chain %s " LOCK_TABLE
				     " " DROP_PREFIX "%s\n",
				     tables[i].family, drop_name(*reason),
				     tables[i].family, drop_name(*reason));
		if (!r)
			r = buf_putf(out, "table %s " LOCK_TABLE " {\n",
				     tables[i].family);
		if (!r)
			r = drop_put_objects(out, tables[i].reasons, telling);
		if (!r)
			r = drop_put_chains(out, config, tables[i].reasons,
					    telling);
		if (!r)
			r = buf_put_str(out, "}\n");
	}
	return r;
}

int lock_script(const struct config *config, const struct lock_script_how *how,
		struct buf *out)
{
	int r = how->fresh ? lock_script_remove(out) : 0;
	size_t i;

	for (i = 0; !r && i < ARRAY_LEN(tables); i++) {
		r = buf_putf(out, "table %s " LOCK_TABLE " {\n%s}\n",
			     tables[i].family, tables[i].declare);
		if (!r)
			r = put_emptied_chains(out, tables[i].family,
					       tables[i].chains);
	}
	if (!r)
		r = put_drops(out, config, how->tells);
	if (!r)
		r = buf_put_str(out, rules_netdev);
	if (!r)
		r = buf_put_str(out, rules_behind);
	if (!r)
		r = buf_put_str(out, rules_whole_tcp);
	if (!r)
		r = put_hook(out, config, "inet", "prerouting");
	if (!r)
		r = put_hook(out, config, "arp", "input");
	return r;
}

int lock_script_remove(struct buf *out)
{
	size_t i;
	int r = 0;

	for (i = 0; !r && i < ARRAY_LEN(tables); i++)
		r = buf_putf(out,
			     "table %s " LOCK_TABLE "\n"
			     "delete table %s " LOCK_TABLE "\n",
			     tables[i].family, tables[i].family);
	return r;
}
