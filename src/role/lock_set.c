/* SPDX-License-Identifier: Apache-2.0 */
/* lock_set.c - a lock as elements: what goes into which set
 *
 * How it works: a map from (set, key) to the number of owners. The first owner
 * adds the element, the last takes it away; so a lock is changed by adding the
 * new one and taking the old one back, and what both have is not touched.
 *
 * One that awaits its port makes its bridge held and no more: nothing passes
 * that no port has marked. Its addresses are of no device yet. Were they the
 * bridge's, the chain there would see the packets of all ports, and without
 * their mark, which prerouting takes before when the kernel runs it for bridged
 * packets (lock_bridge.c); it would take them for this one's and drop them.
 */

#include "src/role/lock_set.h"

#include <assert.h>
#include <linux/netfilter.h>
#include <string.h>

#include "src/base/addr.h"
#include "src/base/err.h"
#include "src/role/lock_script.h"

enum set {
	OWN4,
	OWN6,
	OWN_MAC,
	WITH_MAC,
	ANY_LINK_LOCAL,
	HELD,
	BEHIND4,
	BEHIND6,
	ARP_HELD,
	ARP_BEHIND4,
	PORTS,
	SEEN_PORTS,
	MACS,
	PORT_MACS,
	SET_NUM,
};

const struct nfnl_table lock_netdev = { NFPROTO_NETDEV, LOCK_TABLE };

static const struct set_row {
	uint8_t family;
	const char *name;
} sets[SET_NUM] = {
	[OWN4] = { NFPROTO_NETDEV, "own4" },
	[OWN6] = { NFPROTO_NETDEV, "own6" },
	[OWN_MAC] = { NFPROTO_NETDEV, "own_mac" },
	[WITH_MAC] = { NFPROTO_NETDEV, "with_mac" },
	[ANY_LINK_LOCAL] = { NFPROTO_NETDEV, "any_link_local" },
	[HELD] = { NFPROTO_INET, "held" },
	[BEHIND4] = { NFPROTO_INET, "own4" },
	[BEHIND6] = { NFPROTO_INET, "own6" },
	[ARP_HELD] = { NFPROTO_ARP, "held" },
	[ARP_BEHIND4] = { NFPROTO_ARP, "own4" },
	[PORTS] = { NFPROTO_BRIDGE, "ports" },
	[SEEN_PORTS] = { NFPROTO_BRIDGE, "seen_ports" },
	[MACS] = { NFPROTO_BRIDGE, "macs" },
	[PORT_MACS] = { NFPROTO_BRIDGE, "port_macs" },
};

/* The set's number, then the key as the kernel has it: a name fills 16 bytes,
 * the rest is padded to 4. */
struct element {
	uint8_t bytes[1 + MSG_IFACE_SIZE + 16];
	uint8_t len;
};
static_assert(MSG_IFACE_SIZE == 16, "the kernel's size of interface names");

static struct element element_of(enum set set, const char *name,
				 const uint8_t *value, size_t len)
{
	struct element e = { .bytes = { (uint8_t)set }, .len = 1 };

	if (name) {
		memcpy(e.bytes + e.len, name, strlen(name));
		e.len += MSG_IFACE_SIZE;
	}
	if (len)
		memcpy(e.bytes + e.len, value, len);
	/* a key that is one value alone is not padded */
	e.len = (uint8_t)(e.len + (name ? (len + 3) & ~(size_t)3 : len));
	return e;
}

struct target {
	struct lock_set *sets;
	struct nfnl *n;
	bool add;
};

static void change(const struct target *t, enum set set, const char *name,
		   const uint8_t *value, size_t len)
{
	const struct element e = element_of(set, name, value, len);
	struct span key = span_of((const char *)e.bytes, e.len);
	const struct nfnl_table table = { sets[set].family, LOCK_TABLE };
	uintptr_t before = (uintptr_t)map_find(&t->sets->counts, key);
	uintptr_t after = t->add ? before + 1 : before - 1;

	must(t->add || before);
	if (after)
		(void)map_set(&t->sets->counts, key, (void *)after);
	else
		(void)map_take(&t->sets->counts, key);
	if (t->n && !before != !after)
		nfnl_element(t->n, &table, sets[set].name, span_from(key, 1),
			     t->add);
}

/* RFC 4291 appendix A: fe80:: and the hardware address around ff:fe. */
static void link_local(const uint8_t mac[6], uint8_t ret[16])
{
	const uint8_t ip[16] = { 0xfe, 0x80,   0,	   0,	   0,	   0,
				 0,    0,      mac[0] ^ 2, mac[1], mac[2], 0xff,
				 0xfe, mac[3], mac[4],	   mac[5] };

	memcpy(ret, ip, sizeof(ip));
}

static void own_ip(const struct target *t, const struct msg_lock *m,
		   const char *device, const uint8_t ip[16])
{
	struct addr a = { 0 };

	memcpy(a.ip, ip, sizeof(a.ip));
	if (addr_is_v4(&a)) {
		change(t, OWN4, device, ip + 12, 4);
		if (m->port[0]) {
			change(t, BEHIND4, m->iface, ip + 12, 4);
			change(t, ARP_BEHIND4, m->iface, ip + 12, 4);
		}
		return;
	}
	change(t, OWN6, device, ip, 16);
	if (m->port[0])
		change(t, BEHIND6, m->iface, ip, 16);
}

static void own_mac(const struct target *t, const struct msg_lock *m,
		    const char *device)
{
	uint8_t ip[16];

	link_local(m->mac, ip);
	own_ip(t, m, device, ip);
	change(t, WITH_MAC, device, NULL, 0);
	change(t, OWN_MAC, device, m->mac, sizeof(m->mac));
	if (!m->port[0])
		return;
	change(t, MACS, NULL, m->mac, sizeof(m->mac));
	change(t, PORT_MACS, device, m->mac, sizeof(m->mac));
}

void lock_set_own(struct lock_set *s, struct nfnl *n, const struct msg_lock *m,
		  bool add)
{
	const struct target t = { s, n, add };
	const char *device = m->port[0] ? m->port : m->iface;
	uint32_t i;

	for (i = 0; i < m->addr_count && !m->awaits_port; i++)
		own_ip(&t, m, device, m->addrs[i]);
	if (m->has_mac && !m->awaits_port)
		own_mac(&t, m, device);
	else if (!m->awaits_port)
		change(&t, ANY_LINK_LOCAL, device, NULL, 0);
	if (m->port[0]) {
		change(&t, PORTS, device, NULL, 0);
		return;
	}
	change(&t, HELD, device, NULL, 0);
	change(&t, ARP_HELD, device, NULL, 0);
}

void lock_set_port(struct lock_set *s, struct nfnl *n, const char *port,
		   bool add)
{
	const struct target t = { s, n, add };

	change(&t, SEEN_PORTS, port, NULL, 0);
}

void lock_set_refill(const struct lock_set *s, struct nfnl *n)
{
	struct nfnl_table table = { 0, LOCK_TABLE };
	size_t cursor = 0, set;
	struct span key;

	for (set = 0; set < SET_NUM; set++) {
		table.family = sets[set].family;
		nfnl_flush_set(n, &table, sets[set].name);
	}
	while (map_next(&s->counts, &cursor, &key)) {
		set = (uint8_t)key.ptr[0];
		table.family = sets[set].family;
		nfnl_element(n, &table, sets[set].name, span_from(key, 1),
			     true);
	}
}

void lock_set_init(struct lock_set *s)
{
	map_init(&s->counts);
}

void lock_set_fini(struct lock_set *s)
{
	map_fini(&s->counts);
}
