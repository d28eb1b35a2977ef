/* SPDX-License-Identifier: Apache-2.0 */
/* stage_inject.c - turn the binding into headers with their leases
 *
 * The last stage. No value is copied here: an injection points at the lease,
 * and the session writes it into the outgoing head, after everything else and
 * after it dropped every header of that name (inject.h).
 */

#include "gateway/pipeline/inject.h"

#include "gateway/pipeline/stages.h"
#include "gateway/registry/bindings.h"

_Static_assert((int)INJECTIONS_MAX >= (int)BINDING_HEADERS_MAX,
	       "room for every header");

static enum step withhold(struct request *req, enum audit_reason reason)
{
	req->audit->reason = reason;
	req->audit->status = 403;
	return STEP_DENY;
}

enum step stage_inject(struct request *req)
{
	const struct binding *b = req->binding;
	const struct destination *d = req->destination;
	struct injection *in;
	unsigned i;

	if (!b)
		return STEP_NEXT;
	/* without TLS nothing proves the peer but the operator's own pin */
	if (d->scheme != SCHEME_HTTPS && d->source != ADDRESS_PIN)
		return withhold(req, AUDIT_REASON_PLAINTEXT_CREDENTIAL);

	for (i = 0; i < b->header_count; i++) {
		in = &req->injections[i];
		in->name = b->headers[i].name;
		in->prefix = b->headers[i].prefix;
		in->secret =
			bindings_lease(req->bindings, b->headers[i].credential);
		if (!in->secret)
			return withhold(req, AUDIT_REASON_NO_LEASE);
	}
	req->injection_count = b->header_count;
	req->automaton = bindings_automaton(req->bindings, b);
	/* a body that cannot be searched is not asked for */
	if (b->redact_body && !req->automaton)
		return withhold(req, AUDIT_REASON_NO_REDACTION);
	req->audit->injected = true;
	return STEP_NEXT;
}

bool inject_replaces(const struct request *req, struct span name)
{
	unsigned i;

	for (i = 0; i < req->injection_count; i++)
		if (span_eq_nocase(req->injections[i].name, name))
			return true;
	return false;
}

bool inject_forbids(const struct request *req, enum header_id id)
{
	return (id == HEADER_RANGE || id == HEADER_IF_RANGE) && req->binding &&
	       req->binding->redact_body;
}
