/* SPDX-License-Identifier: Apache-2.0 */
/* coverage.h - may a sandbox's policy let what its bindings are for? (contract
 * 2.6)
 *
 * Pure. A credential is for hosts that the sandbox may reach: each host of a
 * binding must be allowed by the policy, by a rule where the policy denies by
 * default. Of a wildcard a name below it is tried.
 */
#pragma once

#include "src/base/attrib.h"

struct binding;
struct diag;
struct net_policy;
struct snapshot;

/* p and policy are the same one, as written and compiled; overlay may be NULL.
 * 0; -EINVAL with d. */
WUNRES int coverage_check(const struct binding *b, const struct net_policy *p,
			  const struct snapshot *overlay,
			  const struct snapshot *policy, struct diag *d);
/* Is each port one that is looked into? */
WUNRES int coverage_check_ports(const struct binding *b, struct diag *d);
