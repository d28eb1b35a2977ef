/* SPDX-License-Identifier: Apache-2.0 */
/* flow_decide.c - identify, ask policy by name and by address, guard
 *
 * How it works: the sandbox is (interface, source), as for TCP. Policy is asked
 * about the address together with each name that was learned for it, last used
 * first; one that allows is enough. If none does, but policy itself said no to
 * one of them (a rule, not the lack of one), it is no. Else policy is asked
 * about the address alone. The guard of addresses then holds as for TCP: the
 * node's own addresses never, others that are not public only when a rule names
 * them or a pin put them there.
 */

#include "gateway/flow/flow_decide.h"

#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <string.h>

#include "gateway/dns/names.h"
#include "gateway/gateway.h"
#include "gateway/listener/listener.h"
#include "gateway/pipeline/decide.h"
#include "gateway/registry/learned.h"
#include "gateway/registry/quota.h"
#include "gateway/upstream/chain.h"
#include "gateway/worker.h"
#include "src/base/clock.h"
#include "src/base/err.h"

/* One question, asked for each name. */
struct flow_names {
	struct worker *worker;
	enum policy_protocol protocol;
	struct flow_decision *d;
	bool refused; /* a rule says no to one of the names */
};

static bool rule_refuses(const struct verdict *v)
{
	return v->kind == VERDICT_DENY &&
	       (v->source == VERDICT_RULE ||
		v->source == VERDICT_OVERLAY_DENY ||
		v->source == VERDICT_FOREIGN_RESOLVER);
}

static bool is_pinned(const struct facts *f, struct span host,
		      const struct addr *address)
{
	struct name_answer answer;
	unsigned i;

	if (!f->names || !names_find(f->names, host, &answer) ||
	    answer.source != NAME_PIN)
		return false;
	for (i = 0; i < answer.count; i++)
		if (addr_eq_ip(&answer.addrs[i], address))
			return true;
	return false;
}

static bool guard(struct worker *w, const struct flow_decision *d,
		  enum policy_protocol protocol, struct span host)
{
	const struct policy_query q = {
		.stage = POLICY_CONNECT,
		.protocol = protocol,
		.address = &d->destination,
		.port = d->destination.port,
	};
	bool pinned = host.len && is_pinned(&w->facts, host, &d->destination);

	return decide_guard(w, d->sandbox, &q,
			    pinned ? ADDRESS_PIN : ADDRESS_DNS);
}

/* Fills the decision; true: allowed. */
static bool try_name(struct worker *w, struct flow_decision *d,
		     enum policy_protocol protocol, struct span host)
{
	bool allowed = decide_flow(w, d->sandbox, protocol, host,
				   &d->destination, &d->by);

	if (!host_canon(host, &d->host))
		d->host = (struct host){ 0 };
	d->reason = AUDIT_REASON_POLICY;
	if (!allowed)
		return false;
	d->reason = AUDIT_REASON_ADDRESS;
	if (!guard(w, d, protocol, host))
		return false;
	d->reason = AUDIT_REASON_NONE;
	return true;
}

static bool on_name(void *ctx, struct span host)
{
	struct flow_names *n = ctx;
	struct flow_decision attempt = *n->d;
	bool refuses;

	if (try_name(n->worker, &attempt, n->protocol, host)) {
		*n->d = attempt;
		return true;
	}
	refuses = attempt.reason == AUDIT_REASON_POLICY &&
		  rule_refuses(&attempt.by);
	if (refuses && !n->refused)
		*n->d = attempt;
	n->refused |= refuses;
	return false;
}

static bool ask_policy(struct worker *w, struct flow_decision *d,
		       enum policy_protocol protocol)
{
	struct flow_names n = { .worker = w, .protocol = protocol, .d = d };
	struct learned *learned = gateway_learned(w->gateway);
	struct span id = span_str(d->sandbox->id);
	uint64_t now_ms = loop_now_ms(w->loop);

	if (learned_each(learned, id, &d->destination, now_ms, on_name, &n)) {
		learned_use(learned, id, &d->destination, now_ms);
		return true;
	}
	return !n.refused && try_name(w, d, protocol, SPAN_NONE);
}

/* Of ICMP a sandbox may ask for an echo; the rest is about flows that are
 * there, which the kernel knows, or about the network, which is not theirs. */
static bool protocol_of(const struct msg_flow *f, struct flow_decision *d,
			enum policy_protocol *ret)
{
	switch (f->protocol) {
	case IPPROTO_UDP:
		d->scheme = "udp";
		*ret = PROTOCOL_UDP;
		return true;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		d->scheme = "icmp";
		*ret = PROTOCOL_ICMP;
		return f->icmp_type == (f->protocol == IPPROTO_ICMP
						? ICMP_ECHO
						: ICMP6_ECHO_REQUEST) &&
		       !f->icmp_code;
	default:
		return false;
	}
}

void flow_decide(struct worker *w, const struct msg_flow *flow,
		 struct flow_decision *ret)
{
	enum policy_protocol protocol;
	char iface[MSG_IFACE_SIZE];

	*ret = (struct flow_decision){ .verdict = FLOW_DROP };
	memcpy(ret->client.ip, flow->client, sizeof(ret->client.ip));
	memcpy(ret->destination.ip, flow->destination,
	       sizeof(ret->destination.ip));
	ret->client.port = flow->client_port;
	ret->destination.port = flow->port;
	listener_iface_name(w->probe, flow->ifindex, iface);
	ret->sandbox = facts_find_sandbox(&w->facts, &ret->client, iface);
	ret->reason = AUDIT_REASON_PROTOCOL;
	if (!protocol_of(flow, ret, &protocol))
		return;
	ret->verdict = FLOW_REJECT;
	ret->reason = AUDIT_REASON_UNKNOWN_SANDBOX;
	if (!ret->sandbox)
		return;
	ret->reason = AUDIT_REASON_LIMIT;
	if (!flow->again &&
	    !quota_take(ret->sandbox->quota, QUOTA_CONNECTS, clock_us()))
		return;
	if (!ask_policy(w, ret, protocol))
		return;
	if (chain_takes(w->chain, host_span(&ret->host), &ret->destination))
		ret->reason = AUDIT_REASON_UPSTREAM_PROXY; /* TCP alone */
	else
		ret->verdict = FLOW_ALLOW;
}
