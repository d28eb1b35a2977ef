/* SPDX-License-Identifier: Apache-2.0 */
/* decide.c - ask policy and, on yes, issue the grant
 *
 * This is the only file that can make a struct grant. Questions are built from
 * the destination that admission proved; raw headers are never read here.
 */

#include "gateway/pipeline/decide.h"

#include "policy/foreign.h"
#include "gateway/dns/resolver.h"
#include "gateway/gateway.h"
#include "gateway/pipeline/grant.h"
#include "gateway/registry/budget.h"
#include "gateway/registry/facts.h"
#include "gateway/worker.h"
#include "src/base/clock.h"
#include "src/role/config.h"

struct grant {
	uint64_t generation; /* of the snapshot that allowed it */
	bool inspect, passthrough;
};

static const struct grant *grant_issue(struct arena *a, const struct verdict *v)
{
	struct grant *g = arena_alloc(a, sizeof(*g));

	if (!g)
		return NULL;
	*g = (struct grant){
		.generation = v->generation,
		.inspect = v->inspect,
		.passthrough = v->passthrough,
	};
	return g;
}

uint64_t grant_generation(const struct grant *g)
{
	return g->generation;
}

bool grant_inspect(const struct grant *g)
{
	return g->inspect;
}

bool grant_passthrough(const struct grant *g)
{
	return g->passthrough;
}

static void ask(struct worker *w, const struct sandbox *s,
		const struct policy_query *q, struct verdict *ret)
{
	*ret = VERDICT_DENY_ALL;
	if (!s->gone)
		foreign_match(facts_overlay(&w->facts),
			      facts_policy(&w->facts, s), q,
			      w->config->dns_allow_foreign_resolvers, ret);
}

bool decide_name(struct worker *w, const struct sandbox *s, struct span host,
		 struct verdict *ret)
{
	const struct policy_query q = {
		.stage = POLICY_NAME,
		.host = host,
	};

	ask(w, s, &q, ret);
	return ret->kind == VERDICT_ALLOW;
}

bool decide_upstream(struct worker *w, const struct sandbox *s,
		     struct span host)
{
	const struct config *c = w->config;
	const struct budget_form form = {
		.name_bytes = c->dns_name_bytes,
		.label_bytes = c->dns_label_bytes,
		.labels = c->dns_labels,
	};
	struct verdict v;

	if (!decide_name(w, s, host, &v))
		return false;
	if (v.exact || resolver_is_local(w->resolver, host))
		return true;
	return budget_form_fits(&form, host) &&
	       budget_take(gateway_budget(w->gateway), span_str(s->id), host,
			   v.labels, loop_now_ms(w->loop));
}

const struct grant *decide_connect(struct worker *w, const struct sandbox *s,
				   const struct destination *d,
				   const struct addr *address,
				   struct arena *arena, struct verdict *ret)
{
	const struct policy_query q = {
		.stage = POLICY_CONNECT,
		.protocol = PROTOCOL_TCP,
		.host = host_span(&d->host),
		.address = address,
		.port = d->port,
	};

	ask(w, s, &q, ret);
	return ret->kind == VERDICT_ALLOW ? grant_issue(arena, ret) : NULL;
}

bool decide_flow(struct worker *w, const struct sandbox *s,
		 enum policy_protocol protocol, struct span host,
		 const struct addr *address, struct verdict *ret)
{
	const struct policy_query q = {
		.stage = POLICY_CONNECT,
		.protocol = protocol,
		.host = host,
		.address = address,
		.port = address->port,
	};

	ask(w, s, &q, ret);
	return ret->kind == VERDICT_ALLOW;
}

bool decide_guard(struct worker *w, const struct sandbox *s,
		  const struct policy_query *q, enum address_source source)
{
	struct verdict v;

	if (source == ADDRESS_PIN)
		return true;
	if (facts_is_own(&w->facts, q->address))
		return false;
	if (addr_kind(q->address) == ADDR_GLOBAL)
		return true;
	ask(w, s, q, &v);
	return v.kind == VERDICT_ALLOW && v.by_address && !v.everywhere;
}

bool decide_address(struct worker *w, const struct sandbox *s,
		    const struct addr *address, enum address_source source)
{
	const struct policy_query q = {
		.stage = POLICY_CONNECT,
		.protocol = PROTOCOL_TCP,
		.address = address,
		.port = address->port,
	};

	return decide_guard(w, s, &q, source);
}

