/* SPDX-License-Identifier: Apache-2.0 */
/* ingress_access.h - may this request go to that port? (contract 3.3)
 *
 *	18080	yes; control checks the token of the egress API itself
 *	44772	with the token of execd
 *	other	of a secured sandbox: with its token in a header, which counts
 *		alone when it is there, else with a signed route
 *
 * Tokens are compared as SHA-256, in constant time. Signatures that fail are
 * counted for each sandbox; over the limit none is looked at, tokens still are.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"

enum { INGRESS_PORT_EGRESS = 18080, INGRESS_PORT_EXECD = 44772 };

struct h1_request;
struct ingress_box;
struct ingress_keys;
struct ingress_route;

/* A no: status, sentence (with LF, without the contract's prefix). */
struct ingress_refusal {
	unsigned status;
	const char *sentence;
	uint64_t wait_ms; /* of 429 */
};

struct ingress_times {
	uint64_t now_ms; /* clock_ms() */
	uint64_t wall_s;
};

/* Where no signature is asked for, what looks like one is the client's own path
 * (ingress_route_unsign()). keys NULL: there are none. True: it may. */
WUNRES bool ingress_access_check(struct ingress_box *box,
				 const struct ingress_keys *keys,
				 struct ingress_route *route,
				 const struct h1_request *head,
				 const struct ingress_times *at,
				 struct ingress_refusal *no);
