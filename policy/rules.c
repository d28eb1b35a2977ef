/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c - find a rule by its index and put together what it said
 *
 * How it works: the note of the rule says which host's or prefix's lists it is
 * in; there its index is searched for, because lists ascend. The target is the
 * host's name or the prefix, everything else is in the rule and in its terms.
 */

#include "policy/rules.h"

#include <endian.h>

#include "src/base/err.h"

static const struct snap_rule *list_find(const struct snap_rule *list,
					 uint32_t count, uint32_t index)
{
	uint32_t half;

	while (count > 1) {
		half = count / 2;
		if (list[half].index <= index)
			list += half;
		else
			half = count - half;
		count -= half;
	}
	return count && list->index == index ? list : NULL;
}

static const struct snap_rule *find_in_prefix(const struct snapshot_head *h,
					      uint32_t index,
					      struct snap_found *ret)
{
	const struct snap_rule *lists = snap_at(h, SECTION_LISTS);

	return list_find(lists + ret->prefix->at, ret->prefix->count, index);
}

static const struct snap_rule *find_in_host(uint32_t index,
					    struct snap_found *ret)
{
	const struct snap_lists lists = snap_host_lists(ret->host);
	const struct snap_rule *rule;

	rule = list_find(lists.at, lists.self_count, index);
	ret->below = !rule;
	return rule ? rule
		    : list_find(lists.at + lists.self_count, lists.below_count,
				index);
}

bool snap_rule_find(const struct snapshot_head *h, uint32_t index,
		    struct snap_found *ret)
{
	const struct snap_prefix *prefixes = snap_at(h, SECTION_PREFIXES);
	uint32_t note = snap_note(h, index);

	*ret = (struct snap_found){ 0 };
	if (note & NOTE_PREFIX) {
		ret->prefix = &prefixes[note & ~NOTE_PREFIX];
		ret->rule = find_in_prefix(h, index, ret);
	} else {
		ret->host = snap_host_at(h, note);
		ret->rule = find_in_host(index, ret);
	}
	return ret->rule != NULL;
}

/* -- what it said --------------------------------------------------------- */

static void read_target(const struct snapshot_head *h,
			const struct snap_found *found,
			struct policy_rule_room *room,
			struct policy_target *ret)
{
	const struct snap_prefix *prefixes = snap_at(h, SECTION_PREFIXES);
	const struct snap_key *keys = snap_at(h, SECTION_KEYS);
	struct span part[2];
	uint64_t high, low;

	*ret = (struct policy_target){ .kind = TARGET_ADDRESS };
	if (found->host) {
		ret->kind = found->below ? TARGET_WILDCARD : TARGET_NAME;
		snap_host_name(h, found->host, part);
		memcpy(room->name, part[0].ptr, part[0].len);
		memcpy(room->name + part[0].len, part[1].ptr, part[1].len);
		ret->name = span_of(room->name, found->host->name_len);
		return;
	}
	keys += found->prefix - prefixes;
	high = htobe64((uint64_t)(keys->ip >> 64));
	low = htobe64((uint64_t)keys->ip);
	memcpy(ret->cidr.ip, &high, sizeof(high));
	memcpy(ret->cidr.ip + sizeof(high), &low, sizeof(low));
	ret->cidr.prefix = (uint8_t)found->prefix->length;
}

static void read_ports(const struct snapshot_head *h,
		       const struct snap_terms *terms,
		       const struct policy_rule_room *room,
		       struct policy_rule *ret)
{
	const struct snap_ports *ports =
		(const struct snap_ports *)snap_at(h, SECTION_PORTS) +
		terms->ports_at;
	const struct snap_ports only = { terms->port_first, terms->port_last };
	unsigned i;

	if (terms->port_count == 1)
		ports = &only;
	ret->ports = room->ports;
	ret->port_count = MIN((unsigned)terms->port_count, room->port_room);
	for (i = 0; i < ret->port_count; i++)
		room->ports[i] =
			(struct policy_ports){ ports[i].first, ports[i].last };
}

static void read_strings(const struct snapshot_head *h,
			 const struct snap_terms *terms,
			 const struct policy_rule_room *room,
			 struct policy_rule *ret)
{
	const char *at =
		(const char *)snap_at(h, SECTION_STRINGS) + terms->strings_at;
	unsigned count = (unsigned)terms->method_count + terms->path_count, i;
	uint16_t len;

	count = MIN(count, room->string_room);
	for (i = 0; i < count; i++) {
		memcpy(&len, at, sizeof(len));
		room->strings[i] = span_of(at + sizeof(len), len);
		at += sizeof(len) + len;
	}
	ret->methods = room->strings;
	ret->method_count = MIN((unsigned)terms->method_count, count);
	ret->paths = room->strings + ret->method_count;
	ret->path_count = count - ret->method_count;
}

/* The last run that begins at or before the rule. */
static struct span read_file(const struct snapshot_head *h, uint32_t index)
{
	const struct snap_file *files = snap_at(h, SECTION_FILES);
	uint32_t i = h->sections[SECTION_FILES].count;

	while (i && files[i - 1].first_rule > index)
		i--;
	return snap_text(h, i ? files[i - 1].name : h->file);
}

void policy_rule_read(const struct snapshot *s, uint32_t index,
		      struct policy_rule_room *room, struct policy_rule *ret)
{
	const struct snapshot_head *h = s->head;
	const uint32_t *lines = snap_at(h, SECTION_LINES);
	const struct snap_terms *terms;
	struct snap_found found;

	must(snap_rule_find(h, index, &found)); /* snapshot_open() saw to it */
	terms = snap_terms_of(h, found.rule);
	*ret = (struct policy_rule){
		.action = (enum verdict_kind)terms->action,
		.protocol = (enum policy_protocol)terms->protocol,
		.file = read_file(h, index),
		.line = h->sections[SECTION_LINES].count ? lines[index]
							 : h->line,
	};
	read_target(h, &found, room, &ret->target);
	if (!(terms->flags & RULE_LISTS))
		return;
	read_ports(h, terms, room, ret);
	read_strings(h, terms, room, ret);
}
