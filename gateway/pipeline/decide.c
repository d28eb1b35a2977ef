/* SPDX-License-Identifier: Apache-2.0 */
/* decide.c - ask policy and, on yes, issue the grant
 *
 * This is the only file that can make a struct grant. Questions are built from
 * the destination that admission proved; raw headers are never read here.
 */

#include "gateway/pipeline/decide.h"

#include "gateway/pipeline/grant.h"
#include "gateway/registry/facts.h"
#include "gateway/worker.h"
#include "src/base/clock.h"

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
		policy_match(facts_overlay(&w->facts),
			     facts_policy(&w->facts, s), q, ret);
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

bool decide_address(struct worker *w, const struct sandbox *s,
		    const struct addr *address, enum address_source source)
{
	const struct policy_query q = {
		.stage = POLICY_CONNECT,
		.protocol = PROTOCOL_TCP,
		.address = address,
		.port = address->port,
	};
	struct verdict v;

	if (source == ADDRESS_PIN)
		return true;
	if (facts_is_own(&w->facts, address))
		return false;
	if (addr_kind(address) == ADDR_GLOBAL)
		return true;
	ask(w, s, &q, &v);
	return v.kind == VERDICT_ALLOW && v.by_address;
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

enum step stage_decide(struct request *req)
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
	struct verdict v;
	unsigned i = 0;

	do { /* any of the addresses may be the one that answers */
		q.address = d->addr_count ? &d->addrs[i] : NULL;
		ask(req->worker, req->sandbox, &q, &v);
	} while (v.kind == VERDICT_ALLOW && ++i < d->addr_count);
	decide_audit(req->worker, req->sandbox, &v, req->arena, req->audit);
	if (v.kind != VERDICT_ALLOW) {
		req->audit->reason = AUDIT_REASON_POLICY;
		req->audit->status = 403;
		return STEP_DENY;
	}
	req->grant = grant_issue(req->arena, &v);
	return req->grant ? STEP_NEXT : STEP_FAIL;
}
