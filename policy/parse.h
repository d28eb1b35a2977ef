/* SPDX-License-Identifier: Apache-2.0 */
/* parse.h - one policy file's tree into the model, or the first thing wrong
 *
 * For load.c: sets, files and what must hold between policies are there.
 */
#pragma once

#include "policy/model.h"

struct doc_node;

struct policy_parser {
	struct arena *arena; /* everything parsed lives there */
	struct span file;    /* in the arena; repeated in every rule */
	struct diag *diag;
};

/* All: 0, or -EINVAL with diag. *ret are untouched on failure. */

/* One policy: {name, sandboxes, defaultAction, egress, inspect, passthrough,
 * limits}. name: what it must be called, or, when it has no name, will be called;
 * SPAN_NONE: it must have one. */
WUNRES int policy_parse_one(const struct policy_parser *p,
			    const struct doc_node *n, struct span name,
			    struct policy_model **ret);

/* An overlay: rules that all have `action`; a bare target is a rule too. */
WUNRES int policy_parse_overlay(const struct policy_parser *p,
				const struct doc_node *n,
				enum verdict_kind action,
				const struct policy_rule **ret,
				unsigned *ret_count);

/* A name, "*.name", an address or a CIDR. The name is copied to the arena.
 * False: none of them. */
WUNRES bool policy_target_parse(struct arena *arena, struct span text,
				struct policy_target *ret);
