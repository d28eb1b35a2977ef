/* SPDX-License-Identifier: Apache-2.0 */
/* dns_desk.c - identify and decide for the DNS server, and audit denials */

#include "gateway/listener/dns_desk.h"

#include "gateway/dns/server.h"
#include "gateway/gateway.h"
#include "gateway/listener/listener.h"
#include "gateway/pipeline/decide.h"
#include "gateway/proxy/proxy.h"
#include "gateway/registry/learned.h"
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

static void on_decide(void *ctx, const struct dns_client *client,
		      struct span host, struct dns_decision *ret)
{
	struct worker *w = ctx;
	struct sandbox *s = desk_identify(w, client);
	struct verdict v;

	if (!s) {
		(void)span_copy(span_str(audit_reason_text(
					AUDIT_REASON_UNKNOWN_SANDBOX)),
				ret->text, sizeof(ret->text));
		return;
	}
	ret->token = sandbox_ref(s);
	ret->allowed = decide_name(w, s, host, &v) || proxy_is_named(w, host);
	if (!ret->allowed)
		policy_sentence(facts_overlay(&w->facts),
				facts_policy(&w->facts, s), &v, ret->text,
				sizeof(ret->text));
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
		.detail = span_str(event->decision->text),
		/* decide was not even asked: what was asked is no host name */
		.reason = event->decision->text[0]
				  ? AUDIT_REASON_UNKNOWN_SANDBOX
				  : AUDIT_REASON_MALFORMED,
	};
	struct arena arena;
	struct verdict v;

	arena_init(&arena, RECORD_ARENA_BYTES);
	if (s) {
		a.reason = AUDIT_REASON_POLICY;
		a.sandbox = span_str(s->id);
		(void)decide_name(w, s, event->host, &v);
		decide_audit(w, s, &v, &arena, &a);
		a.allowed = false;
	}
	audit_emit(w->audit_log, &a);
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

	if (!event->decision->allowed)
		desk_record(ctx, event, s);
	else
		desk_teach(ctx, event, s);
	(void)sandbox_unref(s);
}

int dns_desk_open(struct worker *w, struct dns_server **ret)
{
	static const struct dns_server_ops ops = {
		.decide = on_decide,
		.audit = on_audit,
	};
	const struct dns_server_config config = {
		.counters = &w->dns_counters,
	};

	return err_trace(
		dns_server_new(w->loop, w->resolver, &config, &ops, w, ret));
}
