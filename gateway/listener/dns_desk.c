/* SPDX-License-Identifier: Apache-2.0 */
/* dns_desk.c - identify and decide for the DNS server, and audit denials */

#include "gateway/listener/dns_desk.h"

#include "gateway/dns/resolver.h"
#include "gateway/dns/server.h"
#include "gateway/gateway.h"
#include "gateway/listener/listener.h"
#include "gateway/pipeline/decide.h"
#include "gateway/proxy/proxy.h"
#include "gateway/registry/learned.h"
#include "gateway/registry/quota.h"
#include "gateway/upstream/chain.h"
#include "gateway/worker.h"
#include "src/base/clock.h"
#include "src/base/err.h"

enum { RECORD_ARENA_BYTES = 16 * 1024 };

static struct sandbox *desk_identify(struct worker *w,
				     const struct dns_client *client)
{
	char iface[MSG_IFACE_SIZE];

	listener_iface_name(w->probe, client->ifindex, iface);
	return facts_find_sandbox(&w->facts, &client->source, iface);
}

static void desk_say(struct dns_decision *d, enum audit_reason reason,
		     const char *text)
{
	d->reason = reason;
	(void)span_copy(span_str(text), d->text, sizeof(d->text));
}

static void on_decide(void *ctx, const struct dns_client *client,
		      struct span host, struct dns_decision *ret)
{
	struct worker *w = ctx;
	struct sandbox *s = desk_identify(w, client);
	struct verdict v;

	if (!s) {
		desk_say(ret, AUDIT_REASON_UNKNOWN_SANDBOX,
			 audit_reason_text(AUDIT_REASON_UNKNOWN_SANDBOX));
		return;
	}
	ret->token = sandbox_ref(s);
	if (!quota_take(s->quota, QUOTA_DNS, clock_us())) {
		ret->limited = true;
		desk_say(ret, AUDIT_REASON_LIMIT,
			 audit_reason_text(AUDIT_REASON_LIMIT));
		return;
	}
	ret->allowed = decide_name(w, s, host, &v) || proxy_is_named(w, host);
	if (ret->allowed)
		return;
	ret->reason = AUDIT_REASON_POLICY;
	policy_sentence(facts_overlay(&w->facts), facts_policy(&w->facts, s),
			&v, ret->text, sizeof(ret->text));
}

static enum address_source source_of(enum name_source source)
{
	return source == NAME_PIN ? ADDRESS_PIN : ADDRESS_DNS;
}

static bool is_left_to_proxy(struct worker *w, struct span host)
{
	return chain_resolves(w->chain, host) &&
	       !resolver_is_local(w->resolver, host);
}

/* Where names are the upstream proxy's to resolve, any address that leads a
 * connection here will do: the name that it says is what counts. */
static bool on_stand_in(void *ctx, struct span host, struct name_answer *ret)
{
	static _Thread_local struct addr addrs[PROXY_ADDRS];

	if (!is_left_to_proxy(ctx, host))
		return false;
	proxy_addresses(addrs);
	*ret = (struct name_answer){ .status = NAME_OK,
				     .source = NAME_HOSTS,
				     .addrs = addrs,
				     .count = PROXY_ADDRS };
	return true;
}

static bool on_may_see(void *ctx, const struct dns_decision *decision,
		       struct span host, const struct addr *address,
		       enum name_source source)
{
	if (proxy_is_named(ctx, host) || is_left_to_proxy(ctx, host))
		return true;
	return decide_answer(ctx, decision->token, address, source_of(source));
}

/* A name is asked about like any other; a port must be one that policy lets
 * the sandbox connect to, perhaps with a look inside. */
static bool on_may_lead(void *ctx, const struct dns_decision *decision,
			struct span host, struct span target, uint16_t port)
{
	struct destination d = { .port = port };
	const struct sandbox *s = decision->token;
	struct worker *w = ctx;
	struct arena arena;
	struct verdict v;
	bool may;

