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
 * Only a host whose id is a UUID counts: the gateway's own name may well look
 * like "node-8081". The path keeps its bytes: nothing is decoded. A signature
 * in a uri may be no signature but the client's own path; .plain_path is the
 * path then.
 *
 * A path of execd's that leads to it once more, or to the egress API
 * ("/proxy/18080/policy"), is one of that port.
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
	struct span path; /* behind the prefix, with the query; may be "" or
			     begin with "?": then a "/" belongs in front */
	struct span expires, signature; /* of a signed route; SPAN_NONE: none */
	struct span plain_path;		/* of a sandbox that is not secured */
	struct span prefix; /* what was taken off, for X-Forwarded-Prefix */
};

enum ingress_error {
	INGRESS_OK,
	INGRESS_E_NO_ROUTE = 1, /* 400: nothing names a sandbox */
	INGRESS_E_PORT,		/* 400: not 1..65535 */
};

WUNRES enum ingress_error ingress_route_parse(const struct h1_request *head,
					      struct ingress_route *ret);
/* What looked like a signature is the client's own path. */
void ingress_route_unsign(struct ingress_route *route);
