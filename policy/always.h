/* SPDX-License-Identifier: Apache-2.0 */
/* always.h - "deny.always" and "allow.always": an overlay as a list of lines
 *
 * The form in which OpenSandbox's egress sidecar takes what its operator always
 * denies or allows: a target on each line, and lines that are empty or begin
 * with '#'. A target is what it is in a policy file.
 */
#pragma once

#include "policy/model.h"

struct policy_parser;

/* Is a file of this name one? Then *ret: what its rules do. */
bool policy_is_always(struct span name, enum verdict_kind *ret);

/* 0, or -EINVAL with the parser's diag; *ret are untouched on failure. */
WUNRES int policy_parse_always(const struct policy_parser *p, struct span text,
			       enum verdict_kind action,
			       const struct policy_rule **ret,
			       unsigned *ret_count);
