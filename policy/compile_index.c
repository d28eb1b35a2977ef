/* SPDX-License-Identifier: Apache-2.0 */
/* compile_index.c - gather the rules of each host and of each prefix */

#include "policy/compile_index.h"

#include "policy/lookup.h"
#include "src/base/err.h"

static void list_append(struct index *x, struct rule_list *l, uint32_t rule)
{
	x->next[rule] = NO_RULE;
	if (l->count++)
		x->next[l->last] = rule;
	else
		l->first = rule;
	l->last = rule;
}

static struct index_host *host_at(struct index *x, struct span name)
{
	uintptr_t position = (uintptr_t)map_find(&x->by_name, name);
	struct index_host *host;

	if (position)
		return &x->hosts[position - 1];
	if (x->host_count == x->host_room) {
		x->host_room = x->host_room ? 2 * x->host_room : 64;
		x->hosts = must_realloc(x->hosts,
					x->host_room * sizeof(*x->hosts));
	}
	host = &x->hosts[x->host_count++];
	*host = (struct index_host){ .name = name };
	(void)map_set(&x->by_name, name, (void *)(uintptr_t)x->host_count);
	return host;
}

static void add_flags(struct index *x, const struct policy_target *targets,
		      unsigned count, uint8_t self, uint8_t below)
{
	unsigned i;

	for (i = 0; i < count; i++)
		host_at(x, targets[i].name)->flags |=
			targets[i].kind == TARGET_WILDCARD ? below : self;
}

/* Address, then length, then rule: so a prefix stands before what it holds,
 * and the rules of equal prefixes are neighbours in ascending order. */
struct prefix_rule {
	struct cidr cidr;
	uint32_t rule;
};

static int by_prefix(const void *a, const void *b)
{
	const struct prefix_rule *x = a, *y = b;
	int order = memcmp(x->cidr.ip, y->cidr.ip, sizeof(x->cidr.ip));

	if (!order)
		order = (int)x->cidr.prefix - (int)y->cidr.prefix;
	if (!order)
		order = x->rule < y->rule ? -1 : x->rule > y->rule;
	return order;
}

static bool cidr_holds(const struct cidr *outer, const struct cidr *inner)
{
	return outer->prefix <= inner->prefix &&
	       snap_key_in_prefix(snap_key_of(inner->ip),
				  snap_key_of(outer->ip), outer->prefix);
}

/* The nearest earlier prefix around this one: the one before it, or one of
 * those around that. */
static uint32_t find_parent(const struct index *x, uint32_t at)
{
	uint32_t parent = at ? at - 1 : NO_PREFIX;

	while (parent != NO_PREFIX &&
	       !cidr_holds(&x->prefixes[parent].cidr, &x->prefixes[at].cidr))
		parent = x->prefixes[parent].parent;
	return parent;
}

static void add_prefixes(struct index *x, struct prefix_rule *found,
			 uint32_t count)
{
	struct index_prefix *p = NULL;
	uint32_t i;

	qsort(found, count, sizeof(*found), by_prefix);
	x->prefixes = must_alloc(MAX(count, 1u) * sizeof(*x->prefixes));
	for (i = 0; i < count; i++) {
		if (!p || p->cidr.prefix != found[i].cidr.prefix ||
		    memcmp(p->cidr.ip, found[i].cidr.ip, sizeof(p->cidr.ip))) {
			p = &x->prefixes[x->prefix_count];
			p->cidr = found[i].cidr;
			p->parent = find_parent(x, x->prefix_count++);
		}
		list_append(x, &p->rules, found[i].rule);
	}
}

void index_init(struct index *x, const struct policy_rule *const *rules,
		uint32_t rule_count, const struct policy_model *m)
{
	CLEANUP_FREE struct prefix_rule *found =
		must_alloc(MAX(rule_count, 1u) * sizeof(*found));
	uint32_t i, count = 0;
	struct index_host *host;

	*x = (struct index){ 0 };
	map_init(&x->by_name);
	x->next = must_alloc(MAX(rule_count, 1u) * sizeof(*x->next));
	for (i = 0; i < rule_count; i++) {
		if (rules[i]->target.kind == TARGET_ADDRESS) {
			found[count].cidr = rules[i]->target.cidr;
			found[count++].rule = i;
			continue;
		}
		host = host_at(x, rules[i]->target.name);
		list_append(x,
			    rules[i]->target.kind == TARGET_NAME ? &host->self
								 : &host->below,
			    i);
	}
	add_prefixes(x, found, count);
	if (!m)
		return;
	add_flags(x, m->inspect, m->inspect_count, HOST_INSPECT,
		  HOST_BELOW_INSPECT);
	add_flags(x, m->passthrough, m->passthrough_count, HOST_PASSTHROUGH,
		  HOST_BELOW_PASSTHROUGH);
}

void index_fini(struct index *x)
{
	map_fini(&x->by_name);
	free(x->hosts);
	free(x->prefixes);
	free(x->next);
}

static uint64_t hash_name(struct span name, uint64_t seed)
{
	struct snap_hash hash = SNAP_HASH_START;
	size_t i;

	for (i = name.len; i; i--) {
		if (name.ptr[i - 1] == '.')
			snap_hash_fold(&hash);
		else
			snap_hash_byte(&hash, name.ptr[i - 1]);
	}
	snap_hash_fold(&hash);
	return snap_hash_end(hash.folded, seed);
}

bool index_fill_slots(const struct index *x, uint64_t seed, uint64_t *slots,
		      uint32_t slot_count)
{
	uint32_t i, at, probes;
	uint64_t hash;

	memset(slots, 0, slot_count * sizeof(*slots));
	for (i = 0; i < x->host_count; i++) {
		hash = hash_name(x->hosts[i].name, seed);
		at = snap_hash_slot(hash, slot_count);
		for (probes = 1; slots[at]; probes++) {
			if (probes == PROBE_MAX)
				return false;
			at = snap_slot_next(at, slot_count);
		}
		slots[at] = INDEX_SLOT(snap_hash_tag(hash), x->hosts[i].place);
	}
	return true;
}
