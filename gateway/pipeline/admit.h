/* SPDX-License-Identifier: Apache-2.0 */
/* admit.h - may this connection be made, and to which addresses?
 *
 * Asked once per client connection, when its name is known (or known to be
 * absent). Fills the destination; from then on it is const.
 *
 * Bytes that are neither TLS nor HTTP name nobody: then names that our DNS gave
 * the sandbox for the address count, see admit_unnamed.c.
 */
#pragma once

#include "gateway/audit/audit.h"
#include "gateway/pipeline/request.h"
#include "policy/policy.h"

struct lookup;

struct admission;
typedef void admit_fn(void *ctx, struct admission *a, enum step step);

struct admission {
	/* in; borrowed */
	struct worker *worker;
	struct sandbox *sandbox;
	struct arena *arena;		 /* the grant lives there */
	struct destination *destination; /* .scheme .host .port .original set */
	/* out */
	const struct grant *grant; /* NULL unless STEP_NEXT */
	struct verdict verdict;
	enum audit_reason reason; /* when not STEP_NEXT */
	uint16_t status;	  /* HTTP status to answer then */
	bool learned; /* .host was not said: our DNS gave it for the address */
	/* private */
	admit_fn *fn;
	void *ctx;
	struct lookup *lookup;
};

/* STEP_NEXT or STEP_DENY now; or STEP_WAIT, and fn is called from the loop. */
enum step admit_start(struct admission *a, admit_fn *fn, void *ctx);
/* The same for a destination of SCHEME_TCP without a name; never waits. Reason
 * NOT_TLS_OR_HTTP: allowed, were it TLS or HTTP that can be looked into. */
enum step admit_unnamed(struct admission *a);
/* TLS without a name to .original, which policy allows by address or default;
 * the grant is made. STEP_NEXT; or STEP_DENY, reason NO_SNI: nothing of what is
 * known of the address lets it pass unseen, or POLICY: its names are denied. */
enum step admit_nameless(struct admission *a);
/* A tunnel that was admitted and passes unseen: may it, still? */
bool admit_may_stay_unseen(struct worker *w, struct sandbox *s,
			   const struct destination *d);
/* No callback any more; safe at any time. */
void admit_cancel(struct admission *a);