/* As decide_address(), before a port or a protocol is known. */
bool decide_answer(struct worker *w, const struct sandbox *s,
		   const struct addr *address, enum address_source source)
{
	const struct policy_query q = {
		.stage = POLICY_NAME,
		.address = address,
	};

	return decide_guard(w, s, &q, source);
}

bool decide_again(struct worker *w, const struct sandbox *s,
		  const struct destination *d, const struct addr *address,
		  struct arena *arena, struct verdict *ret)
{
	const struct addr *known = address->port ? address : NULL;

	return decide_connect(w, s, d, known, arena, ret) &&
	       (!known || decide_address(w, s, known, d->source));
}

void decide_audit(struct worker *w, const struct sandbox *s,
		  const struct verdict *v, struct arena *arena,
		  struct audit *audit)
{
	struct verdict_origin origin = { 0 };
	char sentence[512];

	policy_origin(facts_overlay(&w->facts), facts_policy(&w->facts, s), v,
		      &origin);
	audit->allowed = v->kind == VERDICT_ALLOW;
	audit->verdict_source = verdict_source_name(v->source);
	audit->policy = arena_dup(arena, origin.policy);
	audit->rule = arena_dup(arena, origin.rule);
	audit->rule_file = arena_dup(arena, origin.file);
	audit->rule_line = origin.line;
	audit->generation = v->generation;
	audit->decided_us = clock_us() - audit->start_us;
	if (!audit->allowed) {
		policy_sentence(facts_overlay(&w->facts),
				facts_policy(&w->facts, s), v, sentence,
				sizeof(sentence));
		audit->detail = arena_dup(arena, span_str(sentence));
	}
}

static struct span value_of(const struct headers *headers, enum header_id id)
{
	const struct header *h = headers ? headers_find(headers, id) : NULL;

	return h ? h->value : SPAN_NONE;
}

static bool is_foreign_request(const struct request *req)
{
	return foreign_is_request(req->path,
				  value_of(req->headers, HEADER_CONTENT_TYPE),
				  value_of(req->headers, HEADER_ACCEPT));
}

static void ask_request(const struct request *req, struct verdict *ret)
{
	const struct destination *d = req->destination;
	struct policy_query q = {
		.stage = POLICY_REQUEST,
		.protocol = PROTOCOL_TCP,
		.host = host_span(&d->host),
		.port = d->port,
		.method = req->method,
		/* a path that reads two ways is unknown: a deny rule with
		 * paths fits it, an allow rule with paths does not */
		.path = req->path_ambiguous ? SPAN_NONE : req->path,
	};
	unsigned i = 0;

	do { /* any of the addresses may be the one that answers */
		q.address = d->addr_count ? &d->addrs[i] : NULL;
		ask(req->worker, req->sandbox, &q, ret);
	} while (ret->kind == VERDICT_ALLOW && ++i < d->addr_count);
	if (!req->worker->config->dns_allow_foreign_resolvers &&
	    is_foreign_request(req))
		foreign_refuse(ret);
}

bool decide_request_again(const struct request *req)
{
	struct verdict v;

	ask_request(req, &v);
	return v.kind == VERDICT_ALLOW;
}

void decide_audit_cut(const struct request *req)
{
	uint64_t decided_us = req->audit->decided_us;
	struct audit *a = req->audit;
	struct verdict v;

	ask_request(req, &v);
	a->policy = a->rule = a->rule_file = a->detail = SPAN_NONE;
	a->verdict_source = NULL;
	a->rule_line = 0;
	if (v.kind != VERDICT_ALLOW)
		decide_audit(req->worker, req->sandbox, &v, req->arena, a);
	a->allowed = false;
	a->decided_us = decided_us;
}

enum step stage_decide(struct request *req)
{
	struct verdict v;

	ask_request(req, &v);
	decide_audit(req->worker, req->sandbox, &v, req->arena, req->audit);
	if (v.kind != VERDICT_ALLOW) {
		req->audit->reason = AUDIT_REASON_POLICY;
		req->audit->status = 403;
		return STEP_DENY;
	}
	req->grant = grant_issue(req->arena, &v);
	return req->grant ? STEP_NEXT : STEP_FAIL;
}
