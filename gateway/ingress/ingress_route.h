/* SPDX-License-Identifier: Apache-2.0 */
/* ingress_route.h - from a request's head to (sandbox, port, path)
 *(contract 3.2)
 *
 * Pure. Four ways to name a port of a sandbox, tried in this order:
 *
 *	header	OpenSandbox-Ingress-To: {id}-{port}[-{expires}-{sig}]
 *	host	{id}-{port}[-{expires}-{sig}].any.domain
 *	server	/sandboxes/{id}/proxy/{port}[/rest], also below /v1
 *	uri	/{id}/{port}[/{expires}/{sig}][/rest]
 *
 * The path keeps its bytes: nothing is decoded.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct h1_request;

struct ingress_route {
	struct span id;
	uint16_t port;
	struct span path; /* from "/" on, with the query; "" is "/" */
	/* of a signed route; SPAN_NONE: none. When the sandbox turns out not to
	 * be secured, a uri route is read again with .plain_path. */
	struct span expires, signature;
	struct span plain_path;
	struct span prefix; /* what was taken off, for X-Forwarded-Prefix */
};

enum ingress_error {
	INGRESS_OK,
	INGRESS_E_NO_ROUTE = 1, /* 400: nothing names a sandbox */
	INGRESS_E_PORT,		/* 400: not 1..65535 */
	INGRESS_E_SIGNATURE,	/* 400: malformed */
};

WUNRES enum ingress_error ingress_route_parse(const struct h1_request *head,
					      struct ingress_route *ret);
