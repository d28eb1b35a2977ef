/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.c - prove once that a block of bytes is safe to match against
 *
 * After snapshot_open() said yes, match.c and explain.c follow offsets without
 * looking: whatever the bytes are, no read leaves the block and no loop is
 * longer than the block is large. Whether the answers make sense is the
 * compiler's business; that nothing crashes is this file's.
 */

#include "policy/layout.h"

#include <errno.h>

#include "src/wire/host.h"

static const uint32_t item_sizes[] = {
	[SECTION_SLOTS] = sizeof(struct snap_slot),
	[SECTION_HOSTS] = 1,
	[SECTION_PREFIXES] = sizeof(struct snap_prefix),
	[SECTION_KEYS] = sizeof(struct snap_key),
	[SECTION_LISTS] = sizeof(struct snap_rule),
	[SECTION_PORTS] = sizeof(struct snap_ports),
	[SECTION_STRINGS] = 1,
	[SECTION_NOTES] = sizeof(struct snap_note),
	[SECTION_TEXT] = 1,
};
static_assert(ARRAY_LEN(item_sizes) == SECTION_NUM, "a size for each section");

static bool range_is_inside(uint64_t at, uint64_t count, uint64_t size)
{
	return at <= size && count <= size - at;
}

static bool check_sections(const struct snapshot_head *h)
{
	const struct snap_section *s;
	unsigned id;

	for (id = 0; id < SECTION_NUM; id++) {
		s = &h->sections[id];
		if (s->at % SNAPSHOT_ALIGN || s->at < sizeof(*h) ||
		    !range_is_inside(s->at, (uint64_t)s->count * item_sizes[id],
				     h->size))
			return false;
	}
	return h->sections[SECTION_KEYS].count ==
		       h->sections[SECTION_PREFIXES].count &&
	       range_is_inside(h->v4_at, h->v4_count,
			       h->sections[SECTION_KEYS].count);
}

static bool check_string(const struct snapshot_head *h, struct snap_string s)
{
	return range_is_inside(s.at, s.len, h->sections[SECTION_TEXT].count);
}

static bool check_limits(const struct policy_limits *l)
{
	unsigned i;

	for (i = 0; i < LIMIT_NUM; i++)
		if (l->of[i] != LIMIT_UNSAID &&
		    l->of[i] > policy_limit_max((enum policy_limit)i))
			return false;
	return true;
}

static bool check_head(const struct snapshot_head *h)
{
	uint32_t slots = h->sections[SECTION_SLOTS].count;
	return slots && !(slots & (slots - 1)) && h->slot_mask == slots - 1 &&
	       h->deny_count <= h->sections[SECTION_NOTES].count &&
	       h->is_overlay <= 1 && (h->is_overlay || !h->deny_count) &&
	       h->default_action <= VERDICT_ALLOW && h->address_denies <= 1 &&
	       h->looks_inside <= 1 &&
	       check_limits(&h->limits) && check_string(h, h->name) &&
	       check_string(h, h->file);
}

/* What may still come: each rule stands in one list at most, and each string
 * takes two bytes at least. So checking ends soon, whatever the bytes. */
struct budget {
	uint32_t rules, strings;
};

/* Methods and paths follow each other. */
static bool check_strings(const struct snapshot_head *h,
			  const struct snap_rule *rule, struct budget *b)
{
	const char *strings = snap_at(h, SECTION_STRINGS);
	uint32_t size = h->sections[SECTION_STRINGS].count, i;
	uint32_t count = (uint32_t)rule->method_count + rule->path_count;
	uint64_t at = rule->strings_at;
	uint16_t len;

	if (count > b->strings)
		return false;
	b->strings -= count;
	for (i = 0; i < count; i++) {
		if (!range_is_inside(at, sizeof(len), size))
			return false;
		memcpy(&len, strings + at, sizeof(len));
		at += sizeof(len);
		if (!range_is_inside(at, len, size))
			return false;
		at += len;
	}
	return true;
}

static bool check_rule(const struct snapshot_head *h,
		       const struct snap_rule *rule, struct budget *b)
{
	bool constrained = rule->method_count || rule->path_count;

	return rule->index < h->sections[SECTION_NOTES].count &&
	       rule->action <= VERDICT_ALLOW && rule->protocol < PROTOCOL_NUM &&
	       constrained == !!(rule->flags & RULE_CONSTRAINED) &&
	       (!h->is_overlay || (rule->action == VERDICT_DENY) ==
					  (rule->index < h->deny_count)) &&
	       (rule->port_count < 2 ||
		range_is_inside(rule->ports_at, rule->port_count,
				h->sections[SECTION_PORTS].count)) &&
	       check_strings(h, rule, b);
}

