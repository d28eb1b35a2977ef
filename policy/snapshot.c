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

#include "policy/rules.h"
#include "src/wire/host.h"

static const uint32_t item_sizes[] = {
	[SECTION_SLOTS] = sizeof(uint32_t), /* or twice that */
	[SECTION_HOSTS] = 1,
	[SECTION_PREFIXES] = sizeof(struct snap_prefix),
	[SECTION_KEYS] = sizeof(struct snap_key),
	[SECTION_LISTS] = sizeof(struct snap_rule),
	[SECTION_TERMS] = sizeof(struct snap_terms),
	[SECTION_PORTS] = sizeof(struct snap_ports),
	[SECTION_STRINGS] = 1,
	[SECTION_NOTES] = sizeof(uint16_t), /* or twice that */
	[SECTION_LINES] = sizeof(uint32_t),
	[SECTION_FILES] = sizeof(struct snap_file),
	[SECTION_TEXT] = 1,
};
static_assert(ARRAY_LEN(item_sizes) == SECTION_NUM, "a size for each section");

static bool range_is_inside(uint64_t at, uint64_t count, uint64_t size)
{
	return at <= size && count <= size - at;
}

static bool check_sections(const struct snapshot_head *h)
{
	uint32_t lines = h->sections[SECTION_LINES].count;
	const struct snap_section *s;
	uint64_t size;
	unsigned id;

	for (id = 0; id < SECTION_NUM; id++) {
		s = &h->sections[id];
		size = item_sizes[id];
		if ((id == SECTION_SLOTS && h->wide) ||
		    (id == SECTION_NOTES && !h->short_notes))
			size *= 2;
		if (s->at % SNAPSHOT_ALIGN || s->at < sizeof(*h) ||
		    !range_is_inside(s->at, s->count * size, h->size))
			return false;
	}
	if (lines && lines != h->sections[SECTION_NOTES].count)
		return false;
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
	return h->slot_count &&
	       h->slot_count == h->sections[SECTION_SLOTS].count &&
	       h->deny_count <= h->sections[SECTION_NOTES].count &&
	       h->is_overlay <= 1 && (h->is_overlay || !h->deny_count) &&
	       h->default_action <= VERDICT_ALLOW && h->address_denies <= 1 &&
	       h->looks_inside <= 1 && h->wide <= 1 && h->short_notes <= 1 &&
	       check_limits(&h->limits) && check_string(h, h->file);
}

/* Methods and paths follow each other; each takes two bytes at least. *budget:
 * how many may still come, so that checking ends soon whatever the bytes. */
