/* SPDX-License-Identifier: Apache-2.0 */
/* chase.h - the addresses of one family for a name, through its aliases
 *
 * A CNAME chain is followed inside each reply; where it leaves the reply, its
 * last name is asked for. CHASE_LINKS_MAX aliases in all.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/dns/names.h"
#include "src/base/addr.h"
#include "src/wire/dns.h"

struct ask;
struct chase;
struct nameservers;

enum { CHASE_LINKS_MAX = 16 };

/* The chase is over: .done. Called from the loop. */
typedef void chase_fn(struct chase *c);

struct chase {
	struct nameservers *ns;
	chase_fn *fn;
	uint64_t deadline_ms;
	uint16_t type;	      /* DNS_TYPE_A or DNS_TYPE_AAAA */
	struct ask *ask;      /* NULL when done */
	struct dns_name name; /* where the chain stands */
	unsigned links;
	/* the result */
	bool done;
	enum name_status status;
	uint32_t ttl_s; /* unclamped; the smallest of the chain */
	unsigned count;
	struct addr addrs[NAME_ADDRS_MAX];
};

/* .ns, .fn, .deadline_ms, .type and .name are set by the caller, the rest is
 * zero. False: too many asks are under way; the chase is then done. */
WUNRES bool chase_start(struct chase *c);
/* Stops asking; no callback any more. */
void chase_stop(struct chase *c);
