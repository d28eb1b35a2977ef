/* SPDX-License-Identifier: Apache-2.0 */
/* foreign.h - is something a resolver of others?
 *
 * Names that a sandbox resolves elsewhere are not seen by policy, and what it
 * asks there leaves the machine. So resolvers that anybody may use (a table,
 * foreign.def) and the port of encrypted DNS are refused unless a rule names
 * exactly that host or address, whatever wildcards and default actions say.
 * A table is never complete: it keeps programs from changing their resolver by
 * themselves; what an attacker has set up has to be kept out by policy.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/policy.h"
#include "src/base/addr.h"
#include "src/base/span.h"

enum { PORT_DNS_TLS = 853 /* DoT, RFC 7858, and DoQ, RFC 9250 */ };

/* host is canonical. */
bool foreign_is_host(struct span host);
bool foreign_is_address(const struct addr *address);
/* Does a request ask a resolver (RFC 8484)? path is canonical; the values of
 * Content-Type and Accept, empty when there is none. */
bool foreign_is_request(struct span path, struct span content_type,
			struct span accept);
/* Does a question of policy lead to one: by its host, address, port or path? */
bool foreign_is_asked(const struct policy_query *q);
/* Denies what was allowed by something that does not name it. */
void foreign_refuse(struct verdict *v);

/* policy_match(), and then this: what the gateway does, and whoever explains
 * it. foreign_allowed: the operator wants none of it
 * (dns.allowForeignResolvers). */
void foreign_match(const struct snapshot *overlay,
		   const struct snapshot *policy, const struct policy_query *q,
		   bool foreign_allowed, struct verdict *ret);
