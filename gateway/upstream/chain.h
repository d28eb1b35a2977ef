/* SPDX-License-Identifier: Apache-2.0 */
/* chain.h - leave by way of another proxy ("upstream.proxy")
 *
 * How it works: where the node itself may not reach the world, a connection to
 * an origin is a tunnel that an HTTP proxy opens (CONNECT, RFC 9110 9.3.6);
 * TLS with the origin runs inside and is proved as ever. The proxy is told the
 * address that was checked, so that what we checked is what it dials; with
 * "proxyResolves" it is told the name, and nothing is resolved here. What
 * "noProxy" lists goes directly.
 *
 * CONNECT carries TCP alone. What is no TCP is refused where it would have to
 * go through the proxy (gateway/flow/).
 */
#pragma once

#include <stdbool.h>

#include "src/base/addr.h"
#include "src/base/list.h"
#include "src/base/span.h"
#include "src/wire/host.h"

struct chain;
struct chain_dial;
struct config;
struct stream;
struct worker;

/* NULL: no proxy is configured. Every function here takes NULL for that. */
struct chain *chain_new(const struct config *config);
/* Ends what is left of its tunnels. Returns NULL. */
struct chain *chain_free(struct chain *c);

/* Does what is called host ("" = nothing) and has this address (NULL: not
 * resolved) go through the proxy? */
bool chain_takes(const struct chain *c, struct span host,
		 const struct addr *address);
/* Is this name (canonical) resolved by the proxy and not by us? */
bool chain_resolves(const struct chain *c, struct span host);

/* How a dial ended, once, from the loop; the dial is gone. stream: to the
 * destination; the callee's. NULL: why says it, and again, whether another
 * address of the destination may fare better. */
typedef void chain_fn(void *ctx, struct stream *stream, const char *why,
		      bool again);

/* Opens a tunnel to the address, or without one to the name and port. */
struct chain_dial *chain_dial(struct worker *w, struct span host, uint16_t port,
			      const struct addr *address, chain_fn *fn,
			      void *ctx);
/* No callback any more. NULL is fine; returns NULL. */
struct chain_dial *chain_cancel(struct chain_dial *d);

/* -- between the files of the chain ---------------------------------------- */

/* Where the proxy is, and whether TLS is spoken to it. */
const struct authority *chain_proxy(const struct chain *c);
bool chain_tls(const struct chain *c);
/* relay.c: links of the relays that live. */
struct list *chain_relays(struct chain *c);
