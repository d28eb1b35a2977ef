/* SPDX-License-Identifier: Apache-2.0 */
/* admit_unnamed.c - decide a connection whose bytes name nobody
 *
 * How it works. The address that the sandbox dialled is all that its
 * connection says. What else is known is which names our DNS gave this sandbox
 * for that address (registry/learned.h). Policy is asked about the address
 * together with each of them, so that rules by name and rules by address count
 * in their one order; without such a name, about the address alone.
 *
 *   - A name that policy allows, but whose requests it wants to see (methods,
 *     paths, the inspect list) or a credential is bound to, on this port: the
 *     connection is not for unseen bytes, whatever another name would allow.
 *     Otherwise a name without conditions would open the address of one with
 *     conditions. A rule that names the address outranks a binding: then the
 *     operator did not trust the name anyway.
 *   - Else the first allowed name decides, last told first. It proves nothing:
 *     no credential is ever bound to the connection.
 *   - Else it is denied, with the verdict on the first name.
 *
 * TLS without a name (no SNI, or none but inside of ECH) to an address that no rule
 * names is weighed the same way: it is refused where a name of the address is to
 * be seen, or is denied. Where DNS told no name, it is refused if the policy looks
 * into requests at all: whoever knows the address from elsewhere would get around
 * that.
 *
 * The address guard then has its say as for every other connection: an address
 * that a name led to must be public, unless the name is pinned to it.
 */

#include "gateway/pipeline/admit.h"

#include "gateway/dns/resolver.h"
#include "gateway/gateway.h"
#include "gateway/pipeline/bind.h"
#include "gateway/pipeline/decide.h"
#include "gateway/registry/learned.h"
#include "gateway/worker.h"
#include "src/base/err.h"
#include "src/io/loop.h"

enum { RECHECK_ARENA_BYTES = 16 * 1024 };

/* What the names come to. */
struct weighed {
	struct admission *admission;
	struct destination asked;   /* with the name in turn */
	struct host allowed, first; /* "" = none */
	struct verdict verdict;	    /* on `allowed`, else on `first` */
	bool must_see;
};

static bool binding_concerns(struct weighed *g)
{
	struct admission *a = g->admission;
	struct destination d = g->asked;

	d.by_name = true; /* what would be, were the name proved */
	return bind_concerns_any(a->worker, a->sandbox, &d);
}

/* May bytes pass that nobody looks at? */
static bool is_opaque(struct weighed *g, const struct verdict *v)
{
	if (v->passthrough)
		return true;
	return !v->inspect && (v->by_address || !binding_concerns(g));
}

/* True: nothing that follows matters. */
static bool weigh_name(void *ctx, struct span name)
{
	struct weighed *g = ctx;
	struct admission *a = g->admission;
	const struct addr *to = &g->asked.original;
	struct verdict v;

	if (!host_canon(name, &g->asked.host))
		return false;
	if (!decide_flow(a->worker, a->sandbox, PROTOCOL_TCP, name, to, &v)) {
		if (!g->first.len && !g->allowed.len)
			g->verdict = v;
		if (!g->first.len)
			g->first = g->asked.host;
		return false;
	}
	g->must_see = !is_opaque(g, &v);
	if (g->must_see || !g->allowed.len) {
		g->allowed = g->asked.host;
		g->verdict = v;
	}
	return g->must_see;
}

static void weigh(struct weighed *g)
{
	struct admission *a = g->admission;
	struct worker *w = a->worker;

	(void)learned_each(gateway_learned(w->gateway),
			   span_str(a->sandbox->id), &g->asked.original,
			   loop_now_ms(w->loop), weigh_name, g);
}

/* How the name leads to the address: by a pin, which is trusted, or by what
 * the world's DNS says. */
