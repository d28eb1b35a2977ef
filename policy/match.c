/* SPDX-License-Identifier: Apache-2.0 */
/* match.c - decide a question against an overlay and a policy
 *
 * How it works: the question names at most a few keys: the host itself, each
 * suffix of it that some "*.suffix" could stand for, and the prefixes around
 * the address. Each key has an ascending list of the rules that ask for it;
 * these lists are the candidates. A candidate then fits wholly, not at all, or
 * perhaps: its methods and paths are not known before the request.
 *
 * Because the first rule in list order wins, it is enough to find three lowest
 * indices: of the rules that fit wholly, and of the allowing and the denying
 * rules that fit perhaps. Of the latter only those before the former count.
 * No merging, no sorting, no allocation.
 *
 * What is not known helps nobody: a question without protocol, method or path
 * fits a deny rule that asks for one, and no allow rule that does. On a host
 * that is passed through unopened, "perhaps" will never become "yes": an allow
 * rule does not fit then, and a deny rule does.
 */

#include "policy/lookup.h"
#include "src/base/attrib.h"
#include "src/wire/host.h"
#include "src/wire/url.h"

enum {
	LISTS_MAX = 1 + NAME_LABELS_MAX + PREFIX_LENGTHS,
	QUIC_PORT = 443, /* RFC 9114 */
	DOQ_PORT = 853,	 /* RFC 9250 */
};

struct rules_view {
	const struct snap_rule *at; /* ascending indices */
	uint32_t count;
};

/* Suffixes of a host name at label boundaries, by number of labels. */
struct suffixes {
	unsigned count; /* labels of the whole name */
	uint64_t hashes[HOST_MAX + 2];
	uint8_t starts[HOST_MAX + 2];
};

/* Candidates of one snapshot: lists by address first, then lists by name. */
struct candidates {
	unsigned address_count, count;
	unsigned lists_flags; /* HOST_INSPECT, HOST_PASSTHROUGH, or none */
	struct rules_view lists[LISTS_MAX];
};

enum fit { FIT_NO, FIT_PERHAPS, FIT_YES };

/* Those with the lowest indices; no_rule when there is none. */
struct found {
	const struct snap_rule *yes, *may_allow, *may_deny;
};

static const struct snap_rule no_rule = { .index = NO_RULE };

#define FOUND_NOTHING ((struct found){ &no_rule, &no_rule, &no_rule })

struct question {
	const struct policy_query *q;
	bool opaque; /* the host is passed through unopened */
};

static void suffixes_init(struct suffixes *s, struct span host)
{
	struct snap_hash hash = SNAP_HASH_START;
	size_t i;

	s->count = 0;
	if (!host.len)
		return;
	for (i = host.len; i; i--) {
		if (host.ptr[i - 1] != '.') {
			snap_hash_byte(&hash, host.ptr[i - 1]);
			continue;
		}
		snap_hash_fold(&hash);
		s->hashes[++s->count] = hash.folded;
		s->starts[s->count] = (uint8_t)i;
	}
	snap_hash_fold(&hash);
	s->hashes[++s->count] = hash.folded;
	s->starts[s->count] = 0;
}

static bool host_is(const struct snapshot_head *h, const struct snap_host *host,
		    struct span name)
{
	struct span part[2];

	if (host->name_len != name.len)
		return false;
	snap_host_name(h, host, part);
	return !memcmp(part[0].ptr, name.ptr, part[0].len) &&
	       !memcmp(part[1].ptr, name.ptr + part[0].len, part[1].len);
}

static const struct snap_host *find_host(const struct snapshot_head *h,
					 struct span name, uint64_t hash)
{
	const struct snap_host *host;
	uint32_t at, place, probes;
	uint8_t tag;

	hash = snap_hash_end(hash, h->seed);
	at = snap_hash_slot(hash, h->slot_count);
	for (probes = 0; probes < PROBE_MAX; probes++) {
		place = snap_slot(h, at, &tag);
		if (!place)
			return NULL;
		host = snap_host_at(h, place);
		if (tag == snap_hash_tag(hash) && host_is(h, host, name))
			return host;
		at = snap_slot_next(at, h->slot_count);
	}
	return NULL;
}

static void add_list(struct candidates *c, const struct snap_rule *at,
		     uint32_t count)
{
	if (count)
		c->lists[c->count++] = (struct rules_view){ at, count };
}

