/* SPDX-License-Identifier: Apache-2.0 */
/* rules.h - a rule as it was written, out of a snapshot */
#pragma once

#include "policy/layout.h"
#include "policy/model.h"

/* Where a rule is, and what its target is. */
struct snap_found {
	const struct snap_rule *rule;
	const struct snap_host *host;	  /* NULL: an address */
	const struct snap_prefix *prefix; /* NULL: a name */
	bool below;			  /* of the host: "*.name" */
};

/* By its index (in both overlays together). The note of the rule must be known
 * to be sound. False: it is not where its note says. */
WUNRES bool snap_rule_find(const struct snapshot_head *h, uint32_t index,
			   struct snap_found *ret);

/* Room for the lists of one rule (what does not fit is left out) and for its
 * name. */
struct policy_rule_room {
	struct policy_ports *ports;
	struct span *strings; /* methods and paths */
	unsigned port_room, string_room;
	char name[256];
};

/* index < snapshot_rule_count(). The rule points into snapshot and room. */
void policy_rule_read(const struct snapshot *s, uint32_t index,
		      struct policy_rule_room *room, struct policy_rule *ret);