static enum address_source source_of(struct worker *w,
				     const struct destination *d)
{
	struct name_answer answer;
	unsigned i;

	if (!d->host.len)
		return ADDRESS_ORIGINAL;
	if (!resolver_is_local(w->resolver, host_span(&d->host)) ||
	    !resolver_find(w->resolver, host_span(&d->host), &answer) ||
	    answer.source != NAME_PIN)
		return ADDRESS_DNS;
	for (i = 0; i < answer.count; i++)
		if (addr_eq_ip(&answer.addrs[i], &d->original))
			return ADDRESS_PIN;
	return ADDRESS_DNS;
}

static enum step deny(struct admission *a, enum audit_reason reason)
{
	a->grant = NULL;
	a->reason = reason;
	a->status = 403;
	return STEP_DENY;
}

/* Does policy look at requests to any name at all? */
static bool looks_inside(const struct worker *w, const struct sandbox *s)
{
	const struct snapshot *policy = facts_policy(&w->facts, s);
	const struct snapshot *overlay = facts_overlay(&w->facts);

	return (policy && snapshot_looks_inside(policy)) ||
	       (overlay && snapshot_looks_inside(overlay));
}

enum step admit_nameless(struct admission *a)
{
	struct destination *d = a->destination;
	struct weighed g = { .admission = a, .asked = *d };

	if (a->verdict.by_address)
		return STEP_NEXT;
	weigh(&g);
	if (!g.first.len && !g.allowed.len)
		return looks_inside(a->worker, a->sandbox)
			       ? deny(a, AUDIT_REASON_NO_SNI)
			       : STEP_NEXT;
	if (!g.must_see && g.allowed.len)
		return STEP_NEXT;
	d->host = g.allowed.len ? g.allowed : g.first;
	a->learned = true;
	a->verdict = g.verdict;
	return deny(a, g.must_see ? AUDIT_REASON_NO_SNI : AUDIT_REASON_POLICY);
}

bool admit_may_stay_unseen(struct worker *w, struct sandbox *s,
			   const struct destination *d)
{
	struct destination as = *d;
	struct arena arena;
	struct admission a = {
		.worker = w,
		.sandbox = s,
		.arena = &arena,
		.destination = &as,
	};
	bool may;

	if (d->scheme == SCHEME_HTTPS && d->host.len)
		return !bind_concerns(w, s, d); /* inspect: see the verdict */
	if (!d->original.port)
		return !bind_concerns_any(w, s, d); /* a proxy was told it */
	arena_init(&arena, RECHECK_ARENA_BYTES);
	as.host = (struct host){ 0 };
	may = d->scheme == SCHEME_TCP ? admit_unnamed(&a) == STEP_NEXT
				      : decide_connect(w, s, &as, &as.original,
						       &arena, &a.verdict) &&
						admit_nameless(&a) == STEP_NEXT;
	arena_fini(&arena);
	return may;
}

enum step admit_unnamed(struct admission *a)
{
	struct destination *d = a->destination;
	struct weighed g = { .admission = a, .asked = *d };
	struct worker *w = a->worker;

	weigh(&g);
	d->host = g.allowed.len ? g.allowed : g.first;
	a->learned = d->host.len > 0;
	a->verdict = g.verdict;
	if (g.must_see)
		return deny(a, AUDIT_REASON_NOT_TLS_OR_HTTP);
	a->grant = decide_connect(w, a->sandbox, d, &d->original, a->arena,
				  &a->verdict);
	if (!a->grant)
		return deny(a, AUDIT_REASON_POLICY);
	if (a->verdict.inspect && !a->verdict.passthrough)
		return deny(a, AUDIT_REASON_NOT_TLS_OR_HTTP);
	d->by_name = false;
	d->source = source_of(w, d);
	if (!decide_address(w, a->sandbox, &d->original, d->source))
		return deny(a, AUDIT_REASON_ADDRESS);
	d->addrs[0] = d->original;
	d->addr_count = 1;
	if (a->learned)
		learned_use(gateway_learned(w->gateway),
			    span_str(a->sandbox->id), &d->original,
			    loop_now_ms(w->loop));
	return STEP_NEXT;
}