/* "*.suffix" for one proper suffix of the host. */
static void gather_below(struct candidates *c, const struct snapshot_head *h,
			 struct span host, const struct suffixes *s,
			 unsigned labels)
{
	const struct snap_host *found;
	struct snap_lists lists;

	found = find_host(h, span_from(host, s->starts[labels]),
			  s->hashes[labels]);
	if (!found)
		return;
	lists = snap_host_lists(found);
	add_list(c, lists.at + lists.self_count, lists.below_count);
	if (found->flags & (HOST_BELOW_INSPECT | HOST_BELOW_PASSTHROUGH))
		c->lists_flags =
			(found->flags & HOST_FLAGS) / HOST_BELOW_INSPECT;
}

/* From the shortest suffix to the name itself, so that the most specific entry
 * of the inspect and passthrough lists has the last word. */
static void gather_names(struct candidates *c, const struct snapshot_head *h,
			 struct span host, const struct suffixes *s)
{
	const struct snap_host *found;
	struct snap_lists lists;
	unsigned word, labels;
	uint64_t bits;

	for (word = 0; word < 2; word++) {
		for (bits = h->below[word]; bits; bits &= bits - 1) {
			labels = word * 64 + (unsigned)__builtin_ctzll(bits);
			if (labels >= s->count)
				break;
			if (labels)
				gather_below(c, h, host, s, labels);
		}
	}
	found = s->count ? find_host(h, host, s->hashes[s->count]) : NULL;
	if (!found)
		return;
	lists = snap_host_lists(found);
	add_list(c, lists.at, lists.self_count);
	if (found->flags & (HOST_INSPECT | HOST_PASSTHROUGH))
		c->lists_flags =
			found->flags & (HOST_INSPECT | HOST_PASSTHROUGH);
}

/* Every prefix around the address is the last one that begins at or before it,
 * or is around that one: prefixes nest or are apart. An IPv4 address is looked
 * for among IPv4 prefixes only: ::/0 is all of IPv6. */
static void gather_addresses(struct candidates *c,
			     const struct snapshot_head *h,
			     const struct addr *address)
{
	const struct snap_prefix *prefixes = snap_at(h, SECTION_PREFIXES);
	const struct snap_key *keys = snap_at(h, SECTION_KEYS);
	const struct snap_rule *lists = snap_at(h, SECTION_LISTS);
	const struct snap_key key = snap_key_of(address->ip);
	bool v4 = addr_is_v4(address);
	uint32_t low = v4 ? h->v4_at : 0, half, at;
	uint32_t left = v4 ? h->v4_count : h->sections[SECTION_KEYS].count;

	if (!left || keys[low].ip > key.ip)
		return;
	for (; left > 1; left -= half) {
		half = left / 2;
		/* no branch: which way it goes nobody can predict */
		low += half & -(uint32_t)(keys[low + half].ip <= key.ip);
	}
	for (at = low; at != NO_PREFIX; at = prefixes[at].parent) {
		if (v4 && prefixes[at].length < 96)
			break;
		if (snap_key_in_prefix(key, keys[at], prefixes[at].length))
			add_list(c, lists + prefixes[at].at,
				 prefixes[at].count);
	}
}

static void gather(struct candidates *c, const struct snapshot *snapshot,
		   const struct policy_query *q, const struct suffixes *s)
{
	c->count = c->lists_flags = 0;
	if (snapshot && q->address)
		gather_addresses(c, snapshot->head, q->address);
	c->address_count = c->count;
	if (snapshot)
		gather_names(c, snapshot->head, q->host, s);
}

/* Asks for the slot of the name itself early: a large table is far away, and
 * meanwhile there is other work. */
static void prefetch_name(const struct snapshot *snapshot,
			  const struct suffixes *s)
{
	const struct snapshot_head *h = snapshot->head;
	const char *slots = snap_at(h, SECTION_SLOTS);
	uint64_t hash;

	if (!s->count)
		return;
	hash = snap_hash_end(s->hashes[s->count], h->seed);
	__builtin_prefetch(slots + (size_t)snap_hash_slot(hash, h->slot_count) *
					   (h->wide ? 8 : 4));
}

static bool ports_fit(const struct snapshot_head *h,
		      const struct snap_terms *terms, uint16_t port)
{
	const struct snap_ports *ports =
		(const struct snap_ports *)snap_at(h, SECTION_PORTS) +
		terms->ports_at;
	unsigned i;

	if (!terms->port_count)
		return true;
	if (terms->port_count == 1)
		return terms->port_first <= port && port <= terms->port_last;
	for (i = 0; i < terms->port_count; i++)
		if (ports[i].first <= port && port <= ports[i].last)
			return true;
	return false;
}

static struct span next_string(const char **at)
{
	const char *s = *at;
	uint16_t len;

	memcpy(&len, s, sizeof(len));
	*at = s + sizeof(len) + len;
	return span_of(s + sizeof(len), len);
}

