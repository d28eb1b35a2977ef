/* SPDX-License-Identifier: Apache-2.0 */
/* parse_rule.h - egress and overlay rules from a tree; for parse.c */
#pragma once

#include "policy/parse.h"

/* n is a list of 0..max items: *ret is zeroed room for them, size bytes each
 * (never NULL). 0 or -EINVAL with diag. */
WUNRES int parse_list(const struct policy_parser *p, const struct doc_node *n,
		      unsigned max, size_t size, void **ret);

/* -EINVAL with diag when memory is NULL, that is: the arena overflowed. */
WUNRES int parse_memory(const struct policy_parser *p, const struct doc_node *n,
			const void *memory);

WUNRES int parse_action(const struct policy_parser *p, const struct doc_node *n,
			enum verdict_kind *ret);

/* A list of rules. overlay NULL: each has its own action. Otherwise all have
 * *overlay, and a string alone is a target. */
WUNRES int parse_rules(const struct policy_parser *p, const struct doc_node *n,
		       const enum verdict_kind *overlay,
		       const struct policy_rule **ret, unsigned *ret_count);
