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
	uint8_t flags;	/* enum snap_host_flags */
	uint32_t place; /* of its record, set by compile.c */
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

/* A full slot while the table is made: the tag above the place. */
#define INDEX_SLOT(tag, place) ((uint64_t)(tag) << 32 | (place))

/* Places every host (its .place) into that many slots: false when a chain would
 * be longer than PROBE_MAX. slots are zeroed first. */
WUNRES bool index_fill_slots(const struct index *x, uint64_t seed,
			     uint64_t *slots, uint32_t slot_count);
