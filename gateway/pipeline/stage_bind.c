/* SPDX-License-Identifier: Apache-2.0 */
/* stage_bind.c - which credential belongs on this request, if any
 *
 * Only a destination proved by name can have one. The bindings of the
 * sandbox's own scope are asked first, then those of the node.
 */

#include "gateway/pipeline/bind.h"

#include "gateway/pipeline/stages.h"
#include "gateway/registry/bindings.h"
#include "gateway/worker.h"

static struct binding_query query_of(const struct sandbox *s,
				     const struct destination *d)
{
	return (struct binding_query){
		.sandbox = span_str(s->id),
		.scheme = d->scheme == SCHEME_HTTPS ? BINDING_HTTPS
						    : BINDING_HTTP,
		.port = d->port,
		.host = host_span(&d->host),
	};
}

static enum step tie(struct request *req, const struct binding *two[2])
{
	req->audit->reason = AUDIT_REASON_AMBIGUOUS_BINDING;
	req->audit->status = 403;
	req->audit->detail = arena_printf(
		req->arena, "bindings \"%.*s\" and \"%.*s\" both match",
		SPAN_FMT(two[0]->name), SPAN_FMT(two[1]->name));
	return STEP_DENY;
}

static enum step ambiguous_path(struct request *req)
{
	req->audit->reason = AUDIT_REASON_AMBIGUOUS_PATH;
	req->audit->status = 403;
	return STEP_DENY;
}

bool bind_concerns(struct worker *w, const struct sandbox *s,
		   const struct destination *d)
{
	const struct binding_query q = query_of(s, d);
	const struct span scopes[] = { span_str(s->id), SPAN("") };
	size_t i;

	for (i = 0; d->by_name && i < ARRAY_LEN(scopes); i++)
		if (binding_set_concerns(
			    bindings_set(
				    map_find(&w->facts.bindings, scopes[i])),
			    &q))
			return true;
	return false;
}

bool bind_concerns_any(struct worker *w, const struct sandbox *s,
		       const struct destination *d)
{
	struct destination as = *d;

	as.scheme = SCHEME_HTTPS;
	if (bind_concerns(w, s, &as))
		return true;
	as.scheme = SCHEME_HTTP;
	return bind_concerns(w, s, &as);
}

static enum step bind_found(struct request *req, struct bindings *b,
			    const struct binding *binding)
{
	req->bindings = bindings_ref(b);
	req->binding = binding;
	req->audit->binding = arena_dup(req->arena, binding->name);
	req->audit->revision = bindings_revision(b);
	return STEP_NEXT;
}

enum step stage_bind(struct request *req)
{
	const struct destination *d = req->destination;
	struct binding_query q = query_of(req->sandbox, d);
	const struct span scopes[] = { q.sandbox, SPAN("") };
	const struct binding *found[2];
	struct bindings *b;
	size_t i;

	if (!d->by_name)
		return STEP_NEXT;
	q.method = req->method;
	q.path = req->path_ambiguous ? SPAN("/") : req->path;
	for (i = 0; i < ARRAY_LEN(scopes); i++) {
		b = map_find(&req->worker->facts.bindings, scopes[i]);
		/* what reads two ways must not choose a credential */
		if (req->path_ambiguous &&
		    binding_set_minds_path(bindings_set(b), &q))
			return ambiguous_path(req);
		switch (binding_set_match(bindings_set(b), &q, found)) {
		case BINDING_MATCH:
			return bind_found(req, b, found[0]);
		case BINDING_TIE:
			return tie(req, found);
		case BINDING_NO_MATCH:
			break;
		}
	}
	return STEP_NEXT;
}
