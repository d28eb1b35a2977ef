/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.c - the stages of a request, as a table
 *
 * How it works: a session has proved where its connection goes (admit.h). Each
 * request on it then walks down the table; a stage either agrees or ends the
 * walk. Three walks:
 *
 *  allowed	GET https://docs.test/simple/ (no binding)
 *		destination: Host is docs.test, the connection is docs.test: next
 *		decide: rule 2 allows *.docs.test and docs.test: grant
 *		bind: nothing names docs.test: no binding
 *		inject: nothing to do; the session forwards
 *
 *  denied	POST https://api.github.com/repos/x/y/keys
 *		destination: next
 *		decide: rule 1 allows GET only, the default denies: 403, the
 *		audit record and the body name the policy and what decided
 *
 *  injected	GET https://api.github.com/user
 *		destination, decide: as above, rule 1 allows: grant
 *		bind: binding "github" matches scheme, port, host, method, path
 *		inject: the lease of "github-token" becomes an injection; the
 *		session drops every Authorization that the sandbox sent, writes
 *		the injected one last, and redacts the response head
 *
 * A request whose Host is another name than the connection's ends in the first
 * stage with 421, whatever policy says about that name: this is where a secret
 * bound to B would leak through a connection to A.
 */

#include "gateway/pipeline/pipeline.h"

#include "gateway/pipeline/stages.h"
#include "gateway/registry/bindings.h"

static const struct {
	const char *name;
	enum step (*run)(struct request *req);
} stages[] = {
	{ "destination", stage_destination },
	{ "decide", stage_decide },
	{ "bind", stage_bind },
	{ "inject", stage_inject },
};

enum step pipeline_run(struct request *req)
{
	enum step step = STEP_NEXT;
	size_t i;

	for (i = 0; i < ARRAY_LEN(stages) && step == STEP_NEXT; i++)
		step = stages[i].run(req);

	if (step == STEP_NEXT && arena_overflowed(req->arena))
		step = STEP_FAIL;
	if (step == STEP_NEXT && !req->grant)
		step = STEP_FAIL; /* no proof, no passage */
	if (step != STEP_NEXT)
		req->audit->allowed = false;
	if (step == STEP_FAIL) {
		req->audit->reason = AUDIT_REASON_INTERNAL;
		req->audit->status = 500;
	}
	return step;
}

void request_fini(struct request *req)
{
	req->bindings = bindings_unref(req->bindings);
	req->injection_count = 0;
}