/* Both facts: methods are exact, paths patterns. What is not known fits a rule
 * that denies. */
static bool request_fits(const struct snapshot_head *h,
			 const struct snap_terms *terms,
			 const struct policy_query *q)
{
	bool unknown = terms->action == VERDICT_DENY;
	const char *at =
		(const char *)snap_at(h, SECTION_STRINGS) + terms->strings_at;
	bool method = !terms->method_count || (unknown && !q->method.len);
	bool path = !terms->path_count || (unknown && !q->path.len);
	struct span s;
	unsigned i;

	for (i = 0; i < terms->method_count; i++) {
		s = next_string(&at);
		method |= q->method.len && span_eq(s, q->method);
	}
	for (i = 0; method && !path && i < terms->path_count; i++) {
		s = next_string(&at);
		path = q->path.len && url_path_matches(s, q->path);
	}
	return method && path;
}

/* QUIC and DNS over QUIC carry what is looked into over TCP, and cannot be
 * looked into: only a rule that says "udp" opens them. */
static bool is_quic(const struct policy_query *q)
{
	return q->stage != POLICY_NAME && q->protocol == PROTOCOL_UDP &&
	       (q->port == QUIC_PORT || q->port == DOQ_PORT);
}

static bool protocol_fits(const struct snap_terms *terms,
			  const struct policy_query *q)
{
	if (terms->action == VERDICT_DENY)
		return terms->protocol == PROTOCOL_ANY ||
		       terms->protocol == q->protocol ||
		       q->protocol == PROTOCOL_ANY;
	return terms->protocol == q->protocol ||
	       (terms->protocol == PROTOCOL_ANY && !is_quic(q));
}

/* A name may be resolved when something at all may be done with it. */
static enum fit rule_fits_name(const struct snap_terms *terms)
{
	bool whole =
		terms->protocol == PROTOCOL_ANY && !(terms->flags & RULE_LISTS);

	return terms->action == VERDICT_ALLOW || whole ? FIT_YES : FIT_NO;
}

static enum fit rule_fits(const struct snapshot_head *h,
			  const struct snap_terms *terms,
			  const struct question *x)
{
	if (x->q->stage == POLICY_NAME)
		return rule_fits_name(terms);
	if (!protocol_fits(terms, x->q))
		return FIT_NO;
	if (!(terms->flags & RULE_LISTS))
		return FIT_YES;
	if (!ports_fit(h, terms, x->q->port))
		return FIT_NO;
	if (!(terms->flags & RULE_CONSTRAINED))
		return FIT_YES;
	if (x->q->stage == POLICY_REQUEST)
		return request_fits(h, terms, x->q) ? FIT_YES : FIT_NO;
	if (x->opaque)
		return terms->action == VERDICT_DENY ? FIT_YES : FIT_NO;
	return FIT_PERHAPS;
}

static void found_note(struct found *f, const struct snapshot_head *h,
		       const struct snap_rule *rule, const struct question *x)
{
	const struct snap_terms *terms = snap_terms_of(h, rule);
	const struct snap_rule **lowest = &f->yes;
	enum fit fit = rule_fits(h, terms, x);

	if (fit == FIT_NO)
		return;
	if (fit == FIT_PERHAPS)
		lowest = terms->action == VERDICT_ALLOW ? &f->may_allow
							: &f->may_deny;
	if (rule->index < (*lowest)->index)
		*lowest = rule;
}

/* Goes through one list. Rules before deny_count (of an overlay) are found in
 * `deny`, the others in `rest`; nothing behind a rule that fits matters. */
static void weigh_list(const struct snapshot_head *h,
		       const struct rules_view *list, const struct question *x,
		       struct found *deny, struct found *rest)
{
	const struct snap_rule *rule = list->at, *end = rule + list->count;
	struct found *f;

	for (; rule < end && rule->index < rest->yes->index; rule++) {
		f = rule->index < h->deny_count ? deny : rest;
		if (rule->index < f->yes->index)
			found_note(f, h, rule, x);
	}
}

static void weigh(const struct snapshot *snapshot, const struct candidates *c,
		  const struct question *x, struct found *deny,
		  struct found *rest)
{
	unsigned i;

	*deny = *rest = FOUND_NOTHING;
	for (i = 0; i < c->count; i++)
		weigh_list(snapshot->head, &c->lists[i], x, deny, rest);
}