static bool check_list(const struct snapshot_head *h,
		       const struct snap_rule *list, uint32_t count,
		       struct budget *b)
{
	uint32_t i;

	if (count > b->rules)
		return false;
	b->rules -= count;
	for (i = 0; i < count; i++)
		if (!check_rule(h, &list[i], b) ||
		    (i && list[i].index <= list[i - 1].index))
			return false;
	return true;
}

static bool check_host(const struct snapshot_head *h, uint32_t at,
		       struct budget *b)
{
	uint32_t size = h->sections[SECTION_HOSTS].count, lists;
	const struct snap_host *host;
	const struct snap_rule *list;

	if (at % 8 ||
	    !range_is_inside(at, offsetof(struct snap_host, name), size))
		return false;
	host = (const void *)((const char *)snap_at(h, SECTION_HOSTS) + at);
	lists = snap_host_lists(host->name_len);
	if (!host->name_len || host->name_len > HOST_MAX ||
	    !range_is_inside((uint64_t)at + lists,
			     ((uint64_t)host->self_count + host->below_count) *
				     sizeof(*list),
			     size))
		return false;
	list = (const void *)((const char *)host + lists);
	return check_list(h, list, host->self_count, b) &&
	       check_list(h, list + host->self_count, host->below_count, b);
}

static bool check_slots(const struct snapshot_head *h, struct budget *b)
{
	const struct snap_slot *slots = snap_at(h, SECTION_SLOTS);
	uint32_t i;

	for (i = 0; i < h->sections[SECTION_SLOTS].count; i++)
		if (slots[i].at && !check_host(h, slots[i].at, b))
			return false;
	return true;
}

/* A parent stands earlier and is shorter: chains end, after 129 at most. */
static bool check_prefixes(const struct snapshot_head *h, struct budget *b)
{
	const struct snap_prefix *prefixes = snap_at(h, SECTION_PREFIXES), *p;
	const struct snap_rule *lists = snap_at(h, SECTION_LISTS);
	uint32_t i;

	for (i = 0; i < h->sections[SECTION_PREFIXES].count; i++) {
		p = &prefixes[i];
		if (p->length >= PREFIX_LENGTHS)
			return false;
		if (p->parent != NO_PREFIX &&
		    (p->parent >= i || prefixes[p->parent].length >= p->length))
			return false;
		if (!range_is_inside(p->at, p->count,
				     h->sections[SECTION_LISTS].count) ||
		    !check_list(h, lists + p->at, p->count, b))
			return false;
	}
	return true;
}

static bool check_notes(const struct snapshot_head *h)
{
	const struct snap_note *notes = snap_at(h, SECTION_NOTES);
	uint32_t i;

	for (i = 0; i < h->sections[SECTION_NOTES].count; i++)
		if (!check_string(h, notes[i].text) ||
		    !check_string(h, notes[i].file))
			return false;
	return true;
}

int snapshot_open(const void *bytes, size_t len, struct snapshot *ret)
{
	const struct snapshot_head *h = bytes;
	struct budget b;

	if (len < sizeof(*h) || len > SNAPSHOT_MAX_BYTES ||
	    (uintptr_t)bytes % SNAPSHOT_ALIGN || h->magic != SNAPSHOT_MAGIC ||
	    h->version != SNAPSHOT_VERSION || h->size != len ||
	    !check_sections(h) || !check_head(h))
		return -EINVAL;

	b.rules = h->sections[SECTION_NOTES].count;
	b.strings = h->sections[SECTION_STRINGS].count / sizeof(uint16_t);
	if (!check_slots(h, &b) || !check_prefixes(h, &b) || !check_notes(h))
		return -EINVAL;
	ret->head = h;
	ret->len = len;
	return 0;
}

uint64_t snapshot_generation(const struct snapshot *s)
{
	return s->head->generation;
}

uint32_t snapshot_rule_count(const struct snapshot *s)
{
	return s->head->sections[SECTION_NOTES].count;
}

struct span snapshot_name(const struct snapshot *s)
{
	return snap_text(s->head, s->head->name);
}

bool snapshot_looks_inside(const struct snapshot *s)
{
	return s->head->looks_inside;
}

const struct policy_limits *snapshot_limits(const struct snapshot *s)
{
	return &s->head->limits;
}
