/* SPDX-License-Identifier: Apache-2.0 */
/* drop_record.c - who was it, what was it, was it said already
 *
 * How it works: the kernel tells of so many packets a second of each sandbox
 * and reason. Here they go through the buckets of flow_record.c, but for the
 * first of a sandbox and reason in FIRST_MS, which is found by a hash: so what a
 * sandbox does in masses does not hide what it does once, and a busy node does
 * not hide a quiet sandbox.
 */

#include "gateway/flow/drop_record.h"

#include <net/ethernet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/audit/audit.h"
#include "gateway/flow/flow_record.h"
#include "gateway/listener/listener.h"
#include "gateway/worker.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/map.h"

enum { CELLS = 4096, FIRST_MS = 10 * 1000 };

struct drop_seen {
	uint64_t next_ms[CELLS]; /* 0: never seen */
};

static const enum audit_reason reasons[DROP_NUM] = {
	[DROP_PROTOCOL] = AUDIT_REASON_PROTOCOL,
	[DROP_FRAGMENT] = AUDIT_REASON_FRAGMENT,
	[DROP_SOURCE] = AUDIT_REASON_SOURCE,
	[DROP_MAC] = AUDIT_REASON_MAC,
	[DROP_NEIGHBOUR] = AUDIT_REASON_NEIGHBOUR,
	[DROP_FRAME] = AUDIT_REASON_FRAME,
	[DROP_OPTIONS] = AUDIT_REASON_OPTIONS,
	[DROP_ROUTER] = AUDIT_REASON_ROUTER,
	[DROP_ISOLATED] = AUDIT_REASON_ISOLATED,
	[DROP_GROUP] = AUDIT_REASON_GROUP,
	[DROP_NO_FLOW] = AUDIT_REASON_NO_FLOW,
	[DROP_LIMIT] = AUDIT_REASON_LIMIT,
	[DROP_NODE] = AUDIT_REASON_ADDRESS,
	[DROP_UNDECIDED] = AUDIT_REASON_UNDECIDED,
	[DROP_MALFORMED] = AUDIT_REASON_MALFORMED,
	[DROP_QUEUE_FULL] = AUDIT_REASON_QUEUE_FULL,
};

struct drop_seen *drop_seen_new(void)
{
	return must_alloc(sizeof(struct drop_seen));
}

struct drop_seen *drop_seen_free(struct drop_seen *s)
{
	free(s);
	return NULL;
}

static bool is_first(struct drop_seen *s, const struct msg_drop *m,
		     struct span who, uint64_t now_ms)
{
	const uint64_t key[] = { m->ifindex, m->reason, map_hash(who) };
	uint64_t hash = map_hash(span_of((const char *)key, sizeof(key)));
	uint64_t *next_ms = &s->next_ms[hash % CELLS];

	if (*next_ms > now_ms)
		return false;
	*next_ms = now_ms + FIRST_MS;
	return true;
}

static bool is_ip(const struct msg_drop *m)
{
	return m->ethertype == ETHERTYPE_IP || m->ethertype == ETHERTYPE_IPV6;
}

static const char *scheme_of(const struct msg_drop *m)
{
	if (!m->ethertype && m->count > 1)
		return NULL; /* of some kind or other */
	if (m->ethertype == ETHERTYPE_ARP)
		return "arp";
	if (!is_ip(m))
		return "frame";
	switch (m->protocol) {
	case IPPROTO_TCP:
		return "tcp";
	case IPPROTO_UDP:
		return "udp";
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return "icmp";
	default:
		return "ip";
	}
}

/* Is the packet one that came as far as our rules for IP? The lock, which is
 * before them, drops what has a locked address and is another's. */
static bool is_locked(uint32_t reason)
{
	switch ((enum drop_reason)reason) {
	case DROP_SOURCE:
	case DROP_MAC:
	case DROP_NEIGHBOUR:
	case DROP_FRAME:
	case DROP_OPTIONS:
	case DROP_ROUTER:
	case DROP_ISOLATED:
	case DROP_NUM:
		return false;
	case DROP_PROTOCOL:
	case DROP_FRAGMENT:
	case DROP_GROUP:
	case DROP_NO_FLOW:
	case DROP_LIMIT:
	case DROP_NODE:
	case DROP_UNDECIDED:
	case DROP_MALFORMED:
	case DROP_QUEUE_FULL:
		break;
	}
	return true;
}

bool drop_record(struct worker *w, struct flow_rate *rate,
		 struct drop_seen *seen, const struct msg_drop *m)
{
	struct audit a = { .kind = AUDIT_PACKET, .start_us = clock_us() };
	uint64_t now_ms = loop_now_ms(w->loop);
	char device[MSG_IFACE_SIZE] = "";
	const struct sandbox *s = NULL;
	struct span who;

	if (m->reason >= DROP_NUM || !m->count)
		return false;
	memcpy(a.client.ip, m->source, sizeof(a.client.ip));
	memcpy(a.original.ip, m->destination, sizeof(a.original.ip));
	a.client.port = m->source_port;
	a.original.port = a.port = m->port;
	a.scheme = scheme_of(m);
	a.protocol = is_ip(m) ? m->protocol : 0;
	a.reason = reasons[m->reason];
	a.detail = span_str(audit_reason_text(a.reason));
	a.alike = m->count;
	if (m->ifindex) {
		listener_iface_name(w->probe, m->ifindex, device);
		a.device = span_str(device);
		s = facts_find_device(&w->facts, &a.client, device,
				      is_locked(m->reason));
	}
	if (s)
		a.sandbox = span_str(s->id);
	worker_counted(w, packets_dropped);
	who = s ? a.sandbox : a.device;
	if (!is_first(seen, m, who, now_ms) &&
	    !flow_rate_allows(rate, who, now_ms)) {
		worker_counted(w, flows_unrecorded);
		return true;
	}
	audit_emit(w->audit_log, &a);
	return true;
}