/* Step 3: rules that deny the address, wherever they stand in the list. */
static void weigh_address_denies(const struct snapshot_head *h,
				 const struct candidates *c,
				 const struct question *x, struct found *f)
{
	const struct snap_rule *rule, *end;
	unsigned i;

	*f = FOUND_NOTHING;
	for (i = 0; h->address_denies && i < c->address_count; i++) {
		rule = c->lists[i].at;
		end = rule + c->lists[i].count;
		for (; rule < end && rule->index < f->yes->index; rule++)
			if (snap_terms_of(h, rule)->action == VERDICT_DENY)
				found_note(f, h, rule, x);
	}
}

static bool is_found(const struct snap_rule *rule)
{
	return rule != &no_rule;
}

static void conclude(struct verdict *v, enum verdict_source source,
		     const struct snapshot *s, const struct snap_rule *rule)
{
	const struct snap_terms *terms = snap_terms_of(s->head, rule);

	v->kind = terms->action;
	v->source = source;
	v->rule = rule->index;
	if (source == VERDICT_OVERLAY_ALLOW)
		v->rule -= s->head->deny_count;
	v->exact = terms->flags & RULE_EXACT;
	v->labels = terms->labels;
	v->by_address = v->kind == VERDICT_ALLOW && terms->flags & RULE_ADDRESS;
	v->everywhere = v->by_address && terms->flags & RULE_EVERYWHERE;
}

/* Steps 3 to 5. *ret: the rules that fit perhaps and come before the end. */
static void decide_policy(const struct snapshot *policy,
			  const struct candidates *c, const struct question *x,
			  struct found *ret, struct verdict *v)
{
	struct found denied, nobody, list;

	weigh_address_denies(policy->head, c, x, &denied);
	if (is_found(denied.yes)) {
		conclude(v, VERDICT_ADDRESS_DENY, policy, denied.yes);
		return;
	}
	weigh(policy, c, x, &nobody, &list);
	if (is_found(list.yes)) {
		conclude(v, VERDICT_RULE, policy, list.yes);
	} else {
		v->kind = is_quic(x->q) ? VERDICT_DENY
					: policy->head->default_action;
		v->source = VERDICT_DEFAULT;
	}
	if (list.may_allow->index < list.yes->index)
		ret->may_allow = list.may_allow;
	if (list.may_deny->index < list.yes->index)
		ret->may_deny = list.may_deny;
	if (is_found(denied.may_deny))
		ret->may_deny = denied.may_deny;
}

/* All five steps. A "perhaps" turns a denial into "allowed, look inside", and
 * makes an allowance look inside. */
static void decide(const struct snapshot *overlay,
		   const struct snapshot *policy, const struct candidates *co,
		   const struct candidates *cp, const struct question *x,
		   struct verdict *v)
{
	struct found deny, allow, list = FOUND_NOTHING;

	weigh(overlay, co, x, &deny, &allow);
	if (is_found(deny.yes)) {
		conclude(v, VERDICT_OVERLAY_DENY, overlay, deny.yes);
		return;
	}
	if (is_found(allow.yes))
		conclude(v, VERDICT_OVERLAY_ALLOW, overlay, allow.yes);
	else
		decide_policy(policy, cp, x, &list, v);

	if (v->kind == VERDICT_DENY && is_found(allow.may_allow))
		conclude(v, VERDICT_OVERLAY_ALLOW, overlay, allow.may_allow);
	else if (v->kind == VERDICT_DENY && is_found(list.may_allow))
		conclude(v, VERDICT_RULE, policy, list.may_allow);

	if (v->kind == VERDICT_ALLOW)
		v->inspect |= is_found(deny.may_deny) ||
			      allow.may_allow->index < allow.yes->index ||
			      is_found(list.may_allow) ||
			      is_found(list.may_deny);
}

void policy_match(const struct snapshot *overlay, const struct snapshot *policy,
		  const struct policy_query *q, struct verdict *ret)
{
	struct candidates of_overlay, of_policy;
	struct question x = { .q = q };
	struct suffixes suffixes;

	*ret = VERDICT_DENY_ALL;
	if (!policy || policy->head->is_overlay || q->host.len > HOST_MAX ||
	    (overlay && !overlay->head->is_overlay))
		return;

	ret->generation = policy->generation;
	if (overlay)
		ret->generation = MAX(ret->generation, overlay->generation);
	suffixes_init(&suffixes, q->host);
	prefetch_name(policy, &suffixes);
	gather(&of_overlay, overlay, q, &suffixes);
	gather(&of_policy, policy, q, &suffixes);
	ret->inspect = of_policy.lists_flags == HOST_INSPECT;
	ret->passthrough = of_policy.lists_flags & HOST_PASSTHROUGH;
	x.opaque = ret->passthrough;
	decide(overlay, policy, &of_overlay, &of_policy, &x, ret);
}
