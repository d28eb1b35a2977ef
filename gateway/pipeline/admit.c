/* SPDX-License-Identifier: Apache-2.0 */
/* admit.c - decide a connection by name, resolve, guard the addresses
 *
 * How it works. With a name: policy is asked about the name before anything is
 * resolved. Yes: the name is resolved by us, each address is guarded
 * (decide_address) and asked about again together with the name (address deny
 * rules); what is left is the destination, proved by name. No: the address
 * that the sandbox dialled may still be allowed by an address rule; then it is
 * the destination, and the name in the payload proves nothing: no credential
 * is ever bound to it. TLS without a name has only the second way, and is no way
 * around inspection; that, and what is neither TLS nor HTTP, is in
 * admit_unnamed.c.
 */

#include "gateway/pipeline/admit.h"

#include "gateway/dns/resolver.h"
#include "gateway/pipeline/decide.h"
#include "gateway/pipeline/grant.h"
#include "gateway/upstream/chain.h"
#include "gateway/worker.h"

static enum step deny(struct admission *a, enum audit_reason reason,
		      uint16_t status)
{
	a->grant = NULL;
	a->reason = reason;
	a->status = status;
	return STEP_DENY;
}

/* The address that the sandbox dialled, as it is. */
static enum step admit_original(struct admission *a,
				const struct verdict *by_name)
{
	struct destination *d = a->destination;

	if (!d->original.port) { /* a proxy was given a name, no address */
		if (!by_name)
			a->verdict = VERDICT_DENY_ALL;
		return deny(a, AUDIT_REASON_POLICY, 403);
	}
	a->grant = decide_connect(a->worker, a->sandbox, d, &d->original,
				  a->arena, &a->verdict);
	if (!a->grant || (d->host.len && !a->verdict.by_address)) {
		if (by_name)
			a->verdict = *by_name;
		return deny(a, AUDIT_REASON_POLICY, 403);
	}
	if (!decide_address(a->worker, a->sandbox, &d->original,
			    ADDRESS_ORIGINAL))
		return deny(a, AUDIT_REASON_ADDRESS, 403);
	if (!d->host.len && admit_nameless(a) == STEP_DENY)
		return STEP_DENY;

	d->by_name = false;
	d->source = ADDRESS_ORIGINAL;
	d->addrs[0] = d->original;
	d->addr_count = 1;
	return STEP_NEXT;
}

static enum address_source source_of(enum name_source source)
{
	switch (source) {
	case NAME_PIN:
		return ADDRESS_PIN;
	case NAME_HOSTS:
		return ADDRESS_HOSTS;
	case NAME_DNS:
		return ADDRESS_DNS;
	case NAME_SOURCE_NONE:
	case NAME_SOURCE_NUM:
		break;
	}
	return ADDRESS_ORIGINAL;
}

/* Best first: what the sandbox dialled, then its family, then the rest. All
 * alike where it dialled none. */
static unsigned address_rank(const struct destination *d,
			     const struct addr *address)
{
	if (!d->original.port)
		return 1;
	if (addr_eq_ip(address, &d->original))
		return 0;
	return addr_is_v4(address) == addr_is_v4(&d->original) ? 1 : 2;
}

static void put_address(struct destination *d, const struct addr *address)
{
	unsigned rank = address_rank(d, address), at = d->addr_count;

	if (at < DESTINATION_ADDRS_MAX)
		d->addr_count++;
	else if (address_rank(d, &d->addrs[--at]) <= rank)
		return;
	for (; at > 0 && address_rank(d, &d->addrs[at - 1]) > rank; at--)
		d->addrs[at] = d->addrs[at - 1];
	d->addrs[at] = *address;
}

static enum step admit_answer(struct admission *a,
			      const struct name_answer *answer)
{
	struct destination *d = a->destination;
	struct verdict refused = a->verdict;
	const struct grant *grant;
	bool by_policy = false;
	struct addr address;
	unsigned i;

	if (answer->status != NAME_OK)
		return deny(a, AUDIT_REASON_NO_NAME, 502);
	d->source = source_of(answer->source);
	d->addr_count = 0;
	for (i = 0; i < answer->count; i++) {
		struct verdict v;

		address = answer->addrs[i];
		address.port = d->port;
		if (!decide_address(a->worker, a->sandbox, &address, d->source))
			continue;
		grant = decide_connect(a->worker, a->sandbox, d, &address,
				       a->arena, &v);
		if (!grant) {
			by_policy = true;
			refused = v;
			continue;
		}
		if (grant_inspect(grant)) /* one that asks for it is enough */
			a->grant = grant;
		put_address(d, &address);
	}
	if (d->addr_count) {
		d->by_name = true;
		return STEP_NEXT;
	}
	if (by_policy) {
		a->verdict = refused;
		return deny(a, AUDIT_REASON_POLICY, 403);
	}
	return deny(a, AUDIT_REASON_NO_ALLOWED_ADDRESS, 403);
}

static void on_answer(void *ctx, const struct name_answer *answer)
{
	struct admission *a = ctx;

	a->lookup = NULL;
	a->fn(a->ctx, a, admit_answer(a, answer));
	/* a may be gone */
}

/* Left to the upstream proxy: there is no address to ask about. What the node
 * itself names is resolved here all the same. */
static bool admit_by_name(struct admission *a)
{
	struct destination *d = a->destination;
	struct span host = host_span(&d->host);

	if (!chain_resolves(a->worker->chain, host) ||
	    resolver_is_local(a->worker->resolver, host))
		return false;
	d->by_name = true;
	d->source = ADDRESS_PROXY;
	d->addr_count = 0;
	d->addrs[0] = (struct addr){ 0 };
	return true;
}

enum step admit_start(struct admission *a, admit_fn *fn, void *ctx)
{
	struct destination *d = a->destination;
	struct name_answer answer;
	struct verdict by_name;

	if (!d->host.len)
		return d->scheme == SCHEME_TCP ? admit_unnamed(a)
					       : admit_original(a, NULL);
	a->grant = decide_connect(a->worker, a->sandbox, d, NULL, a->arena,
				  &a->verdict);
	if (!a->grant) {
		by_name = a->verdict;
		return admit_original(a, &by_name);
	}
	if (admit_by_name(a))
		return STEP_NEXT;
	if (resolver_find(a->worker->resolver, host_span(&d->host), &answer))
		return admit_answer(a, &answer);

	if (!decide_upstream(a->worker, a->sandbox, host_span(&d->host)))
		return deny(a, AUDIT_REASON_DNS_LIMIT, 429);
	a->fn = fn;
	a->ctx = ctx;
	a->lookup = resolver_lookup(a->worker->resolver, host_span(&d->host),
				    on_answer, a);
	return STEP_WAIT;
}

void admit_cancel(struct admission *a)
{
	a->lookup = lookup_cancel(a->lookup);
}