	if (target.len && !decide_name(w, s, target, &v))
		return false;
	if (!port)
		return true;
	must(host_canon(host, &d.host));
	arena_init(&arena, RECORD_ARENA_BYTES);
	may = decide_connect(w, s, &d, NULL, &arena, &v) != NULL;
	arena_fini(&arena);
	return may;
}

static bool on_may_ask(void *ctx, struct dns_decision *decision,
		       struct span host)
{
	if (decide_upstream(ctx, decision->token, host))
		return true;
	desk_say(decision, AUDIT_REASON_DNS_LIMIT,
		 audit_reason_text(AUDIT_REASON_DNS_LIMIT));
	return false;
}

/* Why the question got nothing. */
static enum audit_reason desk_reason(const struct dns_event *event)
{
	switch (event->end) {
	case DNS_END_DENIED:
	case DNS_END_LIMITED:
		return (enum audit_reason)event->decision->reason;
	case DNS_END_FILTERED:
		return AUDIT_REASON_NO_ALLOWED_ADDRESS;
	case DNS_END_REFUSED: /* what was asked is no host name, or no type */
	case DNS_END_FAILED:
	case DNS_END_ANSWERED:
		break;
	}
	return AUDIT_REASON_MALFORMED;
}

static void desk_record(struct worker *w, const struct dns_event *event,
			struct sandbox *s)
{
	struct audit a = {
		.kind = AUDIT_DNS,
		.start_us = clock_us() - event->took_ms * 1000,
		.client = event->client->source,
		.original = event->client->destination,
		.scheme = "dns",
		.host = event->host,
		.port = event->client->destination.port,
		.reason = desk_reason(event),
	};
	bool is_limited =
		event->end == DNS_END_LIMITED || event->decision->limited;
	bool is_bounded = is_limited || event->end == DNS_END_REFUSED;
	struct arena arena;
	struct verdict v;

	arena_init(&arena, RECORD_ARENA_BYTES);
	if (!s) /* it was refused before anybody was asked */
		s = desk_identify(w, event->client);
	if (s)
		a.sandbox = span_str(s->id);
	if (s && event->end != DNS_END_REFUSED) {
		(void)decide_name(w, s, event->host, &v);
		decide_audit(w, s, &v, &arena, &a);
	}
	if (event->end == DNS_END_FILTERED || is_limited)
		a.detail = span_str(audit_reason_text(a.reason));
	else if (!a.detail.len)
		a.detail = span_str(event->decision->text);
	a.allowed = false;
	if (is_bounded)
		worker_refused(w, s, &a);
	else
		worker_record(w, s, &a);
	arena_fini(&arena);
}

/* Under the name that was asked for, which is the one policy allowed, whatever
 * aliases led from it to the addresses. */
static void desk_teach(struct worker *w, const struct dns_event *event,
		       const struct sandbox *s)
{
	unsigned i;

	for (i = 0; i < event->addr_count && !s->gone; i++)
		learned_add(gateway_learned(w->gateway), span_str(s->id),
			    event->host, &event->addrs[i], event->ttl_s,
			    loop_now_ms(w->loop));
}

static void on_audit(void *ctx, const struct dns_event *event)
{
	struct sandbox *s = event->decision->token;

	switch (event->end) {
	case DNS_END_ANSWERED:
		desk_teach(ctx, event, s);
		break;
	case DNS_END_DENIED:
	case DNS_END_REFUSED:
	case DNS_END_LIMITED:
	case DNS_END_FILTERED:
		desk_record(ctx, event, s);
		break;
	case DNS_END_FAILED:
		break;
	}
	(void)sandbox_unref(s);
}

int dns_desk_open(struct worker *w, struct dns_server **ret)
{
	static const struct dns_server_ops ops = {
		.decide = on_decide,
		.stand_in = on_stand_in,
		.may_see = on_may_see,
		.may_lead = on_may_lead,
		.may_ask = on_may_ask,
		.audit = on_audit,
	};
	const struct dns_server_config config = {
		.counters = &w->dns_counters,
	};

	return err_trace(
		dns_server_new(w->loop, w->resolver, &config, &ops, w, ret));
}
