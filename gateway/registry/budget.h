/* SPDX-License-Identifier: Apache-2.0 */
/* budget.h - how many new names of a zone a sandbox may have looked up
 *
 * A rule for "*.example.com" lets a sandbox make up names, and each name that
 * goes to upstream servers carries some bytes to whoever serves the zone. So
 * names that no rule spells out are bounded: in their form, and in how many
 * new ones go upstream in a minute, counted for each sandbox and zone. The
 * zone is what the rule's wildcard stands below; under a default action that
 * allows, the last two labels.
 *
 * How it works: a zone has a token bucket of one minute's names, and remembers
 * the names that it paid for last. Those are cheap, not free: which of them is
 * asked for, and when, says something too, and questions that no cache answers
 * go upstream each time. They have a bucket of BUDGET_REPEATS times as many. A
 * sandbox has another bucket for new zones. What a name costs is the same
 * wherever it was asked: the table is the node's, with one lock, and is asked
 * only when a name is about to go upstream: not for what is pinned, kept in a
 * cache, denied, or spelled out by a rule.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

enum {
	BUDGET_ZONES_MAX = 32,	/* of a sandbox; the least used is forgotten */
	BUDGET_KNOWN_MAX = 256, /* names of a zone that are cheap */
	BUDGET_REPEATS = 10,
};

struct budget;

struct budget_form {
	unsigned name_bytes, label_bytes, labels; /* at most */
};

/* Has the host (canonical) no more of anything? */
bool budget_form_fits(const struct budget_form *form, struct span host);

/* names_per_minute 0: no bound. */
struct budget *budget_new(unsigned names_per_minute);
/* No other call may be under way. NULL is fine; returns NULL. */
struct budget *budget_free(struct budget *b);

/* Any thread. May host (canonical) go upstream for the sandbox `id`? Its zone
 * is its last zone_labels labels, at least two. True: it was paid for. */
WUNRES bool budget_take(struct budget *b, struct span id, struct span host,
			unsigned zone_labels, uint64_t now_ms);
/* Any thread. The sandbox is gone. */
void budget_forget(struct budget *b, struct span id);
/* Zones that are remembered, of all sandboxes. */
size_t budget_zones(struct budget *b);
