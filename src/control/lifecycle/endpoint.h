/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint.h - where a client reaches a port of a sandbox, and with what
 * (contract 4.7)
 *
 *	{"endpoint": "node:8081/sandboxes/{id}/proxy/{port}", "headers": {...}}
 *
 * Pure. The endpoint has no scheme: it is the client's own. A shared link is
 * "node:8081/{id}/{port}/{expires}/{signature}" and needs no header.
 */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct addr;
struct box;
struct json_out;
struct signed_keys;

enum {
	ENDPOINT_EXECD_PORT = 44772,
	ENDPOINT_EGRESS_PORT = 18080,
	ENDPOINT_AT_SIZE = 300, /* host:port */
};

/* What is told as the address of the ingress: what the operator says; else its
 * listener; of a listener at every address the client's own word for this node
 * (authority, of its request) with the listener's port. Without an ingress the
 * authority alone, since the lifecycle API passes requests on. False: nothing
 * fits. */
WUNRES bool endpoint_at(const char *advertise, const struct addr *listen,
			struct span authority, char dst[ENDPOINT_AT_SIZE]);

void endpoint_emit(struct json_out *o, const struct box *b, uint16_t port,
		   const char *at);
/* The shared link. False: there is no key of that id. */
WUNRES bool endpoint_emit_signed(struct json_out *o, const struct box *b,
				 uint16_t port, const char *at,
				 const struct signed_keys *keys,
				 uint64_t expires_s);
