/* SPDX-License-Identifier: Apache-2.0 */
/* decide.h - ask policy about names, connections and requests
 *
 * The only place that turns a verdict into a grant.
 */
#pragma once

#include "gateway/pipeline/request.h"
#include "policy/policy.h"

struct worker;

/* May this sandbox resolve the name at all? *ret is always filled. */
bool decide_name(struct worker *w, const struct sandbox *s, struct span host,
		 struct verdict *ret);

/* May the name, which the sandbox may resolve, go to upstream servers for it
 * now? A name that no rule spells out is bounded in form and number
 * (registry/budget.h); this pays for it. */
WUNRES bool decide_upstream(struct worker *w, const struct sandbox *s,
			    struct span host);

/* A connection: may it be made to d->host (address NULL: before resolving, by
 * name) or to that address? Fills verdict; NULL when denied. The grant is
 * allocated from arena. */
const struct grant *decide_connect(struct worker *w, const struct sandbox *s,
				   const struct destination *d,
				   const struct addr *address,
				   struct arena *arena, struct verdict *ret);

/* A flow of UDP or ICMP to that address, which is known by the name host, or
 * by none. Fills verdict; the guard comes on top. */
bool decide_flow(struct worker *w, const struct sandbox *s,
		 enum policy_protocol protocol, struct span host,
		 const struct addr *address, struct verdict *ret);

/* The address guard, one for all protocols. q asks by address alone, and is put
 * to policy only where a rule must name the address. */
bool decide_guard(struct worker *w, const struct sandbox *s,
		  const struct policy_query *q, enum address_source source);

/* decide_guard() for TCP: may this address be dialled for this sandbox? Public
 * addresses may; others only if a pin put them there or a CIDR rule of policy
 * allows exactly them; the node's own addresses only by pin. */
bool decide_address(struct worker *w, const struct sandbox *s,
		    const struct addr *address, enum address_source source);

/* May the sandbox see this address in an answer? As decide_address(), before a
 * port or a protocol is known: any CIDR rule of policy that allows something
 * at the address will do. */
bool decide_answer(struct worker *w, const struct sandbox *s,
		   const struct addr *address, enum address_source source);

/* A destination that was admitted, reached at this address (port 0: by its
 * name, by way of the upstream proxy): would it be now? Fills verdict. */
bool decide_again(struct worker *w, const struct sandbox *s,
		  const struct destination *d, const struct addr *address,
		  struct arena *arena, struct verdict *ret);

/* Puts a verdict and where it came from into the audit record; the strings are
 * copied into arena. */
void decide_audit(struct worker *w, const struct sandbox *s,
		  const struct verdict *v, struct arena *arena,
		  struct audit *audit);

/* The stage: method and path too. */
enum step stage_decide(struct request *req);

/* A request that was granted: would it be now? */
bool decide_request_again(const struct request *req);
/* A request that a change of policy ends: which rule denies it now goes into
 * its audit record in place of the one that allowed it. None is named where
 * the request would be granted, but not on this connection. */
void decide_audit_cut(const struct request *req);
