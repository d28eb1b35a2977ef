/* SPDX-License-Identifier: Apache-2.0 */
/* chooser.h - which policy a sandbox gets, found without asking them all
 *
 * The first in the order of selection that chooses the sandbox
 * (policy_chooses() in policy/model.h). Most policies name ids; those are found
 * by id. The others choose by labels or by the beginning of an id, and are
 * asked one by one.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/map.h"

struct policy_entry;
struct sandbox;

struct chooser {
	struct map by_id; /* sandbox id -> struct choice, a list */
	struct policy_entry **broad;
	unsigned broad_count, broad_room;
};

void chooser_init(struct chooser *c);
void chooser_fini(struct chooser *c);
void chooser_add(struct chooser *c, struct policy_entry *e);
void chooser_remove(struct chooser *c, const struct policy_entry *e);
/* NULL: none. */
struct policy_entry *chooser_find(const struct chooser *c,
				  const struct sandbox *s);
