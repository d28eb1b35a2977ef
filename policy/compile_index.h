/* SPDX-License-Identifier: Apache-2.0 */
/* compile_index.h - which rules ask for which target; for compile.c
 *
 * Each rule has one target, so each rule is in one list: of a host, of
 * everything below a host, or of a prefix.
 */
#pragma once

#include "policy/layout.h"
#include "policy/model.h"
#include "src/base/map.h"

struct rule_list {
	uint32_t first, last; /* rules; the links are in index.next */
	uint32_t count;
};

struct index_host {
	struct span name;
	struct rule_list self, below;
	uint8_t flags; /* enum snap_host_flags */
	uint32_t at;   /* of its record, set by compile.c */
};

struct index_prefix {
	struct cidr cidr;
	uint32_t parent;
	struct rule_list rules;
};

struct index {
	struct index_host *hosts; /* in order of appearance */
	uint32_t host_count, host_room;
	struct map by_name; /* index_host position + 1, as a pointer */
	struct index_prefix *prefixes; /* sorted by address, then length */
	uint32_t prefix_count;
	uint32_t *next; /* of each rule in its list, or NO_RULE */
};

/* rules are pointers so that two overlays make one list. m may be NULL. */
void index_init(struct index *x, const struct policy_rule *const *rules,
		uint32_t rule_count, const struct policy_model *m);
void index_fini(struct index *x);

/* Places every host (its .at) into slots, a power of two of them: false when a
 * chain would be longer than PROBE_MAX. slots are zeroed first. */
WUNRES bool index_fill_slots(const struct index *x, uint64_t seed,
			     struct snap_slot *slots, uint32_t slot_count);
