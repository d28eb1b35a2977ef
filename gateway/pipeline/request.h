/* SPDX-License-Identifier: Apache-2.0 */
/* request.h - one request on its way through the house
 *
 * The version of HTTP does not matter here: a session fills the first group
 * from what the client sent, pipeline_run() fills the others, one stage each,
 * and the session emits the outgoing head from the result. A group is
 * read-only after its stage.
 */
#pragma once

#include <stdint.h>

#include "gateway/audit/audit.h"
#include "gateway/upstream/destination.h"
#include "src/base/arena.h"
#include "src/wire/header.h"

struct automaton;
struct binding;
struct bindings;
struct grant;
struct secret;
struct worker;

/* STEP_FAIL is zero so that a forgotten return value refuses the request. */
enum step {
	STEP_FAIL, /* internal error: refuse, audit says "internal" */
	STEP_NEXT, /* done: go on to the next stage */
	STEP_DENY, /* refused; audit->reason and ->status say how */
	STEP_WAIT, /* a callback will follow */
};

/* A header that injection sets: name, then prefix and secret as its value. */
struct injection {
	struct span name;
	struct span prefix;
	const struct secret *secret; /* a lease; lives as long as bindings */
};

enum { INJECTIONS_MAX = 16 };

struct request {
	/* session */
	struct worker *worker;
	struct sandbox *sandbox;
	struct arena *arena;
	struct audit *audit;
	const struct destination *destination;
	struct span method;    /* as sent */
	struct span target;    /* path and query as sent */
	struct span authority; /* Host or :authority as sent */
	const struct headers *headers;

	/* destination */
	struct span path; /* canonical, for comparison only */
	bool path_ambiguous;

	/* decide */
	const struct grant *grant;

	/* bind */
	struct bindings *bindings;     /* holds the leases; referenced */
	const struct binding *binding; /* NULL: no credential */

	/* inject */
	struct injection injections[INJECTIONS_MAX];
	unsigned injection_count;
	struct automaton *automaton; /* finds their forms; NULL: exact only */
};

/* Gives back what the stages took. */
void request_fini(struct request *req);
