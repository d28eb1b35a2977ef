/* SPDX-License-Identifier: Apache-2.0 */
/* resolver.h - from a host name to addresses, for one event loop
 *
 * Order: pins, hosts file, cache, upstream servers. Everything belongs to the
 * loop's thread. What an answer may be used for (private addresses, rebinding)
 * is the session's business; this is only what the world says.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/dns/ask.h"
#include "gateway/dns/counters.h"
#include "gateway/dns/names.h"
#include "src/base/addr.h"
#include "src/base/attrib.h"
#include "src/base/span.h"

struct loop;
struct lookup;
struct resolver;

struct resolver_config {
	const struct addr *upstreams; /* copied; port 0 = 53; may be none */
	unsigned upstream_count; /* what is over NAMESERVERS_MAX: ignored */
	uint32_t timeout_ms;	 /* one server's turn; a lookup takes at
				    most three. 0 = 2000 */
	uint32_t min_ttl_s;	 /* 0 = 5, and never less */
	uint32_t max_ttl_s;	 /* 0 = 3600 */
	unsigned cache_entries;	 /* 0 = 4096 */
	struct dns_counters *counters; /* borrowed, must outlive; not NULL */
};

WUNRES int resolver_new(struct loop *loop, const struct resolver_config *config,
			struct resolver **ret);
/* Pending lookups are dropped without a callback. Not from a callback of the
 * resolver. NULL is fine; returns NULL. */
struct resolver *resolver_free(struct resolver *r);

/* Takes a reference of names (NULL = none). In force for everything that is
 * answered after the call, lookups under way included. */
void resolver_set_names(struct resolver *r, struct names *names);
/* Replaces the upstream servers and empties the cache when they differ. */
void resolver_set_upstreams(struct resolver *r, const struct addr *upstreams,
			    unsigned count);
/* Empties the cache. */
void resolver_flush(struct resolver *r);

/* What is known right now, without asking anybody: pins, hosts, cache. False:
 * nothing, *ret untouched. ret->addrs is valid until the resolver is called
 * again or the loop's turn ends. host is canonical (wire/host.h). */
bool resolver_find(struct resolver *r, struct span host,
		   struct name_answer *ret);

/* Called once, from the loop, never from inside resolver_lookup(); the handle
 * is dead then. answer is borrowed for the call. */
typedef void lookup_fn(void *ctx, const struct name_answer *answer);

/* Begins a lookup; always gives a handle. A limit that was hit shows as
 * NAME_FAILED. host is canonical and copied. */
struct lookup *resolver_lookup(struct resolver *r, struct span host,
			       lookup_fn *fn, void *ctx);
/* No callback any more. NULL is fine; returns NULL. */
struct lookup *lookup_cancel(struct lookup *l);

/* Is host answered here and never asked upstream: pinned, in the hosts file, or
 * special (RFC 6761: localhost, invalid; RFC 7686: onion)? */
bool resolver_is_local(const struct resolver *r, struct span host);
/* Forwards one question of another type upstream, uncached; see ask.h. NULL
 * when resolver_is_local(host), or too many are under way. */
struct ask *resolver_ask(struct resolver *r, struct span host, uint16_t type,
			 ask_fn *fn, void *ctx);

uint32_t resolver_clamp_ttl(const struct resolver *r, uint32_t ttl_s);
