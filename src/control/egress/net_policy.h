/* SPDX-License-Identifier: Apache-2.0 */
/* net_policy.h - a network policy as the contract writes it (contract 1.2-1.5)
 *
 *   {"defaultAction": "deny", "egress": [{"action": "allow", "target": "a.b"},
 *    {"action": "allow", "target": "10.1.0.0/16", "ports": [5432]},
 *    {"action": "deny", "ports": [25]}]}
 *
 * Rules with ports came with the contract's 1.2.0: without a target they are
 * about every address. Pure. Targets keep the text that the client sent. Two
 * forms come out of it: the contract's own, for who asks, and a policy of ours
 * (sallyport-policy(5)), which is compiled and enforced; a target that ours
 * refuses is refused here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;
struct diag;
struct json;
struct json_out;

enum {
	NET_RULES_MAX = 4096,
	NET_PORTS_MAX = 256, /* of a rule */
	NET_POLICY_E_MANY = 1,
};

struct net_rule {
	bool allow;
	struct span target;    /* trimmed; empty: every address, on its ports */
	const uint16_t *ports; /* as they came; none: every port */
	unsigned port_count;
};

struct net_policy {
	bool default_allow;
	struct net_rule *rules;
	unsigned count;
	struct arena arena;
};

/* Each of the three: 0 and *ret; -EINVAL with d; NET_POLICY_E_MANY (of those
 * with total), *total rules would be more than NET_RULES_MAX. */

/* NULL or an empty object: deny everything. Unknown members are passed over. */
WUNRES int net_policy_parse(const struct json *j, struct net_policy **ret,
			    unsigned *total, struct diag *d);
/* rules: an array. They go in front, the first of two with equal target and
 * ports wins; rules of the base that are equal to one of them in both fall
 * away. */
WUNRES int net_policy_patch(const struct net_policy *base,
			    const struct json *rules, struct net_policy **ret,
			    unsigned *total, struct diag *d);
/* targets: an array of texts; a rule falls away whatever its ports, but one
 * without a target stays. *removed: how many fell away. */
WUNRES int net_policy_remove(const struct net_policy *base,
			     const struct json *targets,
			     struct net_policy **ret, unsigned *removed,
			     struct diag *d);
struct net_policy *net_policy_free(struct net_policy *p);

/* "allow_all", "deny_all", "enforcing". */
const char *net_policy_mode(const struct net_policy *p);
/* {"defaultAction", "egress": [...]} under `name` (NULL: outside an object). */
void net_policy_emit(struct json_out *o, const char *name,
		     const struct net_policy *p);
/* Our own policy for the sandbox `id`, by the name "sandbox.{id}". */
void net_policy_emit_own(struct json_out *o, const struct net_policy *p,
			 struct span id);
/* Does our parser take it? 0; -EINVAL with d, which names the rule. */
WUNRES int net_policy_check(const struct net_policy *p, struct diag *d);