static bool check_strings(const struct snapshot_head *h,
			  const struct snap_terms *terms, uint32_t *budget)
{
	const char *strings = snap_at(h, SECTION_STRINGS);
	uint32_t size = h->sections[SECTION_STRINGS].count, i;
	uint32_t count = (uint32_t)terms->method_count + terms->path_count;
	uint64_t at = terms->strings_at;
	uint16_t len;

	if (count > *budget)
		return false;
	*budget -= count;
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

static bool check_terms_of(const struct snapshot_head *h,
			   const struct snap_terms *t, uint32_t *budget)
{
	bool constrained = t->method_count || t->path_count;
	bool listed = constrained || t->port_count;

	return t->action <= VERDICT_ALLOW && t->protocol < PROTOCOL_NUM &&
	       listed == !!(t->flags & RULE_LISTS) &&
	       constrained == !!(t->flags & RULE_CONSTRAINED) &&
	       (t->port_count < 2 ||
		range_is_inside(t->ports_at, t->port_count,
				h->sections[SECTION_PORTS].count)) &&
	       check_strings(h, t, budget);
}

static bool check_terms(const struct snapshot_head *h)
{
	const struct snap_terms *terms = snap_at(h, SECTION_TERMS);
	uint32_t budget = h->sections[SECTION_STRINGS].count / sizeof(uint16_t);
	uint32_t i;

	for (i = 0; i < h->sections[SECTION_TERMS].count; i++)
		if (!check_terms_of(h, &terms[i], &budget))
			return false;
	return true;
}

static bool check_rule(const struct snapshot_head *h,
		       const struct snap_rule *rule)
{
	return rule->index < h->sections[SECTION_NOTES].count &&
	       rule->terms < h->sections[SECTION_TERMS].count &&
	       (!h->is_overlay ||
		(snap_terms_of(h, rule)->action == VERDICT_DENY) ==
			(rule->index < h->deny_count));
}

/* Each rule stands in one list: *budget is how many may still come. */
static bool check_list(const struct snapshot_head *h,
		       const struct snap_rule *list, uint32_t count,
		       uint32_t *budget)
{
	uint32_t i;

	if (count > *budget)
		return false;
	*budget -= count;
	for (i = 0; i < count; i++)
		if (!check_rule(h, &list[i]) ||
		    (i && list[i].index <= list[i - 1].index))
			return false;
	return true;
}

/* The part of a name that is another's. */
static bool check_tail(const struct snapshot_head *h,
		       const struct snap_host *host)
{
	uint32_t size = h->sections[SECTION_HOSTS].count;
	const struct snap_tail *tail = snap_host_tail(host);
	uint64_t at = (uint64_t)tail->from * HOST_UNIT;
	const struct snap_host *from;

	if (tail->head_len > host->name_len ||
	    !range_is_inside(at, offsetof(struct snap_host, name), size))
		return false;
	from = snap_host_at(h, tail->from);
	return !(from->flags & HOST_TAILED) &&
	       host->name_len - tail->head_len <= from->name_len &&
	       range_is_inside(at + offsetof(struct snap_host, name),
			       from->name_len, size);
}

/* The record up to its name, and the name, lie within hosts. */
static bool check_host_name(const struct snapshot_head *h, uint32_t place)
{
	uint64_t at = (uint64_t)place * HOST_UNIT;
	uint32_t size = h->sections[SECTION_HOSTS].count;
	const struct snap_host *host;

	if (!range_is_inside(at, offsetof(struct snap_host, name), size))
		return false;
	host = snap_host_at(h, place);
	if (!host->name_len || host->name_len > HOST_MAX)
		return false;
	if (host->flags & HOST_TAILED &&
	    (!range_is_inside(at,
			      offsetof(struct snap_host, name) +
				      offsetof(struct snap_tail, head),
			      size) ||
	     !check_tail(h, host)))
		return false;
	return range_is_inside(at, snap_host_end(host), size);
}

/* Name and lists lie within hosts. */
static bool check_host_shape(const struct snapshot_head *h, uint32_t place)
{
	uint32_t size = h->sections[SECTION_HOSTS].count;
	const struct snap_host *host;
	struct snap_lists lists;
	uint64_t end;

	if (!check_host_name(h, place))
		return false;
	host = snap_host_at(h, place);
	end = (uint64_t)place * HOST_UNIT + snap_host_end(host);
	if (host->flags & HOST_COUNTED) {
		if (!range_is_inside(end, 2 * sizeof(uint32_t), size))
			return false;
		end += 2 * sizeof(uint32_t);
	}
	lists = snap_host_lists(host);
	return range_is_inside(
		end,
		((uint64_t)lists.self_count + lists.below_count) *
			sizeof(struct snap_rule),
		size);
}

static bool check_host(const struct snapshot_head *h, uint32_t place,
		       uint32_t *budget)
{
	struct snap_lists lists;

	if (!check_host_shape(h, place))
		return false;
	lists = snap_host_lists(snap_host_at(h, place));
	return check_list(h, lists.at, lists.self_count, budget) &&
	       check_list(h, lists.at + lists.self_count, lists.below_count,
			  budget);
}

static bool check_slots(const struct snapshot_head *h, uint32_t *budget)
{
	uint32_t i, place;
	uint8_t tag;

	for (i = 0; i < h->slot_count; i++) {
		place = snap_slot(h, i, &tag);
		if (place && !check_host(h, place, budget))
			return false;
	}
	return true;
}

/* A parent stands earlier and is shorter: chains end, after 129 at most. */
static bool check_prefixes(const struct snapshot_head *h, uint32_t *budget)
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
		    !check_list(h, lists + p->at, p->count, budget))
			return false;
	}
	return true;
}

/* The note of a rule leads to it. Rules that only notes lead to are checked
 * here; more of them than the lists have there cannot be. */
static bool check_notes(const struct snapshot_head *h)
{
	struct snap_found found;
	uint32_t i, note;

	for (i = 0; i < h->sections[SECTION_NOTES].count; i++) {
		note = snap_note(h, i);
		if (note & NOTE_PREFIX
			    ? (note & ~NOTE_PREFIX) >=
				      h->sections[SECTION_PREFIXES].count
			    : !check_host_shape(h, note))
			return false;
		if (!snap_rule_find(h, i, &found) || !check_rule(h, found.rule))
			return false;
	}
	return true;
}

static bool check_files(const struct snapshot_head *h)
{
	const struct snap_file *files = snap_at(h, SECTION_FILES);
	uint32_t i;

	for (i = 0; i < h->sections[SECTION_FILES].count; i++)
		if (!check_string(h, files[i].name))
			return false;
	return true;
}

int snapshot_open(const void *bytes, size_t len, struct snapshot *ret)
{
	const struct snapshot_head *h = bytes;
	uint32_t budget;

	if (len < sizeof(*h) || len > SNAPSHOT_MAX_BYTES ||
	    (uintptr_t)bytes % SNAPSHOT_ALIGN || h->magic != SNAPSHOT_MAGIC ||
	    h->version != SNAPSHOT_VERSION || h->size != len ||
	    !check_sections(h) || !check_head(h) || !check_terms(h))
		return -EINVAL;

	budget = h->sections[SECTION_NOTES].count;
	if (!check_slots(h, &budget) || !check_prefixes(h, &budget) ||
	    !check_notes(h) || !check_files(h))
		return -EINVAL;
	*ret = (struct snapshot){
		.head = h,
		.len = len,
		.name = h->is_overlay ? SPAN("operator") : SPAN(""),
	};
	return 0;
}

uint32_t snapshot_rule_count(const struct snapshot *s)
{
	return s->head->sections[SECTION_NOTES].count;
}

bool snapshot_looks_inside(const struct snapshot *s)
{
	return s->head->looks_inside;
}

const struct policy_limits *snapshot_limits(const struct snapshot *s)
{
	return &s->head->limits;
}
